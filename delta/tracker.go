package delta

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Tracker is the list of all stores of deltas of one rowset at one time. It is immutable: a flush
// or a compaction makes a new one. What it answers for a snapshot can be repeated, whatever is
// applied to its MemStore concurrently, provided that everything before the snapshot is published.
// Source: tablet spec §7.2.
type Tracker struct {
	// Schema is what change lists in files are checked against. Columns that it does not have are
	// taken for dropped. nil checks the form of lists, not the values in them.
	Schema *schema.Schema

	Undo []*File   // newest first
	Redo []*File   // oldest first
	Mem  *MemStore // takes the changes; nil while there are none
}

// noSchema has no column at all.
var noSchema = &schema.Schema{}

func (t *Tracker) schema() *schema.Schema {
	if t.Schema == nil {
		return noSchema
	}
	return t.Schema
}

// Live reports whether the row is there in its newest state, published or not. Errors: ErrCorrupt.
//
// It asks from the newest store to the oldest that has a delete or reinsert for a change of the
// row, and the first found decides: what is updated is there, and in no store can an older one
// override it. Source: tablet spec §7.3.
func (t *Tracker) Live(row batch.Ordinal) (bool, error) {
	if t.Mem != nil && t.Mem.deletedRow(row) {
		return false, nil
	}
	for i := len(t.Redo) - 1; i >= 0; i-- {
		f := t.Redo[i]
		if f.stats.Deletes == 0 && f.stats.Reinserts == 0 {
			continue
		}
		kind, err := t.newestKind(f, row)
		if err != nil || kind != 0 {
			return kind != change.Delete, err
		}
	}
	return true, nil
}

// newestKind returns the kind of a row's newest change in a file of redos, 0 if there is none.
func (t *Tracker) newestKind(f *File, row batch.Ordinal) (kind change.Kind, err error) {
	err = f.rowBack(uint32(row), mvcc.Everything, false, t.schema(), func(d change.Delta) bool {
		kind = d.List.Kind()
		return false
	})
	return kind, err
}

// RowAt stores in r what the changes make of one row as of snap: r is reset first, then what
// counts, from the newest store back to the oldest, until nothing is left open. Without a store
// that matters to snap nothing is read or allocated. Errors: ErrCorrupt. Source: tablet spec §8.3.
func (t *Tracker) RowAt(row batch.Ordinal, snap mvcc.Snapshot, r *RowState) error {
	r.Reset()
	if t.Mem.relevant(snap) {
		t.Mem.rowBack(row, snap, r)
	}
	for _, f := range slices.Backward(t.Redo) {
		if f.redoRelevant(snap) {
			if err := t.fileRow(f, row, snap, false, r); err != nil {
				return err
			}
		}
	}
	for _, f := range slices.Backward(t.Undo) {
		if f.undoRelevant(snap) {
			if err := t.fileRow(f, row, snap, true, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileRow applies what counts of a row in one file and still matters.
func (t *Tracker) fileRow(f *File, row batch.Ordinal, snap mvcc.Snapshot, undo bool, r *RowState) error {
	if r.complete(&f.stats) {
		return nil
	}
	return f.rowBack(uint32(row), snap, undo, t.schema(), func(d change.Delta) bool {
		r.applyBack(d.List)
		return !r.complete(&f.stats)
	})
}

// counts reports whether a change at ts is to be applied to reach snap from the base: a redo that
// the snapshot sees, an undo of what it does not see. Source: tablet spec §8.2.
func counts(ts mvcc.Timestamp, snap mvcc.Snapshot, undo bool) bool { return snap.Sees(ts) != undo }

// MaxTimestamp is the newest timestamp of all redos, mvcc.Min if there is none: no change to the
// rows is newer.
func (t *Tracker) MaxTimestamp() mvcc.Timestamp {
	newest := mvcc.Min
	for _, f := range t.Redo {
		newest = max(newest, f.stats.Max)
	}
	if t.Mem != nil {
		newest = max(newest, t.Mem.MaxTimestamp())
	}
	return newest
}
