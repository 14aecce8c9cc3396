package rowset

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/internal/fault"
)

// trustFound is the number of consecutive lookups that found their keys after which lookups go to
// the key index without the bloom file.
const trustFound = 32

// lookup finds the row with an encoded key. It is the one place that decides which files and which
// memory answer where a row is. It asks its sources in this order until one answers:
//
//	source           answers            cost
//	1 key directory  absent             a cache line: 40 ns
//	2 row cache      present, base data a hash table and a comparison: 0.1 µs
//	  key directory  absent             candidates for the row: 0.1 µs
//	3 bloom file     absent             0.4 µs in memory, else a read of 4 KiB
//	4 row file       both, base data    a read of a page for each row
//	5 key index      both               0.7 µs in memory, else a read of a part of a cblock, or of one
//
// Most lookups are of absent keys, since all rowsets whose bounds contain a key are asked until one
// has it. So the cheapest source that can exclude a key is the first one. The row cache is next:
// its answer is complete. It is asked before the candidates of the directory because a candidate
// is only a row whose key has the same hash, and must be compared.
//
// The bloom file is asked only without a directory, which has the same hashes and more of each. It
// is before the sources that know the row, because a cblock of the bloom file has the hashes of
// thousands of keys and stays in the cache, while each row has another cblock in them. For the
// opposite case, of lookups that find their keys, see usuallyFinds.
//
// The row file is asked for base data, since the key index leads to further reads, one for each
// column; and for the row alone if the cache is full, since a page is smaller than a cblock of the
// key index. A damaged row file does not answer, so the key index is last: it answers each lookup.
type lookup struct {
	near *Near // of one of several keys; may be nil
	base bool  // the caller wants the base data of the row, too
	cols []int // the columns of the base data that the caller wants

	// The answer, if the key is present.
	row     batch.Ordinal
	image   []byte // the base data in the format of the rowset; nil if only the columns have it
	missing []bool // by column: image lacks the cell; nil if it lacks none

	asked bool // no source excluded the key before the row file or the key index
}

// find looks up a key and reports whether it is present. The row may be a ghost.
//
// Errors: ErrCorrupt; errors of reading files. Source: tablet spec §10.4.
func (l *lookup) find(d *DiskRowSet, p bloom.Probe) (found bool, err error) {
	dir := d.keyDirectory()
	if dir != nil && dir.Excludes(p.Hash()) {
		return false, nil
	}
	cached := d.cachedRow(p)
	if cached != nil {
		l.row, l.image = cached.row, cached.imageFor(d.rowFormat)
		if l.image != nil || !l.base {
			return true, nil
		}
	}
	var c candidates
	if dir != nil {
		var ok bool
		if c, ok = newCandidates(dir, p); !ok {
			return false, nil
		}
	}
	stored := (l.base || d.prefersPages()) && d.mayHaveRowFile()
	if dir == nil && cached == nil {
		if excluded, err := d.excludes(p, stored); err != nil || excluded {
			d.noteAbsent()
			return false, err
		}
	}
	if stored {
		if f := d.openStored(); f != nil {
			if found, err = l.inRowFile(d, f, p); err == nil {
				return found, nil
			}
			d.noteDamage(err)
		}
	}
	switch {
	case cached != nil: // in the format of another schema: the columns have the base data
		return true, nil
	case dir != nil:
		return l.amongCandidates(d, &c, p.Key)
	}
	return l.inKeyIndex(d, p.Key)
}

// excludes reports whether the bloom file says that a key is absent. stored is whether the row file
// will be asked next.
//
// A filter that is not in memory is not read before the row file if a key directory will soon
// answer instead: reading the cblock that has the row, if it exists, takes as long and decides.
func (d *DiskRowSet) excludes(p bloom.Probe, stored bool) (bool, error) {
	switch {
	case d.usuallyFinds():
		return false, nil
	case stored && d.expectsDirectory():
		if f := d.filter.val.Load(); f != nil {
			return (*f).Excludes(p)
		}
		return false, nil
	}
	filter, err := d.Filter()
	if err != nil {
		return false, err
	}
	may, err := filter.MayContain(p)
	return err == nil && !may, err
}

