// Package carbonlines prints and reads the lines of the commands on CarbonData: rows and columns,
// one JSON object per line.
//
//	row       {"<name>":value,…} in the order of the columns
//	column    {"name":…,"type":…,"sort":bool}
//
//	type      JSON
//	ARRAY     [value,…]
//	STRUCT    {"<name>":value,…} in the order of the fields
//	MAP       [[key,value],…]
//	null      null
//	others    as in package celltext: DECIMAL "1.50", DATE "2026-11-21", TIMESTAMP microseconds
//	          since 1970, BINARY "0x…"
//
// Input takes the same forms, and the forms of package cell. A name that is missing in an object is
// a null. Printers and Readers are not safe for concurrent use.
package carbonlines

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// shape is a column, an element, a field, a key, or a value, prepared for conversion.
type shape struct {
	name     string
	typ      carbondata.Type
	cell     schema.Column  // for scalars: the table column with the same JSON
	before   []byte         // a comma unless it is the first, the name, a colon
	children []*shape       // of ARRAY: the element; STRUCT: the fields; MAP: key and value
	index    map[string]int // of STRUCT: the fields by name
}

// rows returns the shape of rows: a STRUCT of the columns.
func rows(columns []carbondata.Column) *shape {
	s := &shape{typ: carbondata.Struct, children: shapes(columns)}
	s.addIndex()
	return s
}

func (s *shape) addIndex() {
	s.index = make(map[string]int, len(s.children))
	for i, f := range s.children {
		s.index[f.name] = i
	}
}

// shapes returns the shapes of columns.
func shapes(columns []carbondata.Column) []*shape {
	list := make([]*shape, len(columns))
	for i := range columns {
		c := &columns[i]
		s := &shape{name: c.Name, typ: c.Type, children: shapes(c.Children)}
		if scalar(c.Type) {
			s.cell, _ = c.TableType() // all scalars have one
		}
		switch c.Type {
		case carbondata.Map:
			s.children = s.children[0].children
		case carbondata.Struct:
			s.addIndex()
		}
		if i > 0 {
			s.before = append(s.before, ',')
		}
		s.before = append(celltext.AppendQuoted(s.before, []byte(c.Name)), ':')
		list[i] = s
	}
	return list
}

// scalar reports whether values of the type have no parts.
func scalar(t carbondata.Type) bool {
	return t != carbondata.Array && t != carbondata.Struct && t != carbondata.Map
}

// Printer converts rows.
type Printer struct {
	row   *shape
	cell  []byte // memory of value
	arena []byte // memory of SetRow
}

// NewPrinter returns a printer of rows that have these columns.
func NewPrinter(columns []carbondata.Column) *Printer {
	return &Printer{row: rows(columns), cell: make([]byte, 0, 64)}
}

// Append appends a row as a JSON object. Row has a value for each column, of the type that
// carbondata.Type names.
func (p *Printer) Append(dst []byte, row []any) []byte { return p.object(dst, p.row, row) }

func (p *Printer) object(dst []byte, s *shape, values []any) []byte {
	dst = append(dst, '{')
	for i, f := range s.children {
		dst = p.value(append(dst, f.before...), f, values[i])
	}
	return append(dst, '}')
}

func (p *Printer) value(dst []byte, s *shape, v any) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	switch s.typ {
	case carbondata.Struct:
		return p.object(dst, s, v.([]any))
	case carbondata.Array, carbondata.Map:
		dst = append(dst, '[')
		for i, e := range v.([]any) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if s.typ == carbondata.Array {
				dst = p.value(dst, s.children[0], e)
				continue
			}
			pair, ok := e.([]any)
			if !ok { // a pair of NULLs is NULL
				dst = append(dst, "null"...)
				continue
			}
			dst = p.value(append(dst, '['), s.children[0], pair[0])
			dst = append(p.value(append(dst, ','), s.children[1], pair[1]), ']')
		}
		return append(dst, ']')
	}
	p.cell = appendCell(p.cell[:0], &s.cell, v)
	return celltext.AppendJSON(dst, &s.cell, p.cell)
}

