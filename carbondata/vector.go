package carbondata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// begin makes v a vector of n cells of undefined value for cells of the current page.
func (c *scanColumn) begin(v *batch.Vector, n int) {
	v.Reset(n)
	if c.cells == nil {
		return
	}
	c.cells.packed = c.cells.packed[:0]
	if c.cells.page.form == formSurrogates {
		v.UseCodes(&c.cells.dict.words, n)
	}
}

// fill decodes the cells of rows [from, to) of the current page into v, from cell at on. v has the
// column's type in a table. Byte strings point into the page.
func (c *scanColumn) fill(v *batch.Vector, at, from, to int) error {
	if c.cells == nil {
		return c.fillMissing(v, at, to-from)
	}
	return c.cells.fill(v, at, from, to)
}

// fillMissing sets n cells of a column that the file does not have.
func (c *scanColumn) fillMissing(v *batch.Vector, at, n int) error {
	for i := range n {
		if err := setValue(v, at+i, c.missing); err != nil {
			return err
		}
	}
	return nil
}

func (c *cells) fill(v *batch.Vector, at, from, to int) error {
	p := &c.page
	var err error
	switch p.form {
	case formSurrogates:
		err = p.fillCodes(v, at, from, to)
	case formStrings:
		p.fillStrings(v, at, from, to)
	case formDates:
		p.fillDates(v, at, from, to)
	case formNumbers:
		err = p.fillNumbers(v, at, from, to)
	case formElements:
		return c.fillArrays(v, at, from, to)
	default:
		return p.fillValues(v, at, from, to)
	}
	p.markNulls(v, at, from, to)
	return err
}

// entry returns the entry of a row.
func (p *page) entry(row int) int {
	if p.inverse != nil {
		return int(p.inverse[row])
	}
	return row
}

// markNulls makes the cells NULL whose null bits are set.
func (p *page) markNulls(v *batch.Vector, at, from, to int) {
	for row := from; row < min(to, 8*len(p.nulls)); row++ {
		if p.nulls[row/8] == 0 {
			row |= 7 // the other rows of this byte are not null either
			continue
		}
		if p.isNull(row) {
			setNull(v, at+row-from)
		}
	}
}

func setNull(v *batch.Vector, i int) {
	v.NeedPresent().Clear(i)
	if v.Dict == nil && v.Type.Variable() {
		v.Bytes[i] = nil
	}
}

func (p *page) fillCodes(v *batch.Vector, at, from, to int) error {
	codes := v.Codes[at : at+to-from]
	switch {
	case p.codes == nil:
		if err := p.codesFrom(codes, from); err != nil {
			return err
		}
	case p.ends != nil:
		for row, k := from, p.runOf(from); row < to; k++ {
			end := min(to, int(p.ends[k]))
			for code := p.codes[k]; row < end; row++ {
				codes[row-from] = code
			}
		}
	case p.inverse == nil:
		copy(codes, p.codes[from:to])
	default:
		for i, entry := range p.inverse[from:to] {
			codes[i] = p.codes[entry]
		}
	}
	if p.dict.nulls == nil {
		return nil
	}
	for i, code := range codes {
		if p.dict.nulls.Get(int(code)) {
			v.NeedPresent().Clear(at + i)
		}
	}
	return nil
}

func (p *page) fillStrings(v *batch.Vector, at, from, to int) {
	typ := p.column.Type
	for row := from; row < to; row++ {
		b := p.bytes(p.entry(row))
		if isNullText(typ, b) {
			setNull(v, at+row-from)
			continue
		}
		v.Bytes[at+row-from] = b
	}
}

func (p *page) fillDates(v *batch.Vector, at, from, to int) {
	days := batch.Raw[int32](v)
	for row := from; row < to; row++ {
		s := binary.BigEndian.Uint32(p.data[p.entry(row)*dateLen:])
		if s == dateNull {
			setNull(v, at+row-from)
		}
		days[at+row-from] = int32(int64(s) - dateZero)
	}
}

// fillValues decodes values one by one.
func (p *page) fillValues(v *batch.Vector, at, from, to int) error {
	for row := from; row < to; row++ {
		value, err := p.value(row)
		if err == nil {
			err = setValue(v, at+row-from, value)
		}
		if err != nil {
			return inCell(err, at+row-from, row)
		}
	}
	return nil
}

// inCell adds the row of a page to an error, or the cell of a vector to an error about one value.
func inCell(err error, cell, row int) error {
	if bad, ok := errors.AsType[*unheld](err); ok {
		return &refusedValue{cell, bad}
	}
	return inside(err, "row %d", row)
}

// setValue sets a cell to a value as Rows returns it.
func setValue(v *batch.Vector, i int, value any) error {
	switch x := value.(type) {
	case nil:
		setNull(v, i)
	case bool:
		b := batch.Raw[uint8](v)
		if b[i] = 0; x {
			b[i] = 1
		}
	case int8:
		batch.Raw[int8](v)[i] = x
	case int16:
		batch.Raw[int16](v)[i] = x
	case int32:
		batch.Raw[int32](v)[i] = x
	case Days:
		batch.Raw[int32](v)[i] = int32(x)
	case int64:
		batch.Raw[int64](v)[i] = x
	case Micros:
		batch.Raw[int64](v)[i] = int64(x)
	case float32:
		batch.Raw[float32](v)[i] = x
	case float64:
		batch.Raw[float64](v)[i] = x
	case string:
		v.Bytes[i] = unsafe.Slice(unsafe.StringData(x), len(x))
	case []byte:
		v.Bytes[i] = x
	case batch.Int128:
		setDecimal(v, i, x)
	default:
		return fault.Unsupportedf("a value of type %T", value)
	}
	return nil
}

// setDecimal sets a cell to a DECIMAL, which has no more digits than the column.
func setDecimal(v *batch.Vector, i int, x batch.Int128) {
	switch v.Type {
	case schema.Decimal32:
		batch.Raw[int32](v)[i] = int32(x.Lo)
	case schema.Decimal64:
		batch.Raw[int64](v)[i] = int64(x.Lo)
	default:
		batch.Raw[batch.Int128](v)[i] = x
	}
}

// fillArrays decodes arrays of one dimension.
func (c *cells) fillArrays(v *batch.Vector, at, from, to int) error {
	child := c.children[0]
	if c.elements == nil {
		t, ok := child.column.TableType()
		if !ok {
			return fault.Unsupportedf("%s in a table", c.column.TypeName())
		}
		c.elements = &batch.Vector{Type: t.Type}
	}
	e := c.elements
	for row := from; row < to; row++ {
		i := at + row - from
		first, count := c.page.element(row)
		if count > schema.MaxElements {
			return &refusedValue{i,
				fmt.Errorf("an array of %d elements, a table has at most %d", count, schema.MaxElements)}
		}
		e.Reset(count)
		if child.page.form == formSurrogates {
			e.UseCodes(&child.dict.words, count)
		}
		err := child.fill(e, 0, first, first+count)
		if err == nil {
			err = gregorianCells(e, count)
		}
		if err != nil {
			return inCell(err, i, row)
		}
		if c.page.isNull(row) || count == 1 && e.IsNull(0) {
			setNull(v, i)
			continue
		}
		c.parts = c.parts[:0]
		size := 0
		for k := range count {
			c.parts = append(c.parts, e.Cell(k))
			size += len(c.parts[k])
		}
		start := len(c.packed)
		c.packed = schema.AppendArray(slices.Grow(c.packed, size), e.Type, c.parts)
		v.Bytes[i] = c.packed[start:len(c.packed):len(c.packed)]
	}
	return nil
}
