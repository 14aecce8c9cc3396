package rowset

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"syscall"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// SalvageOptions are the options of DiskRowSet.Salvage.
type SalvageOptions struct {
	FillNull bool           // replace unreadable cells of nullable columns by NULL
	Floor    mvcc.Timestamp // nobody reads below it
}

// Lost is what the damage of one block costs.
type Lost struct {
	Block   block.ID
	Column  string // whose cells the block has; empty for changes
	Changes bool   // the block has changes
	Rows    int64  // rows of which some version is lost or, if Filled, has NULL in the column
	Newest  int64  // those of them of which the newest version is lost
	Filled  bool
}

// Unreadable reports whether err is about the bytes of a file, or about the disk that has them.
// Another try would have the same result.
func Unreadable(err error) bool {
	return isDamage(err) || errors.Is(err, fault.ErrNotFound) || errors.Is(err, syscall.EIO) || errors.Is(err, io.ErrUnexpectedEOF)
}

// Salvage passes all rows of a damaged rowset to use, in key order, with every version whose cells
// can be read. It must have been opened with Options.Salvage. A cell that its column does not have
// any more is taken from the row file, and a key from the key index. Between two versions that are
// kept, the times of those that are not look as if the row did not exist:
//
//	versions   ├─ a=1 ──┼─ a=? ──┼─ a=3 ──▶
//	kept       ├─ a=1 ──┤        ├─ a=3 ──▶
//
// It then calls lost for each block on account of which versions were lost. rows are valid during
// the call of use. It takes the memory of one window of rows. Errors: ctx.Err(); those of use;
// those of reading that are not damage.
func (d *DiskRowSet) Salvage(ctx context.Context, o SalvageOptions, use func(rows *change.Rows) error, lost func(Lost)) error {
	s := &salvage{d: d, o: o, changes: d.Tracker().Salvager(d.unread, d.deltaNumber), losses: map[lossKey]*loss{}}
	s.holes = s.changes.Holes()
	if err := s.open(); err != nil {
		return err
	}
	m := d.Metadata()
	n := int64(windowRows(m.Bytes, m.Rows))
	for from := int64(0); from < m.Rows; from += n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.window(batch.Ordinal(from), int(min(n, m.Rows-from)), use); err != nil {
			return err
		}
	}
	for _, l := range s.inOrder() {
		lost(*l)
	}
	return nil
}

// salvage is one call of Salvage.
type salvage struct {
	d       *DiskRowSet
	o       SalvageOptions
	changes *delta.Salvager
	holes   []delta.Hole
	columns []salvagedColumn
	keys    keyWalk
	losses  map[lossKey]*loss

	// The current window.
	from       batch.Ordinal
	n          int
	undo, redo []delta.SalvagedDelta // that were not used yet
	out        change.Rows
	batch      batch.RecordBatch
	row        batch.Ordinal
	state      rowVersion       // of the current row
	firstRedo  []mvcc.Timestamp // of the current row: of all, then of each column
}

type lossKey struct {
	block  block.ID
	column int // −1: changes
	filled bool
}

type loss struct {
	Lost
	row, newest int64 // the last one that was counted
}

// inOrder returns the losses by block.
func (s *salvage) inOrder() (list []*Lost) {
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

// note counts the current row in a loss, once.
func (s *salvage) note(l reason, filled, newest bool) {
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

// window salvages rows [from, from+n).
func (s *salvage) window(from batch.Ordinal, n int, use func(rows *change.Rows) error) (err error) {
	d := s.d
	s.from, s.n = from, n
	for i := range s.columns {
		if err := s.columns[i].read(d, i, from, n); err != nil {
			return err
		}
	}
	if s.undo, s.redo, err = s.changes.Collect(from, n); err != nil {
		return err
	}
	s.out.Keys, s.out.Undo, s.out.Redo = s.out.Keys[:0], s.out.Undo[:0], s.out.Redo[:0]
	s.reset(n)
	for i := range n {
		s.row = from + batch.Ordinal(i)
		undo, redo := takeRow(&s.undo, uint32(s.row)), takeRow(&s.redo, uint32(s.row))
		key, err := s.base(i, len(s.columns))
		if err != nil {
			return err
		}
		if key != nil {
			s.versions(key, undo, redo)
		}
	}
	if len(s.out.Keys) == 0 {
		return nil
	}
	for _, v := range s.batch.Columns {
		truncate(v, len(s.out.Keys))
	}
	s.batch.Len = len(s.out.Keys)
	s.out.Batch = &s.batch
	return use(&s.out)
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

// reset makes the output window empty.
func (s *salvage) reset(n int) {
	if s.batch.Columns == nil {
		for i := range s.d.Schema.Columns {
			s.batch.Columns = append(s.batch.Columns, &batch.Vector{Type: s.d.Schema.Columns[i].Type})
		}
	}
	for _, v := range s.batch.Columns {
		v.Reset(n)
	}
}

// truncate shortens a vector to n cells.
func truncate(v *batch.Vector, n int) {
	short := &batch.Vector{Type: v.Type}
	short.AppendRun(v, 0, n)
	*v = *short
}

// base sets the first columns of the state of the current row, the i-th of the window, to its base
// data, and returns its encoded key, nil if that cannot be read.
func (s *salvage) base(i, columns int) (key []byte, err error) {
	d, st := s.d, &s.state
	st.begin(columns)
	for c := range columns {
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
		s.note(st.lost[k], false, true)
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
func (s *salvage) fromRowFile() error {
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

func (s *salvage) takeImage(f *rowFile, cell []byte) error {
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

// nullable reports whether a column may be filled with NULL.
func (s *salvage) nullable(c int) bool {
	return s.o.FillNull && c >= s.d.Schema.Keys && s.d.Schema.Columns[c].Nullable
}
