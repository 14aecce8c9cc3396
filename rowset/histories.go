package rowset

import (
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Histories iterates over all rows of a rowset with all their versions, in key order, as input of a
// compaction.
type Histories struct {
	base    *BaseReader
	changes *delta.Collector
	births  []delta.Birth
	windows [keptWindows]historyWindow // memory, used in turn
	turn    int                        // the next one
}

// historyWindow is the memory of a window.
type historyWindow struct {
	rows   change.Rows
	stored StoredRows
	batch  batch.RecordBatch
	births []delta.Birth  // memory
	undo   []change.Delta // memory of undos, including the undos of births
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
	h.births = h.changes.TakeBirths()
	return h, nil
}

// HistoriesBytes estimates the memory that the rowset's Histories needs, for windows of rows and for
// the cblocks that the columns' readers keep. Errors: ErrCorrupt.
func (d *DiskRowSet) HistoriesBytes() (int64, error) {
	m := d.Metadata()
	var cols []int
	row := int64(unsafe.Sizeof([]byte{})) // of the key
	var kept, dense int64
	for i := range d.Schema.Columns {
		cols = append(cols, i)
		block := columnBlockBytes(d.Schema, i)
		form := m.form(d.Schema.Columns[i].ID)
		if form != schema.DefaultCompression {
			block = max(block, restBlockBytes(d.Schema, i, form))
		}
		if form == schema.Dense {
			dense += keptBlocks * int64(block)
		} else {
			kept += keptBlocks * int64(block)
		}
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
	kept = min(kept, 3*m.Bytes) // as stored, and decompressed to about twice that, or far more if dense
	return kept + dense + keptWindows*n*row, nil
}

// keptBlocks is about how many cblocks the reader of a column needs memory for: two, each of them
// stored and decompressed.
const keptBlocks = 4

// First returns the key of the first row.
func (h *Histories) First() []byte { return h.base.d.Metadata().MinKey }

// Keeps returns the number of windows that are valid at a time, the last one included.
func (h *Histories) Keeps() int { return keptWindows }

// Next returns up to one window of rows, nil at the end. The rows, with keys, cells and lists, are
// valid until the second next call.
func (h *Histories) Next() (*change.Rows, error) {
	stored, err := h.NextStored()
	if err != nil || stored == nil {
		return nil, err
	}
	return stored.Rows, h.Complete()
}

// NextStored is Next without cells and with births apart from undos. It may return redos.
func (h *Histories) NextStored() (*StoredRows, error) {
	vectors, from, n := h.base.advance()
	if n == 0 {
		return nil, nil
	}
	d := h.base.d
	if err := h.base.readColumns(0, d.Schema.Keys, from, n); err != nil {
		return nil, err
	}
	w := &h.windows[h.turn]
	h.turn = (h.turn + 1) % len(h.windows)
	w.batch.Columns, w.batch.Len = vectors, n
	w.births = delta.BirthsWithin(w.births[:0], h.births, from, int64(from)+int64(n))
	rows := &w.rows
	rows.Batch = nil
	rows.Keys = change.AppendVectorKeys(rows.Keys[:0], d.encoder, vectors, 0, n)
	var err error
	if rows.Undo, rows.Redo, err = h.changes.Collect(from, n); err != nil {
		return nil, err
	}
	for _, list := range [2][]change.Delta{rows.Undo, rows.Redo} {
		for i := range list {
			list[i].Row -= uint32(from)
		}
	}
	w.stored = StoredRows{Rows: rows, Set: d, From: from, Births: w.births}
	return &w.stored, nil
}

// Complete adds the cells to the rows that NextStored returned last, and the undos of the births,
// which are not apart any more.
func (h *Histories) Complete() error {
	w := &h.windows[(h.turn+len(h.windows)-1)%len(h.windows)]
	if err := h.base.readColumns(h.base.d.Schema.Keys, len(h.base.cols), w.stored.From, w.batch.Len); err != nil {
		return err
	}
	w.rows.Batch = &w.batch
	if len(w.stored.Births) > 0 {
		w.undo = delta.AddBirths(append(w.undo[:0], w.rows.Undo...), w.stored.Births)
		w.rows.Undo, w.stored.Births = w.undo, nil
	}
	return nil
}
