package carbondata

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/fault"
)

// Pages of ARRAY, MAP, and STRUCT: the table is above nullText. Three elements of an ARRAY, after
// five of the rows before it: 00 00 00 03 00 00 00 05. A STRUCT of two fields: 00 02
const (
	elementsLen = 8 // number and index; file format: never change
	fieldsLen   = 2 // file format: never change
)

// element returns which elements of the child belong to a row: [first, first+count). An empty row
// has first 0, whatever the page says.
func (p *page) element(row int) (first, count int) {
	b := p.data[row*elementsLen:]
	if count = int(int32(binary.BigEndian.Uint32(b))); count == 0 {
		return 0, 0
	}
	return int(int32(binary.BigEndian.Uint32(b[4:]))), count
}

// checkElements checks that the elements of all rows are in order and without gaps, and counts
// them.
func (p *page) checkElements() error {
	for row := range p.rows {
		first, count := p.element(row)
		if count < 0 || first != p.elements && count > 0 {
			return fault.Corruptf("row %d: %d elements from %d, want them from %d", row, count, first, p.elements)
		}
		p.elements += count
	}
	return nil
}

func (p *page) checkFields() error {
	for row := range p.rows {
		if n := int(binary.BigEndian.Uint16(p.data[row*fieldsLen:])); n != len(p.column.Children) {
			return fault.Corruptf("row %d: %d fields, want %d", row, n, len(p.column.Children))
		}
	}
	return nil
}

// errLargeRow is the error of a row that does not fit into memory.
var errLargeRow = fault.Unsupportedf("a row takes more memory than one of a file of this size may")

// value returns the value of a row. As CarbonData's row reader does, it returns nil for an array or
// map of exactly one null, and for a struct of only nulls. It subtracts from budget the memory of
// what it returns, as memory.elements counts. Source: carbondata spec §7.8.
func (c *cells) value(row int, budget *int) (any, error) {
	if len(c.children) == 0 {
		if *budget -= c.page.bytesAt(row) / elementBytes; *budget < 0 {
			return nil, errLargeRow
		}
		return c.page.value(row)
	}
	if c.page.isNull(row) {
		return nil, nil
	}
	if c.column.Type == Struct {
		values, null, err := c.fields(row, budget)
		if err != nil || null {
			return nil, err
		}
		return values, nil
	}
	first, count := c.page.element(row)
	if *budget -= count; *budget < 0 {
		return nil, errLargeRow
	}
	values := make([]any, 0, count)
	null := true
	for i := first; i < first+count; i++ {
		v, err := c.children[0].value(i, budget)
		if err != nil {
			return nil, err
		}
		null = null && v == nil
		values = append(values, v)
	}
	if null && count == 1 {
		return nil, nil
	}
	return values, nil
}

// fields returns the fields of a struct and whether all are null.
func (c *cells) fields(row int, budget *int) (values []any, null bool, err error) {
	if *budget -= len(c.children); *budget < 0 {
		return nil, false, errLargeRow
	}
	values = make([]any, len(c.children))
	null = true
	for i, child := range c.children {
		if values[i], err = child.value(row, budget); err != nil {
			return nil, false, err
		}
		null = null && values[i] == nil
	}
	return values, null, nil
}
