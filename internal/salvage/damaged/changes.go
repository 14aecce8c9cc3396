package damaged

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Change is a change and the position of its file among the files of redos, oldest first, or of
// undos, newest first. For each column and for the existence of a row, the changes of a file come
// after the changes of the files before it, in the direction of time in which they lead. Births
// have the last position.
//
// Part is the number of holes before it in the file. Among changes of one timestamp, only these
// positions say which come after a hole.
type Change struct {
	change.Delta
	File, Part int
}

// Hole is a range of rows of which a damaged file may have had changes that cannot be read.
type Hole struct {
	Block     block.ID
	File      int // position of the file, see Change
	Part      int // of the changes before it in the file
	Undo      bool
	From, To  uint32         // rows // inclusive
	Min, Max  mvcc.Timestamp // of the changes // inclusive
	Existence bool           // rows may have begun or ended
	All       bool           // any column may have changed, otherwise those in Columns
	Columns   []schema.ColumnID
}

// Changes reports whether a column may have changed in the hole.
func (h *Hole) Changes(id schema.ColumnID) bool { return h.All || slices.Contains(h.Columns, id) }

// After reports whether a change at a position comes after the changes that are missing, if it is
// of the same row and column.
func (h *Hole) After(file, part int) bool {
	return file > h.File || file == h.File && part > h.Part
}

// Changes reads all changes of a rowset with damaged delta files, in ascending windows of rows.
// Where a cblock is damaged, it continues after it.
type Changes struct {
	d     *RowSet
	holes []Hole
	files []*deltaFile
}

// deltaFile is a delta file with the bounds of those cblocks that can be read.
type deltaFile struct {
	cells   *cfile.Reader // nil: nothing of it can be read
	missing Hole          // what a change of it that cannot be read may be
	blocks  []deltaBlock
	last    []change.Delta // the changes of cblock number at
	at      int
	part    int // of the next cblock
}

// deltaBlock is a data cblock of a delta file.
type deltaBlock struct {
	number    int
	part      int
	low, high uint32
}

// Changes reads all delta files once and finds the holes in them. Of a file that does not open,
// nothing is known about the changes that cannot be read but the timestamps between which they are.
// Errors: errors of reading that are not damage.
func (d *RowSet) Changes() (*Changes, error) {
	c := &Changes{d: d}
	m := d.Metadata
	var births mvcc.Timestamp // all redos are younger
	for _, b := range m.Births {
		births = max(births, b.TS+1)
	}
	unknown := Hole{Undo: true, To: math.MaxUint32, Max: m.MaxTimestamp, Existence: true, All: true}
	var whole []*deltaFile
	for _, ids := range [2][]block.ID{m.Undo, m.Redo} {
		for i, id := range ids {
			unknown.Block, unknown.File = id, i
			f, opened, err := d.deltaFile(unknown)
			if err != nil {
				return nil, err
			}
			if opened {
				whole = append(whole, f)
			} else {
				c.add(f)
			}
		}
		unknown.Undo, unknown.Min = false, births
	}
	for _, f := range whole {
		c.add(f)
	}
	return c, nil
}

// deltaFile opens a delta file, if need be by its cblocks. opened reports whether it opens like an
// undamaged one; otherwise its changes may be those of unknown.
func (d *RowSet) deltaFile(unknown Hole) (f *deltaFile, opened bool, err error) {
	f = &deltaFile{missing: unknown, at: -1}
	o := d.readerOptions()
	file, err := openBlock(d, unknown.Block, func(src block.Source) (*delta.File, error) {
		file, err := delta.OpenFile(src, o)
		if err == nil && !file.Checksums() {
			err = fault.Corruptf("block %d: has no checksums", unknown.Block)
		}
		if err == nil {
			f.cells, err = cfile.Open(src, o)
		}
		if err != nil {
			return nil, err
		}
		if _, err := f.cells.DataBlocks(); err != nil { // the index is damaged
			if cells, err := openChanges(src, o); err == nil {
				f.cells = cells
			}
		}
		return file, nil
	})
	if err == nil {
		f.limit(file.Stats())
		return f, true, nil
	}
	if Unreadable(err) {
		f.cells, err = openBlock(d, unknown.Block, func(src block.Source) (*cfile.Reader, error) {
			return openChanges(src, o)
		})
	}
	if err != nil && !Unreadable(err) {
		return nil, false, err
	}
	return f, false, nil
}

// openChanges opens a delta file whose footer or index is damaged, by its cblocks. Errors:
// ErrCorrupt if no cblock can be read.
func openChanges(src block.Source, o cfile.ReaderOptions) (*cfile.Reader, error) {
	cells, err := cfile.OpenDamaged(src, o, cfile.Known{Type: schema.Binary, Rows: -1})
	if err != nil {
		return nil, fmt.Errorf("delta: %w", err)
	}
	if info := cells.Info(); info.Type != schema.Binary || info.Nullable || info.Encoding != schema.Plain {
		return nil, fault.Corruptf("delta: block %d: cells of type %s, encoding %s, nullable %v, are no deltas",
			src.ID(), info.Type, info.Encoding, info.Nullable)
	}
	return cells, nil
}

// limit limits the changes that may be missing by the statistics of the file.
func (f *deltaFile) limit(st delta.Stats) {
	h := &f.missing
	h.Min, h.Max, h.Existence, h.All = st.Min, st.Max, st.Deletes+st.Reinserts > 0, false
	for _, c := range st.Columns {
		if c.Updates > 0 {
			h.Columns = append(h.Columns, c.ID)
		}
	}
}

// Holes returns where changes cannot be read.
func (c *Changes) Holes() []Hole { return c.holes }

