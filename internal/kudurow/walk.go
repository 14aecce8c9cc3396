package kudurow

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
)

// Row is an encoded row operation.
type Row struct {
	Op    Operation
	Cells [][]byte     // one for each column of the schema, nil for NULL and those that are not given
	Set   batch.Bitmap // the columns that are given
}

// Each calls use for each of the operations that e has appended to r, in order, up to its first error.
// The row aliases r, and is valid during the call.
func (e *Encoder) Each(r *Rows, use func(row *Row) error) error {
	in := r.Operations
	row := Row{Cells: make([][]byte, len(e.schema.Columns)), Set: batch.MakeBitmap(len(e.schema.Columns))}
	for len(in) > 0 {
		in = e.next(&row, in, r.Indirect)
		if err := use(&row); err != nil {
			return err
		}
	}
	return nil
}

// next sets row to the first operation of in, and returns the others.
func (e *Encoder) next(row *Row, in, indirect []byte) []byte {
	row.Op = Operation(in[0])
	set, nulls := in[1:1+e.bitmap], []byte(nil)
	in = in[1+e.bitmap:]
	if e.nullable {
		nulls, in = in[:e.bitmap], in[e.bitmap:]
	}
	clear(row.Set)
	for i := range row.Cells {
		row.Cells[i] = nil
		bit := byte(1) << (i % 8)
		if set[i/8]&bit == 0 {
			continue
		}
		row.Set.Set(i)
		if nulls != nil && nulls[i/8]&bit != 0 {
			continue
		}
		width := e.schema.Columns[i].Type.Width()
		if width > 0 {
			row.Cells[i], in = in[:width:width], in[width:]
			continue
		}
		at, n := binary.LittleEndian.Uint64(in), binary.LittleEndian.Uint64(in[8:])
		row.Cells[i], in = indirect[at:at+n:at+n], in[stringSlot:]
		if n == 0 {
			row.Cells[i] = []byte{} // not NULL, even without any indirect data
		}
	}
	return in
}

// Append appends an operation that Each has passed to use.
func (e *Encoder) Append(r *Rows, row *Row) { e.appendRow(r, row.Op, row.Cells, row.Set) }

// Fit returns how many of the first of rows have operations of at most limit bytes, with their byte
// strings; at least one.
func (s *Source) Fit(rows []int32, limit int) (n int) {
	for n = range rows {
		size := s.stride
		for k := range s.columns {
			if c := &s.columns[k]; c.bytes != nil {
				size += len(c.bytes[rows[n]])
			}
		}
		if limit -= size; limit < 0 && n > 0 {
			return n
		}
	}
	return len(rows)
}
