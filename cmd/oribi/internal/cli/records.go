package cli

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// records prints records, each made of groups of columns.
type records struct {
	w     *output.Writer
	batch *batch.RecordBatch
	next  int // the batch column that add sets next
}

// records returns a printer of records. Tables show the columns named in sizes as byte counts.
func (a *app) records(form output.Format, groups []output.Group, sizes ...string) *records {
	r := &records{w: output.NewGroups(a.stdout, form, groups), batch: batch.New(output.Flat(groups), 1)}
	style := a.style()
	style.Sizes = sizes
	r.w.Style(style)
	r.batch.Selection = r.batch.Selection.Resize(1)
	r.batch.Selection.Set(0)
	return r
}

// add sets the next columns of the record: to cells, or to NULL n times without cells.
func (r *records) add(cells [][]byte, n int) {
	for i := range n {
		var c []byte
		if cells != nil {
			c = cells[i]
		}
		r.batch.Columns[r.next].SetCell(0, c)
		r.next++
	}
}

// write prints the record.
func (r *records) write() error {
	r.next = 0
	return r.w.Write(r.batch)
}

// end prints the rest. Records printed before an error remain; without any, nothing is printed.
func (r *records) end(some bool, err error) error {
	if err == nil {
		return r.w.Close()
	}
	if some {
		r.w.Flush() // report err instead
	}
	return err
}

// nullable returns columns that may be absent from a record.
func nullable(columns []schema.Column) []schema.Column {
	out := make([]schema.Column, len(columns))
	for i, c := range columns {
		c.Nullable = true
		out[i] = c
	}
	return out
}

func cellOf(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

func int64Cell(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