// AppendValue appends a value of a column as JSON.
func AppendValue(dst []byte, c carbondata.Column, v any) []byte {
	return new(Printer).value(dst, shapes([]carbondata.Column{c})[0], v)
}

// Columns returns the columns of the table in which people see the rows. ARRAY, STRUCT, and MAP are
// JSON in string columns.
func (p *Printer) Columns() []schema.Column {
	list := make([]schema.Column, len(p.row.children))
	for i, s := range p.row.children {
		list[i] = s.cell
		if !scalar(s.typ) {
			list[i] = schema.Column{Name: s.name, Type: schema.String, Nullable: true}
		}
	}
	return list
}

// SetRow sets row 0 of a batch with the columns of Columns. Its byte strings are valid until the
// next call.
func (p *Printer) SetRow(b *batch.RecordBatch, row []any) {
	if p.arena == nil {
		p.arena = make([]byte, 0, 4096) // a cell that is not NULL is not nil
	}
	p.arena = p.arena[:0]
	for i, s := range p.row.children {
		if row[i] == nil {
			b.Columns[i].SetCell(0, nil)
			continue
		}
		from := len(p.arena)
		if scalar(s.typ) {
			p.arena = appendCell(p.arena, &s.cell, row[i])
		} else {
			p.arena = p.value(p.arena, s, row[i])
		}
		b.Columns[i].SetCell(0, p.arena[from:len(p.arena):len(p.arena)])
	}
}

// appendCell appends the cell of column c for a value.
func appendCell(dst []byte, c *schema.Column, v any) []byte {
	little := binary.LittleEndian
	switch v := v.(type) {
	case bool:
		return celltext.FromBool(dst, v)
	case int8:
		return append(dst, byte(v))
	case int16:
		return little.AppendUint16(dst, uint16(v))
	case int32:
		return little.AppendUint32(dst, uint32(v))
	case int64:
		return little.AppendUint64(dst, uint64(v))
	case carbondata.Days:
		return little.AppendUint32(dst, uint32(v))
	case carbondata.Micros:
		return little.AppendUint64(dst, uint64(v))
	case float32:
		return little.AppendUint32(dst, math.Float32bits(v))
	case float64:
		return little.AppendUint64(dst, math.Float64bits(v))
	case batch.Int128:
		return little.AppendUint64(little.AppendUint64(dst, v.Lo), uint64(v.Hi))[:len(dst)+c.Type.Width()]
	case string:
		if !utf8.ValidString(v) {
			v = string([]rune(v)) // as CarbonData's reader: U+FFFD for bytes that are not UTF-8
		}
		return append(dst, v...)
	case []byte:
		return append(dst, v...)
	}
	panic(fmt.Sprintf("carbonlines: a value of type %T in column %q", v, c.Name))
}

// Value returns the value of a scalar type for a cell of Column.TableType.
func Value(t carbondata.Type, cell []byte) any {
	little := binary.LittleEndian
	switch t {
	case carbondata.Boolean:
		return cell[0] != 0
	case carbondata.Byte:
		return int8(cell[0])
	case carbondata.Short:
		return int16(little.Uint16(cell))
	case carbondata.Int:
		return int32(little.Uint32(cell))
	case carbondata.Long:
		return int64(little.Uint64(cell))
	case carbondata.Date:
		return carbondata.Days(little.Uint32(cell))
	case carbondata.Timestamp:
		return carbondata.Micros(little.Uint64(cell))
	case carbondata.Float:
		return math.Float32frombits(little.Uint32(cell))
	case carbondata.Double:
		return math.Float64frombits(little.Uint64(cell))
	case carbondata.Decimal:
		switch len(cell) {
		case 4:
			return batch.Int128Of(int64(int32(little.Uint32(cell))))
		case 8:
			return batch.Int128Of(int64(little.Uint64(cell)))
		}
		return batch.Int128{Lo: little.Uint64(cell), Hi: int64(little.Uint64(cell[8:]))}
	case carbondata.Binary:
		return append([]byte{}, cell...)
	}
	return string(cell)
}