// add finds the cblocks of a file that can be read. A hole reaches from its first row, which the
// index has, to the first one after it, since the changes of a row may end in the next cblock.
func (c *Changes) add(f *deltaFile) {
	n := 0
	var err error
	if f.cells != nil {
		n, err = f.cells.DataBlocks()
	}
	if f.cells == nil || err != nil {
		c.hole(f, 0, math.MaxUint32, nil, nil)
		return
	}
	low, from, broken := uint32(0), uint32(0), false
	var last *change.Delta // before the hole
	for i := range n {
		list, err := f.read(i, c.d.Schema)
		if err != nil || len(list) == 0 || list[0].Row < low {
			if !broken {
				from = max(low, f.firstRow(i))
			}
			broken = true
			continue
		}
		if broken {
			c.hole(f, from, list[0].Row, last, &change.Delta{Row: list[0].Row, TS: list[0].TS})
			broken = false
			f.part++
		}
		low = list[len(list)-1].Row
		last = &change.Delta{Row: low, TS: list[len(list)-1].TS}
		f.blocks = append(f.blocks, deltaBlock{i, f.part, list[0].Row, low})
	}
	if broken {
		c.hole(f, from, math.MaxUint32, last, nil)
	}
	c.files = append(c.files, f)
}

// read returns the changes of a data cblock. Errors: ErrCorrupt.
func (f *deltaFile) read(number int, s *schema.Schema) (list []change.Delta, err error) {
	err = f.cells.VisitData(number, func(_ batch.Ordinal, cells cfile.Cells) error {
		for i := range cells.Len() {
			cell, err := cells.Cell(i)
			if err != nil {
				return err
			}
			d, err := delta.Parse(cell)
			if err == nil {
				err = d.List.Check(s)
			}
			if err == nil && i > 0 && d.Row < list[i-1].Row {
				err = fault.Corruptf("row %d after row %d", d.Row, list[i-1].Row)
			}
			if err != nil {
				return err
			}
			d.List = bytes.Clone(d.List)
			list = append(list, d)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("delta: block %d: %w", f.missing.Block, err)
	}
	return list, nil
}

// firstRow returns the first row of a data cblock according to the index, 0 if that does not say.
func (f *deltaFile) firstRow(number int) uint32 {
	low, high := uint64(0), uint64(math.MaxUint32)
	for low < high {
		row := (low + high) / 2
		at, err := f.cells.FindData(delta.AppendKey(nil, uint32(row), mvcc.Max))
		if err != nil {
			return 0
		}
		if at >= number {
			high = row
		} else {
			low = row + 1
		}
	}
	return uint32(low)
}

// hole adds a hole in a file: rows from to to, after the change before, and before the change
// after. before is nil at the start of the file, after at its end. For the rows of these two
// changes it is known in which time the missing changes are.
func (c *Changes) hole(f *deltaFile, from, to uint32, before, after *change.Delta) {
	h := f.missing
	h.From, h.To, h.Part = from, to, f.part
	older, newer := after, before // of the neighbors: undos are newest first
	if !h.Undo {
		older, newer = before, after
	}
	for _, d := range []*change.Delta{before, after} {
		if d == nil || d.Row < h.From || d.Row > h.To || d.Row != from && d.Row != to {
			continue
		}
		edge := h
		edge.From, edge.To = d.Row, d.Row
		if older != nil && older.Row == d.Row {
			edge.Min = max(edge.Min, older.TS)
		}
		if newer != nil && newer.Row == d.Row {
			edge.Max = min(edge.Max, newer.TS)
		}
		c.holes = append(c.holes, edge)
		switch {
		case h.From == h.To:
			return
		case d.Row == h.From:
			h.From++
		default:
			h.To--
		}
	}
	c.holes = append(c.holes, h)
}

// Collect returns the changes of rows [from, from+n) that can be read: undos by row, newest first;
// redos by row, oldest first. Slices and lists belong to the caller. An error means that a cblock
// can no longer be read that could be read before.
func (c *Changes) Collect(from batch.Ordinal, n int) (undo, redo []Change, err error) {
	to := uint64(from) + uint64(n)
	for _, f := range c.files {
		list := &redo
		if f.missing.Undo {
			list = &undo
		}
		if *list, err = f.collect(*list, c.d.Schema, uint64(from), to); err != nil {
			return nil, nil, err
		}
	}
	for _, b := range c.d.Metadata.Births {
		for _, d := range b.AppendUndos(nil, uint64(from), to) {
			undo = append(undo, Change{d, math.MaxInt, 0})
		}
	}
	slices.SortStableFunc(undo, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(b.TS, a.TS), cmp.Compare(a.File, b.File))
	})
	slices.SortStableFunc(redo, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.TS, b.TS), cmp.Compare(a.File, b.File))
	})
	return undo, redo, nil
}

// collect appends the changes of rows [from, to) in file order.
func (f *deltaFile) collect(dst []Change, s *schema.Schema, from, to uint64) (_ []Change, err error) {
	first, _ := slices.BinarySearchFunc(f.blocks, from, func(b deltaBlock, from uint64) int {
		return cmp.Compare(uint64(b.high), from)
	})
	for _, b := range f.blocks[first:] {
		if uint64(b.low) >= to {
			break
		}
		if f.at != b.number {
			if f.last, err = f.read(b.number, s); err != nil {
				return nil, err
			}
			f.at = b.number
		}
		i, _ := slices.BinarySearchFunc(f.last, from, func(d change.Delta, from uint64) int {
			return cmp.Compare(uint64(d.Row), from)
		})
		for ; i < len(f.last) && uint64(f.last[i].Row) < to; i++ {
			dst = append(dst, Change{f.last[i], f.missing.File, b.part})
		}
	}
	return dst, nil
}
