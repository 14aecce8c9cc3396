package rewrite

import (
	"cmp"
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/schema"
)

// version is one copy of a row, folded: its newest cells, the changes that lead back from them, and
// the DELETE that ended it.
type version struct {
	head    *head          // whose row it is
	cells   [][]byte       // by index in the schema; nil for NULL
	changed []bool         // cells that redos set; nil if it does not matter
	undo    []change.Delta // newest first
	deleted *change.Delta  // the DELETE that no REINSERT followed; nil for a live row

	folded []change.Delta // memory of undo, which fold reuses
}

// folder applies redos to cells and makes undos from them. The lists that it makes are in its
// buffers, which their user takes and returns.
type folder struct {
	schema  *schema.Schema
	index   func(schema.ColumnID) int // of a cell; negative for columns that are ignored
	lists   []byte                    // the buffer that lists are appended to
	full    [][]byte                  // buffers of earlier lists
	spare   [][]byte
	updates uint64   // number of lists that update was called with
	setBy   []uint64 // by column: the number of the list that set it last
	fresh   []change.Delta
}

func newFolder(s *schema.Schema) folder {
	return folder{schema: s, index: s.IndexID, setBy: make([]uint64, len(s.Columns))}
}

const listBufferBytes = 64 << 10

// begin makes room for a new list and returns its position in f.lists.
func (f *folder) begin() int {
	if cap(f.lists)-len(f.lists) >= 256 {
		return len(f.lists)
	}
	if len(f.lists) > 0 {
		f.full = append(f.full, f.lists)
	}
	if n := len(f.spare); n > 0 {
		f.lists, f.spare = f.spare[n-1], f.spare[:n-1]
	} else {
		f.lists = make([]byte, 0, listBufferBytes)
	}
	return 0
}

// list ends the change list that was appended to f.lists from start on.
func (f *folder) list(start int) change.List {
	return change.List(f.lists[start:len(f.lists):len(f.lists)])
}

// bytes returns about how many bytes the lists take that were made since take.
func (f *folder) bytes() int { return len(f.full)*listBufferBytes + len(f.lists) }

// take appends the buffers of all lists that were made since the last call to dst. Their memory
// remains unchanged until reuse.
func (f *folder) take(dst [][]byte) [][]byte {
	if len(f.lists) > 0 {
		f.full, f.lists = append(f.full, f.lists), nil
	}
	dst = append(dst, f.full...)
	f.full = f.full[:0]
	return dst
}

// reuse invalidates the lists in buffers and reuses their memory.
func (f *folder) reuse(buffers [][]byte) {
	for _, b := range buffers {
		f.spare = append(f.spare, b[:0])
	}
}

// fold applies redos, oldest first, to v.cells and inserts their undos before v.undo. It changes
// v.cells in place. v.undo is unchanged if no redo makes an undo; otherwise it is in v's own
// memory. Source: tablet spec §13.4.
func (f *folder) fold(v *version, redo []change.Delta) error {
	before := f.updates
	clear(v.changed)
	fresh := f.fresh[:0] // oldest first
	for i := range redo {
		m := &redo[i]
		switch kind := m.List.Kind(); {
		case kind == change.Update && v.deleted == nil:
			if list := f.update(v.cells, m.List, change.Update); list != nil {
				fresh = append(fresh, change.Delta{TS: m.TS, List: list})
			}
		case kind == change.Delete && v.deleted == nil:
			v.deleted = m
		case kind == change.Reinsert && v.deleted != nil:
			back := f.update(v.cells, m.List, change.Reinsert)
			fresh = append(fresh, change.Delta{TS: v.deleted.TS, List: back}, change.Delta{TS: m.TS, List: deleteList})
			v.deleted = nil
		default:
			return fault.Corruptf("the changes of a row contradict each other: %v at timestamp %d", kind, uint64(m.TS))
		}
	}
	f.fresh = fresh
	if len(fresh) == 0 {
		return nil
	}
	for i := range v.changed {
		v.changed[i] = f.setBy[i] > before
	}
	slices.Reverse(fresh)
	v.folded = append(append(v.folded[:0], fresh...), v.undo...)
	v.undo = v.folded
	// A major compaction of some columns leaves undos of these that are younger than redos of other
	// columns. Undos of one column, and those that begin or end a row, are in the right order
	// already. A stable sort keeps it.
	newestFirst := func(a, b change.Delta) int { return cmp.Compare(b.TS, a.TS) }
	if !slices.IsSortedFunc(v.undo, newestFirst) {
		slices.SortStableFunc(v.undo, newestFirst)
	}
	return nil
}

var deleteList = change.List(change.AppendDelete(nil))

