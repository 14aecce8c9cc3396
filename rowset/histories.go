package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
)

// Histories yields all rows of a rowset with all their versions, in key order: what a compaction
// takes.
type Histories struct {
	base    *BaseReader
	changes *delta.Collector
}

// Histories starts at the first row; redos at or after snap are left out. The caller holds a
// reference to the rowset.
func (d *DiskRowSet) Histories(snap mvcc.Snapshot) (*Histories, error) {
	all := make([]int, len(d.Schema.Columns))
	for i := range all {
		all[i] = i
	}
	base, err := d.NewBaseReader(all)
	if err != nil {
		return nil, err
	}
	return &Histories{base: base, changes: d.Tracker().NewCollector(snap)}, nil
}

// First is the key of the first row.
func (h *Histories) First() []byte { return h.base.d.Metadata().MinKey }

// Next gives up to one window of rows; nil at the end. Undo and Redo hold until the next call; the
// lists in them, keys and cells as long as they are referenced.
func (h *Histories) Next() (*change.Rows, error) {
	vectors, from, n, err := h.base.Next()
	if err != nil || n == 0 {
		return nil, err
	}
	d := h.base.d
	rows := &change.Rows{Batch: batch.New(d.Schema.Columns, 0)}
	rows.Batch.Columns, rows.Batch.Len = vectors, n
	rows.Keys = change.AppendVectorKeys(nil, d.encoder, vectors, 0, n)
	if rows.Undo, rows.Redo, err = h.changes.Collect(from, n); err != nil {
		return nil, err
	}
	for _, list := range [2][]change.Delta{rows.Undo, rows.Redo} {
		for i := range list {
			list[i].Row -= uint32(from)
		}
	}
	return rows, nil
}
