package memrowset

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
)

// HistoryIterator returns rows with all their changes, for a flush. Not for concurrent use; it
// needs no Close.
type HistoryIterator struct {
	walker
	snap   mvcc.Snapshot
	out    change.Rows
	images [][]byte
	buf    []byte // reinserts, which are stored as images
}

var deleteList = change.List(change.AppendDelete(nil))

// Histories returns an iterator, in key order, over all rows that were inserted below snap, with
// their changes below snap. The set is frozen, or all batches below snap have been applied.
func (m *MemRowSet) Histories(snap mvcc.Snapshot) *HistoryIterator {
	return &HistoryIterator{walker: m.newWalker(nil, nil, false), snap: snap, out: change.Rows{Batch: batch.New(m.schema.Columns, 0)}}
}

// Next returns the next rows, up to max of them; nil at the end. The error is always nil; other
// inputs of a flush or compaction read files.
//
// Base cells are those of the insertion. Undo has a DELETE at the insertion's timestamp for each
// row; Redo has all later changes, a REINSERT with all non-key columns. A row that only existed
// within one batch is omitted: no read ever sees it, and two deletes at one timestamp could not be
// distinguished later. The Rows are valid until the next call; keys, lists of updates and byte
// strings are never overwritten. Source: tablet spec §13.4.
func (it *HistoryIterator) Next(max int) (*change.Rows, error) {
	it.out.Keys, it.out.Undo, it.out.Redo = it.out.Keys[:0], it.out.Undo[:0], it.out.Redo[:0]
	it.images = it.images[:0]
	it.buf = nil // lists of the last call alias it
	for len(it.images) < max {
		items := it.next(max - len(it.images))
		if len(items) == 0 {
			break
		}
		for _, at := range items {
			it.add(at)
		}
	}
	if len(it.images) == 0 {
		return nil, nil
	}
	b := it.out.Batch
	b.Reset(len(it.images))
	for i, v := range b.Columns {
		it.m.rowFormat.Gather(it.images, i, v)
	}
	return &it.out, nil
}

// add adds one row to the output if it is in the snapshot.
func (it *HistoryIterator) add(at item) {
	h := it.m.header(at.ref)
	inserted := h.ts()
	if !it.snap.Sees(inserted) {
		return
	}
	row := uint32(len(it.images))
	first := len(it.out.Redo)
	for ref := it.m.newest(at.ref); ref != 0; {
		l := it.m.link(ref)
		if it.snap.Sees(l.ts()) {
			it.out.Redo = append(it.out.Redo, change.Delta{Row: row, TS: l.ts(), List: it.list(l)})
		}
		ref = l.older()
	}
	changes := it.out.Redo[first:] // newest first
	if len(changes) > 0 && changes[0].TS == inserted && changes[0].List.Kind() == change.Delete {
		// Timestamps ascend along the chain: all changes are between the insertion and the last
		// one.
		it.out.Redo = it.out.Redo[:first]
		return
	}
	slices.Reverse(changes)
	it.images = append(it.images, h.image())
	it.out.Keys = append(it.out.Keys, h.key())
	it.out.Undo = append(it.out.Undo, change.Delta{Row: row, TS: inserted, List: deleteList})
}

// list returns a link's change as files contain it.
func (it *HistoryIterator) list(l link) change.List {
	switch l.kind() {
	case change.Delete:
		return deleteList
	case change.Reinsert:
		from := len(it.buf)
		it.buf = it.m.rowFormat.AppendReinsert(it.buf, l.image())
		return change.List(it.buf[from:len(it.buf):len(it.buf)])
	}
	return l.list()
}
