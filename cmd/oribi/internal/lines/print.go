// Package lines prints and reads the cells of one column, one JSON value per line.
//
//	column type              JSON
//	integers, timestamps     digits
//	decimals                 digits of the unscaled integer
//	dates                    days since 1970-01-01
//	all else                 as in package celltext; binary is "0x…"
//	array cell               [a,b,…] of these; null is a NULL element
//	NULL                     null
//
// To interpret a line, a reader needs only the column's type, but no precision, scale or length: a
// column file contains none of these.
//
// A Printer and a Reader are not safe for concurrent use.
package lines

import (
	"io"
	"strconv"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// Column returns a column whose cells celltext and package cell print and parse as lines of type t:
// decimals and dates become the integers that are stored.
func Column(t schema.Type) schema.Column {
	switch t {
	case schema.Decimal32, schema.Date:
		t = schema.Int32
	case schema.Decimal64:
		t = schema.Int64
	case schema.Decimal128:
		t = schema.Int128
	case schema.Varchar:
		t = schema.String
	}
	return schema.Column{Name: "value", Type: t}
}

// flushBytes is how much is buffered before it is written.
const flushBytes = 64 << 10

// Printer prints vectors of cells.
type Printer struct {
	out    io.Writer
	column schema.Column
	buffer []byte
	before string // before each cell
	next   string // before each cell but the first
	after  string // after each cell
	end    string // after the last cell
}

// NewPrinter returns a printer of cells of type t: one per line or, as an array, elements of one
// JSON array.
func NewPrinter(out io.Writer, t schema.Type, array bool) *Printer {
	p := &Printer{out: out, column: Column(t), after: "\n"}
	if array {
		p.buffer = append(p.buffer, '[')
		p.next, p.after, p.end = ",\n", "", "]\n"
	}
	return p
}

// Vector prints all cells of v, which is of the printer's type, in any form.
func (p *Printer) Vector(v *batch.Vector) error {
	if v.Elements == nil {
		switch v.Type.Physical() {
		case schema.Int8:
			return signed(p, v, batch.Values[int8](v))
		case schema.Int16:
			return signed(p, v, batch.Values[int16](v))
		case schema.Int32:
			return signed(p, v, batch.Values[int32](v))
		case schema.Int64:
			return signed(p, v, batch.Values[int64](v))
		}
	}
	for i := range v.Len {
		p.buffer = append(p.buffer, p.before...)
		p.buffer = AppendCell(p.buffer, &p.column, v, i)
		if err := p.ended(); err != nil {
			return err
		}
	}
	return nil
}

// Value prints a JSON value as one cell.
func (p *Printer) Value(json []byte) error {
	p.buffer = append(append(p.buffer, p.before...), json...)
	return p.ended()
}

// signed prints integers without a call per cell to determine their type.
func signed[T ~int8 | ~int16 | ~int32 | ~int64](p *Printer, v *batch.Vector, values []T) error {
	for i, n := range values {
		p.buffer = append(p.buffer, p.before...)
		if v.IsNull(i) {
			p.buffer = append(p.buffer, "null"...)
		} else {
			p.buffer = strconv.AppendInt(p.buffer, int64(n), 10)
		}
		if err := p.ended(); err != nil {
			return err
		}
	}
	return nil
}

// ended ends a cell.
func (p *Printer) ended() error {
	p.buffer = append(p.buffer, p.after...)
	p.before = p.next
	if len(p.buffer) < flushBytes {
		return nil
	}
	return p.Flush()
}

// Flush writes the buffered lines.
func (p *Printer) Flush() error {
	_, err := p.out.Write(p.buffer)
	p.buffer = p.buffer[:0]
	return err
}

// Close prints the end of the output and writes all that is buffered. It does not close the
// underlying writer.
func (p *Printer) Close() error {
	p.buffer = append(p.buffer, p.end...)
	if len(p.buffer) == 0 {
		return nil
	}
	return p.Flush()
}

// AppendCell appends cell i of a vector, also one in array form; c is the Column of its type.
func AppendCell(dst []byte, c *schema.Column, v *batch.Vector, i int) []byte {
	if v.Elements == nil {
		return celltext.AppendJSON(dst, c, v.Cell(i))
	}
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	from, to := v.Array(i)
	for k := from; k < to; k++ {
		if k > from {
			dst = append(dst, ',')
		}
		dst = celltext.AppendJSON(dst, c, v.Elements.Cell(k))
	}
	return append(dst, ']')
}
