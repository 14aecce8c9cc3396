package rowset

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
)

// DamagedFind is what FindDamaged finds.
type DamagedFind struct {
	Row   batch.Ordinal
	Found bool // the key is that of Row
	Live  bool // the row exists after its newest change
	// Certain reports whether Live is known or, if the key was not found, whether no row has it.
	Certain bool
}

// FindDamaged is Find and Live in a rowset that may be damaged. If the key index does not answer,
// it reads all keys. It is not safe for concurrent use. Errors: those that are not damage.
func (d *DiskRowSet) FindDamaged(p bloom.Probe) (f DamagedFind, err error) {
	f.Certain = true
	if d.damagedIndex == nil {
		f.Row, f.Found, err = d.Find(p)
	}
	if err != nil && !Unreadable(err) {
		return f, err
	}
	if err != nil || d.damagedIndex != nil {
		if f.Row, f.Found, f.Certain, err = d.findByKeys(p.Key); err != nil {
			return f, err
		}
	}
	if !f.Found {
		return f, nil
	}
	f.Certain = true
	for _, u := range d.unread {
		f.Certain = f.Certain && u.Undo
	}
	if f.Live, err = d.Live(f.Row); err != nil && Unreadable(err) {
		f.Certain, err = false, nil
	}
	return f, err
}

// findByKeys finds a key among those that can be read; certain reports whether these are all.
func (d *DiskRowSet) findByKeys(key []byte) (row batch.Ordinal, found, certain bool, err error) {
	if d.damagedIndex == nil {
		if d.damagedIndex, err = newSalvageIndex(d); err != nil {
			return 0, false, false, err
		}
	}
	row, found, err = d.damagedIndex.find(key)
	return row, found, !d.damagedIndex.holes, err
}

// salvageIndex finds rows of a damaged rowset by key, of which it has the first readable one of
// each window.
type salvageIndex struct {
	s     *salvage
	first [][]byte // of each window; nil: none can be read
	holes bool     // some key cannot be read
	at    int      // window whose keys are in keys; −1: none
	keys  [][]byte // nil where it cannot be read
}

func newSalvageIndex(d *DiskRowSet) (*salvageIndex, error) {
	x := &salvageIndex{s: &salvage{d: d, losses: map[lossKey]*loss{}}, at: -1}
	if err := x.s.open(); err != nil {
		return nil, err
	}
	for w := 0; int64(w)*batch.WindowRows < d.Metadata().Rows; w++ {
		if err := x.load(w); err != nil {
			return nil, err
		}
		var first []byte
		for _, key := range x.keys {
			if first == nil {
				first = key
			}
			x.holes = x.holes || key == nil
		}
		x.first = append(x.first, bytes.Clone(first))
	}
	return x, nil
}

// load reads the keys of a window.
func (x *salvageIndex) load(window int) error {
	if x.at == window {
		return nil
	}
	s, d := x.s, x.s.d
	from := batch.Ordinal(window) * batch.WindowRows
	n := int(min(int64(batch.WindowRows), d.Metadata().Rows-int64(from)))
	x.at, x.keys = -1, x.keys[:0]
	s.keys.rewind(from)
	for i := range d.Schema.Keys {
		if err := s.columns[i].read(d, i, from, n); err != nil {
			return err
		}
	}
	for i := range n {
		s.row = from + batch.Ordinal(i)
		key, err := s.base(i, d.Schema.Keys)
		if err != nil {
			return err
		}
		x.keys = append(x.keys, key)
	}
	x.at = window
	return nil
}

// find returns the row with a key.
func (x *salvageIndex) find(key []byte) (row batch.Ordinal, found bool, err error) {
	for w := len(x.first) - 1; w >= 0; w-- {
		if x.first[w] == nil || bytes.Compare(x.first[w], key) > 0 {
			continue
		}
		if err := x.load(w); err != nil {
			return 0, false, err
		}
		for i, k := range x.keys {
			if k != nil && bytes.Equal(k, key) {
				return batch.Ordinal(w)*batch.WindowRows + batch.Ordinal(i), true, nil
			}
		}
		break
	}
	return 0, false, nil
}
