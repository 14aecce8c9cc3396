package memrowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// HistoryIterator returns rows with all their changes, for a flush. Not for concurrent use; it
// needs no Close.
type HistoryIterator struct {
	walker
	as      mvcc.Snapshot
	windows [keptWindows]window // used in turn
	turn    int
}

// keptWindows is the number of results of Next that are valid at a time.
const keptWindows = 2

// window is the memory of one result of Next.
type window struct {
	rows   change.Rows
	images [][]byte
	buf    []byte // lists of changes that are stored as images
}

var deleteList = change.List(change.AppendDelete(nil))

// Histories returns an iterator, in key order, over all rows that were inserted below snap, with
// their changes below snap. The set is frozen, or all batches below snap have been applied.
func (m *MemRowSet) Histories(snap mvcc.Snapshot) *HistoryIterator {
	it := &HistoryIterator{walker: m.newWalker(mvcc.Nothing, nil, nil, false), as: snap}
	for i := range it.windows {
		it.windows[i].rows.Batch = batch.New(m.schema.Columns, 0)
	}
	return it
}

// Schema returns the schema of the rows.
func (it *HistoryIterator) Schema() *schema.Schema { return it.m.schema }

// Keeps returns how many results of Next are valid at a time, the last one included.
func (it *HistoryIterator) Keeps() int { return keptWindows }

// Next returns the next rows, up to max of them; nil at the end. The error is always nil; other
// inputs of a flush or compaction read files.
//
// The base cells are the cells at the insertion. Undo has a DELETE at the insertion's timestamp for
// each row; Redo has all later changes, a REINSERT with all non-key columns and a replacement as
// the UPDATE of all of them. A row that only existed within one batch is omitted: no read ever sees
// it, and two deletes at one timestamp could not be distinguished later. The Rows are valid until
// the next call but one, see Keeps; keys, lists of updates and byte strings are never overwritten.
// Source: tablet spec §13.4.
func (it *HistoryIterator) Next(max int) (*change.Rows, error) {
	w := &it.windows[it.turn]
	it.turn = (it.turn + 1) % keptWindows
	out := &w.rows
	n := min(max, it.m.Len())
	out.Keys, out.Undo, out.Redo = slices.Grow(out.Keys[:0], n), slices.Grow(out.Undo[:0], n), out.Redo[:0]
	w.images = slices.Grow(w.images[:0], n)
	w.buf = nil // lists of earlier rows alias it
	for len(w.images) < max {
		refs := it.next(max - len(w.images))
		if len(refs) == 0 {
			break
		}
		for _, ref := range refs {
			it.add(w, ref)
		}
	}
	if len(w.images) == 0 {
		return nil, nil
	}
	out.Batch.Reset(len(w.images))
	for i, v := range out.Batch.Columns {
		it.m.rowFormat.Gather(w.images, i, v)
	}
	return out, nil
}

// add adds one row to the window if it is in the snapshot.
func (it *HistoryIterator) add(w *window, row arena.Ref) {
	h := it.m.header(row)
	inserted := h.ts()
	if !it.as.Sees(inserted) {
		return
	}
	out := &w.rows
	at := uint32(len(w.images))
	if ref := it.m.newest(row); ref != 0 && !it.addChanges(w, at, ref, inserted) {
		return
	}
	w.images = append(w.images, h.image())
	out.Keys = append(out.Keys, h.key())
	out.Undo = append(out.Undo, change.Delta{Row: at, TS: inserted, List: deleteList})
}

// addChanges adds the changes of a row that the snapshot sees, of which ref is the newest. It
// returns false if the row only existed within one batch.
func (it *HistoryIterator) addChanges(w *window, row uint32, ref arena.Ref, inserted mvcc.Timestamp) bool {
	out := &w.rows
	first := len(out.Redo)
	for ref != 0 {
		l := it.m.link(ref)
		if it.as.Sees(l.ts()) {
			out.Redo = append(out.Redo, change.Delta{Row: row, TS: l.ts(), List: it.list(w, l)})
		}
		ref = l.older()
	}
	changes := out.Redo[first:] // newest first
	if len(changes) > 0 && changes[0].TS == inserted && changes[0].List.Kind() == change.Delete {
		// Timestamps ascend along the chain: all changes are between the insertion and the last
		// one.
		out.Redo = out.Redo[:first]
		return false
	}
	slices.Reverse(changes)
	return true
}

// list returns a link's change as files contain it.
func (it *HistoryIterator) list(w *window, l link) change.List {
	switch l.kind() {
	case change.Delete:
		return deleteList
	case change.Update:
		return l.list()
	}
	from := len(w.buf)
	if l.kind() == change.Reinsert {
		w.buf = it.m.rowFormat.AppendReinsert(w.buf, l.image())
	} else {
		w.buf = it.m.rowFormat.AppendUpdate(w.buf, l.image())
	}
	return change.List(w.buf[from:len(w.buf):len(w.buf)])
}