// update sets the listed cells and returns an UPDATE or a REINSERT, by kind, of their old values.
// It returns nil for an UPDATE that lists none of the folder's columns. A column that the list sets
// twice is in the result once, with its value before the list. A column that a REINSERT does not
// list keeps its cell, so the result need not list it either.
func (f *folder) update(cells [][]byte, list change.List, kind change.Kind) change.List {
	start := f.begin()
	f.lists = change.AppendUpdateHeader(f.lists, kind)
	empty := len(f.lists)
	f.updates++
	for r := list.Columns(); ; {
		id, cell, ok := r.Next()
		if !ok {
			break
		}
		i := f.index(id)
		if i < 0 {
			continue
		}
		if f.setBy[i] != f.updates {
			f.lists = change.AppendColumn(f.lists, id, cells[i])
			f.setBy[i] = f.updates
		}
		cells[i] = cell
	}
	if len(f.lists) == empty && kind == change.Update {
		f.lists = f.lists[:start]
		return nil
	}
	return f.list(start)
}

// appendReinsert appends a REINSERT with all columns but the key.
func (f *folder) appendReinsert(dst []byte, cells [][]byte) []byte {
	dst = change.AppendUpdateHeader(dst, change.Reinsert)
	for i := f.schema.Keys; i < len(cells); i++ {
		dst = change.AppendColumn(dst, f.schema.Columns[i].ID, cells[i])
	}
	return dst
}

// chain joins the copies of one key, of which all but the newest are ghosts, into the newest: the
// end of each older copy becomes a REINSERT of its last cells, followed by its own undos.
//
//	older  |ins----upd-----del|
//	newer                          |ins------upd---
//	undo of the result, newest first: upd, DELETE @ins, REINSERT @del, upd, DELETE @ins
//
// The lifetime of one copy may also contain the lifetime of another, if copies that were not
// adjacent in time have been merged before:
//
//	merged |ins--del|                  |ins------upd---
//	other           |ins-----del|
//
// Source: tablet spec §13.5, except that undos of one timestamp are sorted here, see mergeUndos.
func (f *folder) chain(copies []version) (*version, error) {
	slices.SortStableFunc(copies, func(a, b version) int { return compareAges(&b, &a) })
	newest := &copies[0]
	for i := range copies[1:] {
		old := &copies[1+i]
		if old.deleted == nil {
			return nil, fault.Corruptf("one key is live in two rowsets")
		}
		start := f.begin()
		f.lists = f.appendReinsert(f.lists, old.cells)
		end := change.Delta{TS: old.deleted.TS, List: f.list(start)}
		newest.undo = mergeUndos(newest.undo, append([]change.Delta{end}, old.undo...))
	}
	if invariant.Enabled && !slices.IsSortedFunc(newest.undo,
		func(a, b change.Delta) int { return cmp.Compare(b.TS, a.TS) }) {
		panic("rewrite: undos are not in descending order of time")
	}
	return newest, nil
}

// mergeUndos joins the undos of two copies of a row, newest first.
//
// One batch may delete a key, which ends one copy, and insert it again, which begins another: both
// have undos at its timestamp. The undos of the insertion must come before those that lead back
// into the older copy. Otherwise the row would end as deleted. The undos of the copy that began at
// a timestamp are those that end, at that timestamp, in a DELETE; at most one of two copies existed
// before.
func mergeUndos(a, b []change.Delta) []change.Delta {
	out := make([]change.Delta, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		na, nb := sameTime(a), sameTime(b)
		switch c := cmp.Compare(a[0].TS, b[0].TS); {
		case c < 0, c == 0 && a[na-1].List.Kind() != change.Delete:
			out, b = append(out, b[:nb]...), b[nb:]
		default:
			out, a = append(out, a[:na]...), a[na:]
		}
	}
	return append(append(out, a...), b...)
}

// sameTime returns how many of the first undos have the timestamp of the first.
func sameTime(undo []change.Delta) int {
	n := 1
	for n < len(undo) && undo[n].TS == undo[0].TS {
		n++
	}
	return n
}

// compareAges orders copies by when they ended; a live one is last.
//
// Two copies may have ended at one timestamp: a batch deleted the row in a rowset, inserted the key
// again and deleted that row too. The second row is dropped with its MemRowSet, unless that had a
// ghost of the key, which then has a REINSERT. The copy that the batch began, or began again, is
// the younger one. As in mergeUndos, its undos at that timestamp end in a DELETE; the other copy
// existed before.
func compareAges(a, b *version) int {
	switch {
	case a.deleted == nil && b.deleted == nil:
		return 0
	case a.deleted == nil:
		return 1
	case b.deleted == nil:
		return -1
	}
	if c := cmp.Compare(a.deleted.TS, b.deleted.TS); c != 0 {
		return c
	}
	switch began := a.beganAtItsEnd(); {
	case began == b.beganAtItsEnd():
		return 0
	case began:
		return 1
	}
	return -1
}

// beganAtItsEnd reports whether the copy began at the timestamp at which it was deleted.
func (v *version) beganAtItsEnd() bool {
	return len(v.undo) > 0 && v.undo[0].TS == v.deleted.TS && v.undo[sameTime(v.undo)-1].List.Kind() == change.Delete
}
