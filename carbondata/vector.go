package carbondata

import (
	"encoding/binary"
	"fmt"
	"slices"

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
