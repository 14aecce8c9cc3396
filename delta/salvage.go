package delta

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Hole is a range of rows of which a damaged file may have had changes that cannot be read.
type Hole struct {
	Block     block.ID
	File      int // position of the file, see SalvagedDelta
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

// Unread is a delta file that does not open. Nothing is known about the changes that Part does not
// have but the timestamps between which they are.
type Unread struct {
	Block    block.ID
	File     int // see SalvagedDelta
	Undo     bool
	Min, Max mvcc.Timestamp // inclusive
	Part     *File          // the file as OpenDamaged has opened it; nil if it could not
}

// OpenDamaged opens a delta file whose footer or index is damaged, by its cblocks. Nothing but a
// Salvager may use the File. src must stay open while it does. Errors: ErrCorrupt if no cblock can
// be read.
func OpenDamaged(src block.Source, o cfile.ReaderOptions) (*File, error) {
	f := &File{ID: src.ID(), size: src.Size(), src: src, opts: o}
	var err error
	if f.cells, err = cfile.OpenDamaged(src, o, cfile.Known{Type: schema.Binary, Rows: -1}); err != nil {
		return nil, fmt.Errorf("delta: %w", err)
	}
	if info := f.cells.Info(); info.Type != schema.Binary || info.Nullable || info.Encoding != schema.Plain {
		return nil, fault.Corruptf("delta: block %d: cells of type %s, encoding %s, nullable %v, are no deltas",
			f.ID, info.Type, info.Encoding, info.Nullable)
	}
	if message, ok := f.cells.Metadata(statsKey); ok {
		f.stats, err = decodeStats(message)
	}
	return f, err
}

// SalvagedDelta is a change and the position of its file among the files of redos, oldest first, or
// of undos, newest first. For each column and for the existence of a row, the changes of a file
// come after the changes of the files before it, in the direction of time in which they lead.
// Births and changes in memory have the last position.
//
// Part is the number of holes before it in the file. Among changes of one timestamp, only these
// positions say which come after a hole.
type SalvagedDelta struct {
	change.Delta
	File, Part int
}

// After reports whether a change at a position comes after the changes that are missing, if it is
// of the same row and column.
func (h *Hole) After(file, part int) bool {
	return file > h.File || file == h.File && part > h.Part
}

// Salvager reads all changes of a rowset with damaged delta files, in ascending windows of rows.
// Where a cblock is damaged, it continues after it. Not for concurrent use.
type Salvager struct {
	t     *Tracker
	holes []Hole
	files []salvagedFile
	rows  []memRow
}

// salvagedFile is a delta file with the bounds of those cblocks that can be read.
type salvagedFile struct {
	file   *File
	undo   bool
	number int // see SalvagedDelta

	missing Hole // what a change of it that cannot be read may be
	blocks  []salvagedBlock
	last    *deltaBlock // cblock number at
	at      int
	part    int // of the next cblock
}

type salvagedBlock struct {
	number    int
	part      int
	low, high uint32
}

// Salvager reads all delta files once and returns a Salvager, with the holes in them and those that
// unread files leave.
//
// number returns the position of a file, see SalvagedDelta.
func (t *Tracker) Salvager(unread []Unread, number func(id block.ID) int) *Salvager {
	s := &Salvager{t: t}
	for _, u := range unread {
		if u.Part == nil {
			s.holes = append(s.holes, u.hole())
			continue
		}
		s.add(salvagedFile{file: u.Part, undo: u.Undo, number: u.File, missing: u.hole()})
	}
	for i, list := range [2][]*File{t.Undo, t.Redo} {
		for _, f := range list {
			out := salvagedFile{file: f, undo: i == 0, number: number(f.ID)}
			if _, err := f.cells.DataBlocks(); err != nil { // the index is damaged
				if g, err := OpenDamaged(f.src, f.opts); err == nil {
					out.file = g
				}
			}
			out.missing = out.hole()
			s.add(out)
		}
	}
	return s
}

// hole returns a hole of all changes of the file.
func (u *Unread) hole() Hole {
	return Hole{Block: u.Block, File: u.File, Undo: u.Undo, To: math.MaxUint32, Min: u.Min, Max: u.Max,
		Existence: true, All: true}
}

// hole returns a hole of all changes of a file with statistics.
func (f *salvagedFile) hole() Hole {
	st := &f.file.stats
	h := Hole{Block: f.file.ID, File: f.number, Undo: f.undo, To: math.MaxUint32, Min: st.Min, Max: st.Max,
		Existence: st.Deletes+st.Reinserts > 0}
	for _, c := range st.Columns {
		if c.Updates > 0 {
			h.Columns = append(h.Columns, c.ID)
		}
	}
	return h
}

// Holes returns where changes cannot be read.
func (s *Salvager) Holes() []Hole { return s.holes }

// add finds the cblocks of a file that can be read. A hole reaches from its first row, which the
// index has, to the first one after it, since the changes of a row may end in the next cblock.
func (s *Salvager) add(out salvagedFile) {
	f := out.file
	out.at = -1
	n, err := f.cells.DataBlocks()
	if err != nil {
		s.hole(&out, 0, math.MaxUint32, nil, nil)
		return
	}
	low, from, broken := uint32(0), uint32(0), false
	var last *change.Delta // before the hole
	for i := range n {
		b, err := f.block(i, s.t.schema(), new(blockLender))
		if err != nil || b.deltas == 0 || b.low < low {
			if !broken {
				from = max(low, f.firstRow(i))
			}
			broken = true
			continue
		}
		if broken {
			s.hole(&out, from, b.low, last, &change.Delta{Row: b.low, TS: b.ts(0)})
			broken = false
			out.part++
		}
		low = b.high
		last = &change.Delta{Row: b.high, TS: b.ts(b.deltas - 1)}
		out.blocks = append(out.blocks, salvagedBlock{i, out.part, b.low, b.high})
	}
	if broken {
		s.hole(&out, from, math.MaxUint32, last, nil)
	}
	s.files = append(s.files, out)
}

// firstRow returns the first row of data cblock i according to the index, 0 if that does not say.
func (f *File) firstRow(i int) uint32 {
	low, high := uint64(0), uint64(maxRow)
	for low < high {
		row := (low + high) / 2
		at, err := f.cells.FindData(appendKey(nil, uint32(row), mvcc.Max))
		if err != nil {
			return 0
		}
		if at >= i {
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
func (s *Salvager) hole(in *salvagedFile, from, to uint32, before, after *change.Delta) {
	h, undo := in.missing, in.undo
	h.From, h.To, h.Part = from, to, in.part
	older, newer := after, before // of the neighbors: undos are newest first
	if !undo {
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
		s.holes = append(s.holes, edge)
		switch {
		case h.From == h.To:
			return
		case d.Row == h.From:
			h.From++
		default:
			h.To--
		}
	}
	s.holes = append(s.holes, h)
}

// Collect returns the changes of rows [from, from+n) that can be read, as Collector.Collect does:
// undos by row, newest first; redos by row, oldest first. Slices and lists belong to the caller. An
// error means that a cblock can no longer be read that could be read before.
func (s *Salvager) Collect(from batch.Ordinal, n int) (undo, redo []SalvagedDelta, err error) {
	to := uint64(from) + uint64(n)
	for i := range s.files {
		f := &s.files[i]
		list := &redo
		if f.undo {
			list = &undo
		}
		if *list, err = f.collect(*list, s.t.schema(), uint64(from), to); err != nil {
			return nil, nil, err
		}
	}
	for _, b := range birthsOf(s.t.births, uint64(from), to) {
		undo = appendSalvaged(undo, b.AppendUndos(nil, uint64(from), to), math.MaxInt, 0)
	}
	if m := s.t.Mem; m != nil {
		s.rows = m.appendRows(s.rows[:0], from, to)
		for _, r := range s.rows {
			list, _ := m.appendChanges(nil, nil, r.row, newestBefore(m.changes, r.newest, mvcc.Everything))
			redo = appendSalvaged(redo, list, math.MaxInt, 0)
		}
	}
	slices.SortStableFunc(undo, func(a, b SalvagedDelta) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(b.TS, a.TS), cmp.Compare(a.File, b.File))
	})
	slices.SortStableFunc(redo, func(a, b SalvagedDelta) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.TS, b.TS), cmp.Compare(a.File, b.File))
	})
	return undo, redo, nil
}

func appendSalvaged(dst []SalvagedDelta, list []change.Delta, file, part int) []SalvagedDelta {
	for _, d := range list {
		dst = append(dst, SalvagedDelta{d, file, part})
	}
	return dst
}

// collect appends the changes of rows [from, to) in file order.
func (f *salvagedFile) collect(dst []SalvagedDelta, s *schema.Schema, from, to uint64) (_ []SalvagedDelta, err error) {
	first, _ := slices.BinarySearchFunc(f.blocks, from, func(b salvagedBlock, from uint64) int {
		return cmp.Compare(uint64(b.high), from)
	})
	for _, b := range f.blocks[first:] {
		if uint64(b.low) >= to {
			break
		}
		if f.at != b.number {
			if f.last, err = f.file.block(b.number, s, new(blockLender)); err != nil {
				return nil, err
			}
			f.at = b.number
		}
		i := f.last.atOrAfter(0, from)
		if j := f.last.atOrAfter(i, to); i < j {
			dst = appendSalvaged(dst, f.last.appendEntries(nil, i, j, mvcc.Everything), f.number, b.part)
		}
	}
	return dst, nil
}