// prefersPages reports whether a lookup of a key alone asks the row file before the key index. A page
// has 128 keys in a few kilobytes, a cblock of the key index has 32,768 in 83. While the cache has
// room, the cblocks of the index stay there.
func (d *DiskRowSet) prefersPages() bool { return d.opts.Cache != nil && d.opts.Cache.Full() }

// inRowFile looks up the key in the row file, and keeps the row in the cache if the file has all of
// it.
func (l *lookup) inRowFile(d *DiskRowSet, f *rowFile, p bloom.Probe) (found bool, err error) {
	l.asked = true
	found, err = l.findStored(d, f, p)
	return found, d.noteFound(found, err)
}

// amongCandidates compares the keys of candidates, as long as that reads no cblock. Else the key index
// is read, with less effort.
func (l *lookup) amongCandidates(d *DiskRowSet, c *candidates, key []byte) (found bool, err error) {
	for range maxTries {
		if !c.exact() {
			break
		}
		same, known, err := d.hasKey(c.row(), key)
		switch {
		case err != nil:
			return false, err
		case same:
			l.row = c.row()
			return true, nil
		case !known:
			return l.seek(d, key)
		case !c.next():
			return false, nil
		}
	}
	return l.seek(d, key)
}

// hasKey compares the key of a row. known is false if that would have to read a cblock.
func (d *DiskRowSet) hasKey(row batch.Ordinal, key []byte) (same, known bool, err error) {
	var few [64]byte
	at := few[:0]
	for col := range d.Schema.Keys {
		cell, ok, err := d.quickCell(row, col)
		if err != nil || !ok {
			return false, false, err
		}
		at = d.encoder.AppendCell(at, col, cell)
	}
	return bytes.Equal(at, key), true, nil
}

// inKeyIndex looks up the key in the key index, and notes whether it is there for usuallyFinds.
func (l *lookup) inKeyIndex(d *DiskRowSet, key []byte) (found bool, err error) {
	found, err = l.seek(d, key)
	return found, d.noteFound(found, err)
}

// noteFound notes whether a lookup found its key, unless err is an error, and returns err.
func (d *DiskRowSet) noteFound(found bool, err error) error {
	switch {
	case err != nil:
	case !found:
		d.noteAbsent()
	case !d.usuallyFinds(): // later lookups write nothing that goroutines share
		d.found.Add(1)
	}
	return err
}

func (l *lookup) seek(d *DiskRowSet, key []byte) (found bool, err error) {
	l.asked = true
	l.row, found, err = d.seekExact(key)
	return found, err
}

// usuallyFinds reports whether the last lookups found their keys, like the lookups of a bulk upsert
// of existing rows. Neither the bloom file nor a key directory saves time for such lookups, since
// the row file or the key index is searched in any case.
func (d *DiskRowSet) usuallyFinds() bool { return d.found.Load() >= trustFound }

// noteAbsent notes that a lookup did not find its key, which ends usuallyFinds.
func (d *DiskRowSet) noteAbsent() {
	if d.found.Load() != 0 {
		d.found.Store(0)
	}
}

// Find looks up an encoded key and returns its row, which may be a ghost; see Live.
// Errors: ErrCorrupt.
func (d *DiskRowSet) Find(p bloom.Probe) (row batch.Ordinal, found bool, err error) {
	var l lookup
	if found, err = l.find(d, p); !found {
		return 0, false, err
	}
	return l.row, true, nil
}

// FindByIndex is Find by the key index alone, for a rowset whose bloom file is damaged.
func (d *DiskRowSet) FindByIndex(key []byte) (row batch.Ordinal, found bool, err error) {
	return d.seekExact(key)
}

// CheckKey looks up the key of a row, which the bloom file and the key index must find.
func (d *DiskRowSet) CheckKey(key []byte, row int64) error {
	filter, err := d.Filter()
	if err != nil {
		return err
	}
	found, err := filter.MayContain(bloom.MakeProbe(key))
	if err != nil {
		return err
	}
	var at batch.Ordinal
	if found {
		if at, found, err = d.seekExact(key); err != nil {
			return err
		}
	}
	if !found || int64(at) != row {
		return fault.Corruptf("rowset %d: row %d is not found by its key %x", d.Metadata().ID, row, key)
	}
	return nil
}
