package versions

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/salvage/damaged"
)

// Lost is the loss by the damage of one block.
type Lost struct {
	Block   block.ID
	Column  string // whose cells the block has; empty for changes
	Changes bool   // the block has changes
	Rows    int64  // rows of which some version is lost or, if Filled, has NULL in the column
	Newest  int64  // of these, rows of which the newest version is lost
	Filled  bool
}

// rowSetReader reads the rows of a rowset that may be damaged, in key order, each with its changes.
// A cell that its column does not have any more is taken from the row file, and a key from the key
// index.
type rowSetReader struct {
	history // of the current row
	d       *damaged.RowSet
	changes *damaged.Changes
	columns []*damaged.Column
	keys    *damaged.Keys
	losses  map[lossKey]*loss

	// The current window.
	from       batch.Ordinal
	n, next    int
	size       int
	undo, redo []damaged.Change // that were not used yet
}

// newRowSetReader returns a reader before the first row. Windows have up to size rows.
func newRowSetReader(d *damaged.RowSet, o *Options, size int) (*rowSetReader, error) {
	changes, err := d.Changes()
	if err != nil {
		return nil, err
	}
	s := &rowSetReader{d: d, changes: changes, keys: d.Keys(), losses: map[lossKey]*loss{}, size: size}
	s.history = history{schema: d.Schema, o: o, set: d.Metadata, note: s.lose, holes: changes.Holes()}
	for i := range d.Schema.Columns {
		c, err := d.Column(i)
		if err != nil {
			return nil, err
		}
		s.columns = append(s.columns, c)
	}
	return s, nil
}

// ended reports whether all rows of the window have been read: the next call of advance overwrites
// its memory.
func (s *rowSetReader) ended() bool { return s.next >= s.n }

// advance reads the next row whose key can be read, and reports whether there is one. Keys that do
// not ascend, or are out of the bounds of the rowset, count as such that cannot be read.
func (s *rowSetReader) advance() (bool, error) {
	m := s.d.Metadata
	for {
		if s.ended() {
			from := int64(s.from) + int64(s.n)
			if from >= m.Rows {
				return false, nil
			}
			if err := s.window(batch.Ordinal(from), int(min(int64(s.size), m.Rows-from))); err != nil {
				return false, err
			}
		}
		i := s.next
		s.next++
		s.row = s.from + batch.Ordinal(i)
		s.undos, s.redos = takeRow(&s.undo, uint32(s.row)), takeRow(&s.redo, uint32(s.row))
		key, err := s.base(i)
		if err != nil {
			return false, err
		}
		switch {
		case key == nil:
		case bytes.Compare(key, m.MinKey) < 0, bytes.Compare(key, m.MaxKey) > 0,
			s.key != nil && bytes.Compare(s.key, key) >= 0:
			s.lose(reason{s.columns[0].Block, 0}, false, true)
		default:
			s.key = key
			s.begin()
			return true, nil
		}
	}
}

// window reads rows [from, from+n).
func (s *rowSetReader) window(from batch.Ordinal, n int) (err error) {
	s.from, s.n, s.next = from, n, 0
	for i := range s.columns {
		if err := s.columns[i].Read(from, n); err != nil {
			return err
		}
	}
	s.undo, s.redo, err = s.changes.Collect(from, n)
	return err
}

type lossKey struct {
	block  block.ID
	column int // −1: changes
	filled bool
}

type loss struct {
	Lost
	row, newest int64 // the last row that was counted
}

// inOrder returns the losses by block.
func (s *rowSetReader) inOrder() (list []*Lost) {
	for _, l := range s.losses {
		list = append(list, &l.Lost)
	}
	slices.SortFunc(list, func(a, b *Lost) int {
		if c := cmp.Compare(a.Block, b.Block); c != 0 || a.Filled == b.Filled {
			return c
		} else if b.Filled {
			return -1
		}
		return 1
	})
	return list
}

// lose counts the current row in a loss, once.
func (s *rowSetReader) lose(l reason, filled, newest bool) {
	key := lossKey{l.block, l.column, filled}
	e := s.losses[key]
	if e == nil {
		e = &loss{Lost: Lost{Block: l.block, Changes: l.column < 0, Filled: filled}, row: -1, newest: -1}
		if l.column >= 0 {
			e.Column = s.d.Schema.Columns[l.column].Name
		}
		s.losses[key] = e
	}
	if e.row != int64(s.row) {
		e.row = int64(s.row)
		e.Rows++
	}
	if newest && e.newest != int64(s.row) {
		e.newest = int64(s.row)
		e.Newest++
	}
}

// takeRow takes the changes of a row from the beginning of a list.
func takeRow(list *[]damaged.Change, row uint32) []damaged.Change {
	l := *list
	n := 0
	for n < len(l) && l[n].Row == row {
		n++
	}
	*list = l[n:]
	return l[:n]
}

// base sets the state of the current row, the i-th of the window, to its base data, and returns its
// encoded key, nil if that cannot be read.
func (s *rowSetReader) base(i int) (key []byte, err error) {
	d, st := s.d, &s.state
	st.begin(len(s.columns))
	for c, col := range s.columns {
		if col.Lost(i) {
			st.lost[c] = reason{col.Block, c}
		} else {
			st.cells[c] = col.Cells.Cell(i)
		}
	}
	if slices.ContainsFunc(st.lost, reason.is) {
		if err := s.fromRowFile(); err != nil {
			return nil, err
		}
	}
	keys := d.Schema.Keys
	k := slices.IndexFunc(st.lost[:keys], reason.is)
	if k < 0 {
		return d.Encoder.AppendKey([]byte{}, st.cells[:keys]), nil
	}
	if key, err = s.keys.Key(s.row); err != nil {
		return nil, err
	}
	if key == nil {
		s.lose(st.lost[k], false, true)
		return nil, nil
	}
	cells, _, err := d.Encoder.AppendCells(nil, nil, key)
	if err != nil {
		return nil, err
	}
	copy(st.cells, cells)
	clear(st.lost[:keys])
	return key, nil
}

// fromRowFile takes the cells of the current row that are lost from the row file, if that has them.
func (s *rowSetReader) fromRowFile() error {
	cells, has, err := s.d.StoredCells(s.row)
	if cells == nil || err != nil {
		return err
	}
	for c := range s.state.lost {
		if s.state.lost[c].is() && has[c] {
			s.state.cells[c], s.state.lost[c] = cells[c], reason{}
		}
	}
	return nil
}
