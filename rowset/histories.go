package rowset

import (
	"unsafe"

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
	base, err := d.newBaseReader(allColumns(len(d.columns)), keptWindows)
	if err != nil {
		return nil, err
	}
	h := &Histories{base: base, changes: d.Tracker().NewCollector(snap)}
	for i := range h.rows {
		h.rows[i].Batch = &batch.RecordBatch{}
	}
	return h, nil
}

// HistoriesBytes estimates the memory that the rowset's Histories needs, for windows of rows and for
// the cblocks that the columns' readers keep. Errors: ErrCorrupt.
func (d *DiskRowSet) HistoriesBytes() (int64, error) {
	m := d.Metadata()
	var cols []int
	row := int64(unsafe.Sizeof([]byte{})) // the key
	for i := range d.Schema.Columns {
		cols = append(cols, i)
		if t := d.Schema.Columns[i].Type; t.Variable() {
			row += int64(unsafe.Sizeof([]byte{}))
		} else {
			row += int64(t.Width())
		}
	}
	rows, err := d.windowOf(func() []int { return cols }, d.Tracker())
	if err != nil {
		return 0, err
	}
	n := min(int64(rows), m.Rows)
	row += int64(unsafe.Sizeof(change.Delta{})) + 2*m.Bytes/max(m.Rows, 1)
	kept := min(keptBytes*int64(len(cols)), 3*m.Bytes) // as stored, and decompressed to about twice that
	return kept + keptWindows*n*row, nil
}

// keptBytes is about how much memory the reader of a column needs: two cblocks, each of them twice.
const keptBytes = 4 * (256 << 10)

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
