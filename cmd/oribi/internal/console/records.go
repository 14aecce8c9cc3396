package console

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// Records prints records, each made of groups of columns.
type Records struct {
	W     *output.Writer
	batch *batch.RecordBatch
	next  int // the batch column that add sets next
}

// Records returns a printer of records. Tables show the columns named in sizes as byte counts.
func (a *Console) Records(form output.Format, groups []output.Group, sizes ...string) *Records {
	r := &Records{W: output.NewGroups(a.Stdout, form, groups), batch: batch.New(output.Flat(groups), 1)}
	style := a.Style()
	style.Sizes = sizes
	r.W.Style(style)
	r.batch.Selection = r.batch.Selection.Resize(1)
	r.batch.Selection.Set(0)
	return r
}

// Add sets the next columns of the record: to cells, or to NULL n times without cells.
func (r *Records) Add(cells [][]byte, n int) {
	for i := range n {
		var c []byte
		if cells != nil {
			c = cells[i]
		}
		r.batch.Columns[r.next].SetCell(0, c)
		r.next++
	}
}

// Write prints the record.
func (r *Records) Write() error {
	r.next = 0
	return r.W.Write(r.batch)
}

// End prints the rest. Records printed before an error remain; without any, nothing is printed.
func (r *Records) End(some bool, err error) error {
	if err == nil {
		return r.W.Close()
	}
	if some {
		r.W.Flush() // report err instead
	}
	return err
}

// Nullable returns columns that may be absent from a record.
func Nullable(columns []schema.Column) []schema.Column {
	out := make([]schema.Column, len(columns))
	for i, c := range columns {
		c.Nullable = true
		out[i] = c
	}
	return out
}

// CellOf returns the cell of a boolean.
func CellOf(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

// Int64Cell returns the cell of an integer.
func Int64Cell(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
