package carbondata

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fault"
)

// widen makes the column of a file read as to, the table's column, if that has the same type or a
// wider one: LONG for INT, a DECIMAL with more digits and no fewer on either side of the point;
// fields of a STRUCT may have other names with the same IDs. It reports whether it has. Source:
// carbondata spec §21, "Schema evolution".
func (c *Column) widen(to *Column) bool {
	if len(c.Children) != len(to.Children) {
		return false
	}
	for i := range c.Children {
		from, to := &c.Children[i], &to.Children[i]
		if c.Type == Struct && from.Name != to.Name && (from.ID == "" || from.ID != to.ID) || !from.widen(to) {
			return false
		}
	}
	if c.Type == to.Type && (c.Type != Decimal || c.Precision == to.Precision && c.Scale == to.Scale) {
		return true
	}
	if !(c.Type == Int && to.Type == Long || c.Type == Decimal && to.Type == Decimal && c.Scale <= to.Scale &&
		c.Precision-c.Scale <= to.Precision-to.Scale) {
		return false
	}
	stored := *c
	c.stored, c.Type, c.Precision, c.Scale = &stored, to.Type, to.Precision, to.Scale
	return true
}

// inFile returns the column as the file has it.
func (c *Column) inFile() *Column {
	if c.stored != nil {
		return c.stored
	}
	return c
}

// rescale returns the unscaled integer of a DECIMAL with more digits after the point.
func rescale(v batch.Int128, digits int) (batch.Int128, error) {
	ok := true
	for ; digits > 0 && ok; digits-- {
		v, ok = v.Mul10()
	}
	if !ok {
		return v, fault.Corruptf("a DECIMAL of more than 128 bits")
	}
	return v, nil
}
