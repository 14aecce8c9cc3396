package kudurow

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Source is the rows of a batch, checked, to be encoded as operations of one kind. It aliases the
// batch, which must not change as long as the source is in use.
type Source struct {
	e       *Encoder
	op      Operation
	columns []sourceColumn // in the order of the schema
	header  []byte         // of each operation, without NULLs
	stride  int            // bytes of an operation without NULLs
	keys    []*batch.Vector
}

// sourceColumn is a column that the operations give.
type sourceColumn struct {
	index int // in the schema
	width int
	*batch.Vector
	bytes [][]byte // the cells of byte strings
	nulls bool
}

// Source checks the selected rows of b. Its columns have the names of columns of the table; a column
// that b lacks is not given; a delete gives the key only. Errors: *CellError with the row; ErrRow;
// ErrSchema for a column that the table does not have, or has with another type.
func (e *Encoder) Source(op Operation, b *batch.RecordBatch) (*Source, error) {
	s := &Source{e: e, op: op, keys: make([]*batch.Vector, e.schema.Keys)}
	set := batch.MakeBitmap(len(e.schema.Columns))
	if err := s.addColumns(set, b); err != nil {
		return nil, err
	}
	if err := e.checkSet(op, set); err != nil {
		return nil, err
	}
	for i := range s.columns {
		c := &e.schema.Columns[s.columns[i].index]
		if err := s.checkColumn(c, &s.columns[i], b.Selection); err != nil {
			return nil, err
		}
	}
	s.header = appendBits(append(s.header, byte(op)), set, e.bitmap)
	if e.nullable {
		s.header = append(s.header, make([]byte, e.bitmap)...)
	}
	s.stride = len(s.header)
	for _, c := range s.columns {
		s.stride += c.width
	}
	return s, s.checkKeys(b.Selection)
}

// addColumns finds the columns of b and marks them in set.
func (s *Source) addColumns(set batch.Bitmap, b *batch.RecordBatch) error {
	if len(b.Schema) != len(b.Columns) || len(b.Selection) < (b.Len+63)/64 {
		return badCell("a batch of %d columns with %d vectors and %d words of selection", len(b.Schema),
			len(b.Columns), len(b.Selection))
	}
	of := s.e.schema
	for i, v := range b.Columns {
		name := b.Schema[i].Name
		at := of.Index(name)
		switch {
		case at < 0:
			return fmt.Errorf("column %q: %w", name, of.NoColumn(name))
		case at >= of.Keys && isDelete(s.op):
			continue
		case set.Get(at):
			return schemaError("column %q appears twice", name)
		}
		if err := v.Validate(); err != nil {
			return schemaError("column %q: %v", name, err)
		}
		if v.Type != of.Columns[at].Type || v.Len != b.Len || v.Elements != nil {
			return schemaError("column %q: %d cells of %s, want %d of %s", name, v.Len, v.Type, b.Len,
				of.Columns[at].TypeName())
		}
		set.Set(at)
		c := sourceColumn{index: at, width: v.Type.Width(), Vector: v, bytes: byteStrings(v), nulls: v.Present != nil}
		if c.width == 0 {
			c.width = stringSlot
		}
		s.columns = append(s.columns, c)
		if at < of.Keys {
			s.keys[at] = v
		}
	}
	slices.SortFunc(s.columns, func(a, b sourceColumn) int { return a.index - b.index })
	return nil
}

func (s *Source) checkColumn(of *schema.Column, c *sourceColumn, selected batch.Bitmap) error {
	if c.nulls && !of.Nullable {
		for i := range c.Len {
			if selected.Get(i) && c.IsNull(i) {
				return &CellError{i, of.Name, badCell("NULL, and the column is not nullable")}
			}
		}
		c.nulls = false
	}
	if row, err := checkVector(of, c.Vector, selected); err != nil {
		return &CellError{row, of.Name, err}
	}
	return nil
}

// checkKeys checks the size of the keys.
func (s *Source) checkKeys(selected batch.Bitmap) error {
	if s.e.keys.Width() > 0 {
		return nil
	}
	cells := make([][]byte, s.e.schema.Keys)
	for i := selected.Next(0); i >= 0; i = selected.Next(i + 1) {
		s.Cells(cells, i)
		if size := s.e.keyBytes(cells); size > schema.MaxKeyBytes {
			return &CellError{i, s.e.schema.Columns[0].Name, badCell("the encoded key has %d bytes, at most %d", size,
				schema.MaxKeyBytes)}
		}
	}
	return nil
}

// Keys returns the columns of the primary key; nil for an auto-incrementing one that is not given.
func (s *Source) Keys() []*batch.Vector { return s.keys }

