package carbondata

import (
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// A filter uses bounds only if no value of the column can be outside of them. It does not use them
// if one of these holds. Source: carbondata spec §7.8, §9.
//
//   - The flag of presence is false. Or there is no flag, as in files of SDK 1.4, and the minimum is
//     empty, as with nulls there. Or the maximum is empty.
//   - The minimum is greater than the maximum, or one of them is NaN or not as boundValue describes.
//   - ARRAY, STRUCT, and MAP: these bounds are without meaning.
//   - BOOLEAN and BYTE as sort columns, which have several forms.
//   - FLOAT, whose values are rounded.
//   - A bound of a DOUBLE is infinite.
//
// Nulls are included in bounds as what is stored for them, so bounds say nothing about nulls.
//
// A DOUBLE can be read as another one, and its bounds are taken as wider. A floating codec with
// delta truncates the maximum, which changes all values of the page by up to two units of the last
// decimal, at most 0.2; and above 2^53 units its products and quotients are rounded, in proportion
// to the greatest value of the page.
const (
	doubleSlack = 0.25
	doubleRatio = 0x1p-50
)

// cellRange is the range of the cells of a column that are not NULL, both bounds included.
type cellRange struct{ min, max []byte }

// rangeOf returns the range that bounds of column i give, as cells of type t, and whether a filter
// can use them.
func (b *bounds) rangeOf(i int, c *Column, t schema.Type) (r cellRange, ok bool) {
	lo, hi, present := b.of(i)
	if !present || len(hi) == 0 || len(lo) == 0 && b.present == nil {
		return r, false
	}
	if r.min, ok = boundCell(c, t, lo); !ok {
		return r, false
	}
	if r.max, ok = boundCell(c, t, hi); !ok || batch.Compare(t, r.min, r.max) > 0 {
		return r, false
	}
	if t == schema.Double {
		widenDoubles(&r)
	}
	return r, true
}

// boundCell returns a minimum or a maximum as a cell.
func boundCell(c *Column, t schema.Type, b []byte) (cell []byte, ok bool) {
	v, ok := c.boundValue(b)
	if !ok {
		return nil, false
	}
	switch typ := c.inFile().Type; {
	case typ == Float,
		typ == Boolean && b[0] > 1,
		typ == Date && int64(binary.BigEndian.Uint32(b))-dateZero > math.MaxInt32:
		return nil, false
	case typ == Double:
		if x := v.(float64); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, false
		}
	}
	cell, out, err := filterCell(c, t, v)
	return cell, out == 0 && err == nil
}

// widenDoubles extends a range of DOUBLEs by how far the values that are read can be outside of it.
func widenDoubles(r *cellRange) {
	le := binary.LittleEndian
	lo, hi := math.Float64frombits(le.Uint64(r.min)), math.Float64frombits(le.Uint64(r.max))
	margin := doubleSlack + doubleRatio*max(math.Abs(lo), math.Abs(hi))
	le.PutUint64(r.min, math.Float64bits(lo-margin))
	le.PutUint64(r.max, math.Float64bits(hi+margin))
}
