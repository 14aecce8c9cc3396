package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
)

// Histories iterates over all rows of a rowset with all their versions, in key order, as input of a
// compaction.
type Histories struct {
	base    *BaseReader
	changes *delta.Collector
	rows    [keptWindows]change.Rows // memory, used in turn
	turn    int
}

// keptWindows is the number of windows of Histories that are valid at a time.
const keptWindows = 2

// Histories returns an iterator that begins at the first row and omits redos that snap does not
// see. The caller must have a reference to the rowset.
func (d *DiskRowSet) Histories(snap mvcc.Snapshot) (*Histories, error) {
	all := make([]int, len(d.Schema.Columns))
	for i := range all {
		all[i] = i
	}
	base, err := d.newBaseReader(all, keptWindows)
	if err != nil {
		return nil, err
	}
	h := &Histories{base: base, changes: d.Tracker().NewCollector(snap)}
	for i := range h.rows {
		h.rows[i].Batch = &batch.RecordBatch{}
	}
	return h, nil
}

// First returns the key of the first row.
func (h *Histories) First() []byte { return h.base.d.Metadata().MinKey }

// Keeps returns the number of windows that are valid at a time, the last one included.
func (h *Histories) Keeps() int { return keptWindows }

// Next returns up to one window of rows, nil at the end. The rows, with keys, cells and lists, are
// valid until the second next call.
func (h *Histories) Next() (*change.Rows, error) {
	vectors, from, n, err := h.base.Next()
	if err != nil || n == 0 {
		return nil, err
	}
	d := h.base.d
	rows := &h.rows[h.turn]
	h.turn = (h.turn + 1) % len(h.rows)
	rows.Batch.Columns, rows.Batch.Len = vectors, n
	rows.Keys = change.AppendVectorKeys(rows.Keys[:0], d.encoder, vectors, 0, n)
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
