package delta

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Tracker is the list of all delta stores of one rowset at one time. It is immutable: a flush or
// compaction makes a new one. Reads at a snapshot are repeatable, whatever is concurrently applied
// to its MemStore, provided that all batches before the snapshot are published. Source: tablet spec
// §7.2.
type Tracker struct {
	// Schema is the schema that change lists in files are checked against. Columns that it does not
	// have are treated as dropped. If it is nil, only the form of lists is checked, not their
	// values.
	Schema *schema.Schema

	Undo []*File   // newest first
	Redo []*File   // oldest first
	Mem  *MemStore // takes new changes; nil if the rowset is not open in a store

	births []Birth
	newest mvcc.Timestamp // of births
}

// SetBirths sets the births of the rows, which apply after all undos in files. They must be as
// CheckBirths requires. It is called before the Tracker is used.
func (t *Tracker) SetBirths(births []Birth) {
	t.births, t.newest = births, mvcc.Min
	for _, b := range births {
		t.newest = max(t.newest, b.TS)
	}
}

// birthsSince returns the births, nil if snap sees them all.
func (t *Tracker) birthsSince(snap mvcc.Snapshot) []Birth {
	if len(t.births) == 0 || snap.Sees(t.newest) {
		return nil
	}
	return t.births
}

// noSchema has no columns.
var noSchema = &schema.Schema{}

func (t *Tracker) schema() *schema.Schema {
	if t.Schema == nil {
		return noSchema
	}
	return t.Schema
}

// Live reports whether the newest version of the row exists, published or not. Errors: ErrCorrupt.
//
// It searches the stores that have a delete or reinsert from the newest to the oldest for a change
// of the row. The first one found decides: a row that is updated exists, and no older store has a
// newer change. Source: tablet spec §7.3.
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

// newestKind returns the kind of a row's newest change in a file of redos, or 0 if the file has no
// change of the row.
func (t *Tracker) newestKind(f *File, row batch.Ordinal) (kind change.Kind, err error) {
	err = f.rowBack(uint32(row), mvcc.Everything, false, t.schema(), func(d change.Delta) bool {
		kind = d.List.Kind()
		return false
	})
	return kind, err
}

// RowAt resets r and applies to it the changes of one row as of snap, from the newest store to the
// oldest, until older changes can have no effect. If no store applies to snap, nothing is read or
// allocated. Errors: ErrCorrupt. Source: tablet spec §8.3.
func (t *Tracker) RowAt(row batch.Ordinal, snap mvcc.Snapshot, r *RowState) error {
	r.Reset()
	if t.Mem.relevant(snap) {
		t.Mem.rowBack(row, snap, r)
	}
	for _, f := range slices.Backward(t.Redo) {
		if f.has(filter{kind: redos, to: snap}) {
			if err := t.fileRow(f, row, snap, false, r); err != nil {
				return err
			}
		}
	}
	r.redos = r.applied
	for _, b := range birthsOf(t.birthsSince(snap), uint64(row), uint64(row)+1) {
		if applies(b.TS, snap, true) {
			r.applyBack(deleteList)
		}
	}
	for _, f := range slices.Backward(t.Undo) {
		if f.has(filter{kind: undos, to: snap}) {
			if err := t.fileRow(f, row, snap, true, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileRow applies those changes of a row in one file that can have an effect on r.
func (t *Tracker) fileRow(f *File, row batch.Ordinal, snap mvcc.Snapshot, undo bool, r *RowState) error {
	if r.complete(&f.stats) {
		return nil
	}
	return f.rowBack(uint32(row), snap, undo, t.schema(), func(d change.Delta) bool {
		r.applyBack(d.List)
		return !r.complete(&f.stats)
	})
}

// applies reports whether a change at ts must be applied to the base to reach snap: a redo that the
// snapshot sees, or an undo that it does not. Source: tablet spec §8.2.
func applies(ts mvcc.Timestamp, snap mvcc.Snapshot, undo bool) bool { return snap.Sees(ts) != undo }

// AllDead reports whether all of the rowset's rows, of which there are so many, are deleted, and since
// when. It reads no file.
func (t *Tracker) AllDead(rows int64) (ts mvcc.Timestamp, ok bool) {
	for _, f := range t.Redo {
		rows -= f.stats.Deletes - f.stats.Reinserts
	}
	if t.Mem != nil && rows > 0 {
		rows -= t.Mem.Deleted()
	}
	if rows != 0 {
		return 0, false
	}
	return t.MaxTimestamp(), true
}

// MaxTimestamp returns the newest timestamp of all redos, or mvcc.Min if the rowset has no redos.
// No change to the rows is newer.
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