// Cells sets cells to the primary key of a row.
func (s *Source) Cells(cells [][]byte, row int) {
	for i, v := range s.keys {
		if v == nil { // the auto-incrementing column
			cells[i] = nil
		} else {
			cells[i] = v.Cell(row)
		}
	}
}

// Stride returns how many bytes an operation has at most, without byte strings.
func (s *Source) Stride() int { return s.stride }

// chunkRows is how many rows are encoded together, column by column, in the processor's cache.
const chunkRows = 256

// AppendRows appends an operation for each of the rows.
func (s *Source) AppendRows(r *Rows, rows []int32) {
	for len(rows) > 0 {
		n := min(len(rows), chunkRows)
		s.appendChunk(r, rows[:n])
		rows = rows[n:]
	}
}

func (s *Source) appendChunk(r *Rows, rows []int32) {
	var starts, at [chunkRows]int
	start := len(r.Operations)
	end := s.starts(starts[:len(rows)], rows, start)
	r.Operations = grow(r.Operations, end-start)[:end]
	out := r.Operations
	for i, start := range starts[:len(rows)] {
		at[i] = start + copy(out[start:], s.header)
	}
	for k := range s.columns {
		c := &s.columns[k]
		switch {
		case c.Type.Variable():
			r.Indirect = c.putStrings(out, r.Indirect, at[:len(rows)], rows)
		case c.nulls:
			c.putPresent(out, at[:len(rows)], rows)
		default:
			c.put(out, at[:len(rows)], rows)
		}
		if c.nulls {
			nulls := len(s.header) - s.e.bitmap + c.index/8
			for i, row := range rows {
				if !c.Present.Get(int(row)) {
					out[starts[i]+nulls] |= 1 << (c.index % 8)
				}
			}
		}
	}
	r.N += len(rows)
}

// starts sets where the operations of rows start if the first one starts at start, and returns where
// the last one ends.
func (s *Source) starts(starts []int, rows []int32, start int) (end int) {
	for i := range starts {
		starts[i] = s.stride
	}
	for k := range s.columns {
		if c := &s.columns[k]; c.nulls {
			for i, row := range rows {
				if !c.Present.Get(int(row)) {
					starts[i] -= c.width
				}
			}
		}
	}
	for i, size := range starts {
		starts[i] = start
		start += size
	}
	return start
}

// put writes cells of fixed width to out, none of them NULL, and advances at.
func (c *sourceColumn) put(out []byte, at []int, rows []int32) {
	switch c.width {
	case 1:
		for i, row := range rows {
			out[at[i]] = c.Data[row]
		}
	case 2:
		for i, row := range rows {
			binary.LittleEndian.PutUint16(out[at[i]:], binary.LittleEndian.Uint16(c.Data[int(row)*2:]))
		}
	case 4:
		for i, row := range rows {
			binary.LittleEndian.PutUint32(out[at[i]:], binary.LittleEndian.Uint32(c.Data[int(row)*4:]))
		}
	case 8:
		for i, row := range rows {
			binary.LittleEndian.PutUint64(out[at[i]:], binary.LittleEndian.Uint64(c.Data[int(row)*8:]))
		}
	default:
		for i, row := range rows {
			copy(out[at[i]:], c.Data[int(row)*c.width:][:c.width])
		}
	}
	for i := range at {
		at[i] += c.width
	}
}

// putPresent is put for a column with NULLs.
func (c *sourceColumn) putPresent(out []byte, at []int, rows []int32) {
	for i, row := range rows {
		if c.Present.Get(int(row)) {
			at[i] += copy(out[at[i]:], c.Data[int(row)*c.width:][:c.width])
		}
	}
}

// grow returns b with space for n more bytes, by doubling it: requests are large.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		return slices.Grow(b, max(n, len(b)))
	}
	return b
}

// putStrings writes where the byte strings are that it appends to indirect.
func (c *sourceColumn) putStrings(out, indirect []byte, at []int, rows []int32) []byte {
	size := 0
	for _, row := range rows {
		size += len(c.bytes[row])
	}
	indirect = grow(indirect, size)
	for i, row := range rows {
		if c.nulls && !c.Present.Get(int(row)) {
			continue
		}
		cell := c.bytes[row]
		slot := out[at[i]:][:stringSlot]
		binary.LittleEndian.PutUint64(slot, uint64(len(indirect)))
		binary.LittleEndian.PutUint64(slot[8:], uint64(len(cell)))
		indirect = append(indirect, cell...)
		at[i] += stringSlot
	}
	return indirect
}
