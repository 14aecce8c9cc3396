package rowset

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// SalvageOptions are the options of a SalvageMerge.
type SalvageOptions struct {
	FillNull bool           // replace unreadable cells of nullable columns by NULL
	Floor    mvcc.Timestamp // no read is below it
}

// Lost is the loss by the damage of one block.
type Lost struct {
	Block   block.ID
	Column  string // whose cells the block has; empty for changes
	Changes bool   // the block has changes
	Rows    int64  // rows of which some version is lost or, if Filled, has NULL in the column
	Newest  int64  // of these, rows of which the newest version is lost
	Filled  bool
}

// Unreadable reports whether err is about the bytes of a file, or about the disk that has them.
// Another try would have the same result.
func Unreadable(err error) bool {
	return isDamage(err) || errors.Is(err, fault.ErrNotFound) || errors.Is(err, syscall.EIO) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// savedRows reads the rows of a rowset that may be damaged, in key order, each with its changes. A
// cell that its column does not have any more is taken from the row file, and a key from the key
// index.
type savedRows struct {
	savedRow // the current row
	d        *DiskRowSet
	changes  *delta.Salvager
	columns  []salvagedColumn
	keys     keyWalk
	losses   map[lossKey]*loss

	// The current window.
	from       batch.Ordinal
	n, next    int
	size       int
	undo, redo []delta.SalvagedDelta // that were not used yet
}

// newSavedRows returns a reader before the first row. d must have been opened with Options.Salvage.
// Windows have up to size rows.
func newSavedRows(d *DiskRowSet, o *SalvageOptions, size int) (*savedRows, error) {
	unread, err := d.unreadDeltas()
	if err != nil {
		return nil, err
	}
	changes := d.Tracker().Salvager(unread, d.deltaNumber)
	s := &savedRows{d: d, changes: changes, losses: map[lossKey]*loss{}, size: size}
	s.savedRow = savedRow{schema: d.Schema, o: o, set: d.Metadata(), note: s.lose}
	s.holes = s.changes.Holes()
	return s, s.open()
}

// ended reports whether all rows of the window have been read: the next call of advance overwrites
// its memory.
func (s *savedRows) ended() bool { return s.next >= s.n }

// advance reads the next row whose key can be read, and reports whether there is one. Keys that do
// not ascend, or are out of the bounds of the rowset, count as such that cannot be read.
func (s *savedRows) advance() (bool, error) {
	m := s.d.Metadata()
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
			s.lose(reason{s.columns[0].block, 0}, false, true)
		default:
			s.key = key
			s.begin()
			return true, nil
		}
	}
}

// window reads rows [from, from+n).
func (s *savedRows) window(from batch.Ordinal, n int) (err error) {
	s.from, s.n, s.next = from, n, 0
	for i := range s.columns {
		if err := s.columns[i].read(s.d, i, from, n); err != nil {
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
func (s *savedRows) inOrder() (list []*Lost) {
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
func (s *savedRows) lose(l reason, filled, newest bool) {
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
func takeRow(list *[]delta.SalvagedDelta, row uint32) []delta.SalvagedDelta {
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
func (s *savedRows) base(i int) (key []byte, err error) {
	d, st := s.d, &s.state
	st.begin(len(s.columns))
	for c := range s.columns {
		if col := &s.columns[c]; col.isLost(i) {
			st.lost[c] = reason{col.block, c}
		} else {
			st.cells[c] = col.cells.Cell(i)
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
		return d.encoder.AppendKey([]byte{}, st.cells[:keys]), nil
	}
	if key, err = s.keys.key(d, s.row); err != nil {
		return nil, err
	}
	if key == nil {
		s.lose(st.lost[k], false, true)
		return nil, nil
	}
	cells, _, err := d.encoder.AppendCells(nil, nil, key)
	if err != nil {
		return nil, err
	}
	copy(st.cells, cells)
	clear(st.lost[:keys])
	return key, nil
}

// fromRowFile takes the cells of the current row that are lost from the row file, if that has them.
func (s *savedRows) fromRowFile() error {
	f := s.d.openStored()
	if f == nil {
		return nil
	}
	cell, err := f.file.Cell(s.row)
	if err == nil {
		err = s.takeImage(f, cell)
	}
	if err != nil && !Unreadable(err) {
		return err
	}
	return nil
}

func (s *savedRows) takeImage(f *rowFile, cell []byte) error {
	key, image, err := cfile.SplitKeyed(cell)
	if err != nil {
		return err
	}
	b, err := s.d.makeBaseRow(f, s.row, key, image)
	if err != nil {
		return err
	}
	for c := range s.state.lost {
		if s.state.lost[c].is() {
			s.state.cells[c], s.state.lost[c] = b.rowFormat.Cell(b.image, c), reason{}
		}
	}
	return nil
}
