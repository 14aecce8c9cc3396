package compaction

import (
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// version is one copy of a row, folded: its newest cells, what leads back from them, and the DELETE
// that ended it.
type version struct {
	cells   [][]byte       // by index in the schema; nil = NULL
	undo    []change.Delta // newest first
	deleted *change.Delta  // the DELETE that no REINSERT followed; nil for a live row
}

// folder brings redos into cells and makes undos of them. The lists it makes lie in buffers that
// are never reused.
type folder struct {
	schema  *schema.Schema
	index   func(schema.ColumnID) int // of a cell; negative for columns that are left alone
	lists   []byte
	updates uint64   // lists that update has been given
	setBy   []uint64 // by column: the number of the list that set it last
}

func newFolder(s *schema.Schema) folder {
	return folder{schema: s, index: s.IndexID, setBy: make([]uint64, len(s.Columns))}
}

const listBufferBytes = 64 << 10

// list ends the change list that was appended to f.lists from start on.
func (f *folder) list(start int) change.List {
	return change.List(f.lists[start:len(f.lists):len(f.lists)])
}

// begin makes room for a new list and tells where it starts.
func (f *folder) begin() int {
	if cap(f.lists)-len(f.lists) < 256 {
		f.lists = make([]byte, 0, listBufferBytes)
	}
	return len(f.lists)
}

// fold applies redos, oldest first, to v.cells and puts the undos that they make before v.undo.
// v.cells is changed in place. Source: tablet spec §13.4.
func (f *folder) fold(v *version, redo []change.Delta) error {
	var fresh []change.Delta // oldest first
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
			return fault.Corruptf("a row's changes do not follow one another: %v at timestamp %d", kind, uint64(m.TS))
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	slices.Reverse(fresh)
	v.undo = append(fresh, v.undo...)
	// A major compaction of some columns leaves undos of these that are younger than redos of
	// others. Undos of one column, and those that end or begin a row, stand in the right order
	// already, and keep it.
	newestFirst := func(a, b change.Delta) int { return compareTimestamps(b.TS, a.TS) }
	if !slices.IsSortedFunc(v.undo, newestFirst) {
		slices.SortStableFunc(v.undo, newestFirst)
	}
	return nil
}

var deleteList = change.List(change.AppendDelete(nil))

// update sets the listed cells and returns an UPDATE or REINSERT, as kind says, of what they were
// before; nil for an UPDATE when no listed column is one of the folder's. A column that stands
// twice in the list stands once in the result, with what it was before the first. A column that a
// REINSERT does not list keeps its cell, so what leads back need not list it either.
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
// A copy may also lie within another one, when copies that were not next to one another in time
// have been merged before:
//
//	merged |ins--del|                  |ins------upd---
//	other           |ins-----del|
//
// Source: tablet spec §13.5, save that undos of one timestamp are put in order here, see
// mergeUndos.
func (f *folder) chain(copies []version) (version, error) {
	slices.SortStableFunc(copies, func(a, b version) int { return compareAges(&b, &a) })
	newest := copies[0]
	for _, old := range copies[1:] {
		if old.deleted == nil {
			return version{}, fault.Corruptf("one key is live in two rowsets")
		}
		start := f.begin()
		f.lists = f.appendReinsert(f.lists, old.cells)
		end := change.Delta{TS: old.deleted.TS, List: f.list(start)}
		newest.undo = mergeUndos(newest.undo, append([]change.Delta{end}, old.undo...))
	}
	if invariant.Enabled && !slices.IsSortedFunc(newest.undo, func(a, b change.Delta) int { return compareTimestamps(b.TS, a.TS) }) {
		panic("compaction: undos are not in falling order of time")
	}
	return newest, nil
}

// mergeUndos joins the undos of two copies of a row, newest first.
//
// One batch may delete a key, which ends one copy, and insert it again, which begins another: both
// have undos at its timestamp. What leads back to before the insertion has to come before what
// leads back into the older copy, or the row would end as deleted. The undos of the copy that began
// at a timestamp are those that end, at that timestamp, in a DELETE; of two copies at most one was
// there before.
func mergeUndos(a, b []change.Delta) []change.Delta {
	out := make([]change.Delta, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		na, nb := sameTime(a), sameTime(b)
		switch c := compareTimestamps(a[0].TS, b[0].TS); {
		case c < 0, c == 0 && a[na-1].List.Kind() != change.Delete:
			out, b = append(out, b[:nb]...), b[nb:]
		default:
			out, a = append(out, a[:na]...), a[na:]
		}
	}
	return append(append(out, a...), b...)
}

// sameTime is how many of the first undos have the timestamp of the first.
func sameTime(undo []change.Delta) int {
	n := 1
	for n < len(undo) && undo[n].TS == undo[0].TS {
		n++
	}
	return n
}

// compareAges orders copies by when they ended; a live one is last.
//
// Two may have ended at one timestamp: a batch deleted the row in a rowset, inserted the key again
// and deleted that too. Such a row is dropped with the MemRowSet that it is in, unless there was a
// ghost of the key, which goes on as a REINSERT. The copy that the batch began, or began again, is
// the younger one. As in mergeUndos, its undos at that timestamp end in a DELETE; the other was
// there before.
func compareAges(a, b *version) int {
	switch {
	case a.deleted == nil && b.deleted == nil:
		return 0
	case a.deleted == nil:
		return 1
	case b.deleted == nil:
		return -1
	}
	if c := compareTimestamps(a.deleted.TS, b.deleted.TS); c != 0 {
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

// beganAtItsEnd tells whether the copy was not there before the timestamp at which it was deleted.
func (v *version) beganAtItsEnd() bool {
	return len(v.undo) > 0 && v.undo[0].TS == v.deleted.TS && v.undo[sameTime(v.undo)-1].List.Kind() == change.Delete
}

func compareTimestamps(a, b mvcc.Timestamp) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// keepUndos is the undos, newest first, that reads at floor or later need: an undo at ts leads to
// what was before ts, which a read at ts or later never asks for.
func keepUndos(undo []change.Delta, floor mvcc.Timestamp) []change.Delta {
	for i := range undo {
		if undo[i].TS <= floor {
			return undo[:i]
		}
	}
	return undo
}
