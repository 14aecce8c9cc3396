package rowset

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Histories yields all rows of a rowset with all their versions, in key order: what a compaction takes.
type Histories struct {
	d       *DiskRowSet
	changes *delta.Collector
	readers []*cfile.ColumnReader
	next    batch.Ordinal
}

// Histories starts at the first row; redos at or after snap are left out. The caller holds a reference to the rowset.
func (d *DiskRowSet) Histories(snap mvcc.Timestamp) (*Histories, error) {
	h := &Histories{d: d, changes: d.Tracker().NewCollector(snap), readers: make([]*cfile.ColumnReader, len(d.Schema.Columns))}
	for i := range h.readers {
		f, err := d.File(i)
		if err != nil {
			return nil, err
		}
		if f != nil {
			h.readers[i] = f.NewColumnReader()
			h.readers[i].Transient = true // all of the file is read once: no reason to push other cblocks out of the cache
		}
	}
	return h, nil
}

// Next gives up to one window of rows; nil at the end. Undo and Redo hold until the next call; the lists in them, keys and cells
// as long as they are referenced.
func (h *Histories) Next() (*change.Rows, error) {
	left := int64(h.d.Stored().Rows) - int64(h.next)
	if left <= 0 {
		return nil, nil
	}
	n := int(min(left, batch.WindowRows))
	s := h.d.Schema
	rows := &change.Rows{Batch: batch.New(s.Columns, 0)}
	for i, v := range rows.Batch.Columns {
		if h.readers[i] == nil {
			v.Fill(n, s.Columns[i].ReadDefault)
			continue
		}
		if err := readFull(h.readers[i], h.d, &s.Columns[i], h.next, n, v); err != nil {
			return nil, err
		}
	}
	rows.Batch.Len = n
	rows.Keys = change.AppendVectorKeys(nil, h.d.encoder, rows.Batch.Columns, 0, n)
	var err error
	if rows.Undo, rows.Redo, err = h.changes.Collect(h.next, n); err != nil {
		return nil, err
	}
	for _, list := range [2][]change.Delta{rows.Undo, rows.Redo} {
		for i := range list {
			list[i].Row -= uint32(h.next)
		}
	}
	h.next += batch.Ordinal(n)
	return rows, nil
}

// readFull reads exactly n cells; a file that has fewer is corrupt.
func readFull(r *cfile.ColumnReader, d *DiskRowSet, c *schema.Column, from batch.Ordinal, n int, v *batch.Vector) error {
	got, err := r.ReadVector(from, n, v)
	if err != nil {
		return err
	}
	for got < n {
		rest := batch.Vector{Type: v.Type}
		k, err := r.ReadVector(from+batch.Ordinal(got), n-got, &rest)
		if err != nil {
			return err
		}
		if k == 0 {
			return fault.Corruptf("rowset %d: column %q ends at row %d", d.Stored().ID, c.Name, int(from)+got)
		}
		v.AppendRun(&rest, 0, k) // long values in prefix encoding come a few at a time
		got += k
	}
	return nil
}
