package carbondata

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/batch"
)

// maxBoundBytes is the length of the longest string of a column with bounds.
const maxBoundBytes = 200

// add extends r by another range of the same column.
func (r *valueRange) add(o valueRange) {
	if !o.some {
		return
	}
	if !r.some {
		*r = o
		return
	}
	r.absent = r.absent || o.absent
	r.minInt, r.maxInt = min(r.minInt, o.minInt), max(r.maxInt, o.maxInt)
	if floatLess(o.min, r.min) {
		r.min = o.min
	}
	if floatLess(r.max, o.max) {
		r.max = o.max
	}
	if o.minWide.Cmp(r.minWide) < 0 {
		r.minWide = o.minWide
	}
	if o.maxWide.Cmp(r.maxWide) > 0 {
		r.maxWide = o.maxWide
	}
	if bytes.Compare(o.minText, r.minText) < 0 {
		r.minText = o.minText
	}
	if bytes.Compare(o.maxText, r.maxText) > 0 {
		r.maxText = o.maxText
	}
}

// floatLess orders floating-point numbers as the SDK's filters do: -0 before 0, NaN after all
// others.
func floatLess(a, b float64) bool {
	switch {
	case math.IsNaN(a):
		return false
	case math.IsNaN(b):
		return true
	case a == 0 && b == 0:
		return math.Signbit(a) && !math.Signbit(b)
	}
	return a < b
}

// pageRange returns the range of the page that is filled.
func (c *columnWriter) pageRange() valueRange {
	switch {
	case c.rows == 0:
		return valueRange{}
	case len(c.ints) > 0:
		r := valueRange{some: true, minInt: c.ints[0], maxInt: c.ints[0]}
		for _, v := range c.ints {
			r.minInt, r.maxInt = min(r.minInt, v), max(r.maxInt, v)
		}
		return r
	case len(c.floats) > 0:
		r := valueRange{some: true, min: c.floats[0], max: c.floats[0]}
		for _, v := range c.floats {
			if floatLess(v, r.min) {
				r.min = v
			}
			if floatLess(r.max, v) {
				r.max = v
			}
		}
		return r
	case len(c.wides) > 0:
		r := valueRange{some: true, minWide: c.wides[0], maxWide: c.wides[0]}
		for _, v := range c.wides {
			if v.Cmp(r.minWide) < 0 {
				r.minWide = v
			}
			if v.Cmp(r.maxWide) > 0 {
				r.maxWide = v
			}
		}
		return r
	}
	return c.textRange()
}

// textRange returns the range of a page of strings, in memory of its own.
func (c *columnWriter) textRange() valueRange {
	var r valueRange
	add := func(v []byte) {
		switch {
		case !r.some:
			r.some, r.minText, r.maxText = true, v, v
		case bytes.Compare(v, r.minText) < 0:
			r.minText = v
		case bytes.Compare(v, r.maxText) > 0:
			r.maxText = v
		}
		r.absent = r.absent || len(v) > maxBoundBytes
	}
	if c.isCoded() {
		seen := make([]bool, len(c.dict.values)+1)
		for _, code := range c.codes {
			if !seen[code] {
				seen[code] = true
				add(c.dict.value(code))
			}
		}
	} else {
		for row := range c.ends {
			add(c.textAt(row))
		}
	}
	if r.absent {
		return valueRange{some: true, absent: true}
	}
	r.minText, r.maxText = bytes.Clone(r.minText), bytes.Clone(r.maxText)
	return r
}

// appendBounds returns the bytes of both bounds, and whether they are usable. The bounds of nested
// columns and of their parents are not.
func (c *columnWriter) appendBounds(r valueRange) (low, high []byte, present bool) {
	if r.absent || c.nested || len(c.children) > 0 {
		return nil, nil, false
	}
	switch {
	case c.form == formStrings:
		return r.minText, r.maxText, true
	case c.form == formDates:
		return binary.BigEndian.AppendUint32(nil, uint32(r.minInt)),
			binary.BigEndian.AppendUint32(nil, uint32(r.maxInt)), true
	case c.Type == Float || c.Type == Double:
		return floatBound(c.Type, r.min), floatBound(c.Type, r.max), true
	case c.isWide():
		return appendDecimal(nil, c.Scale, r.minWide), appendDecimal(nil, c.Scale, r.maxWide), true
	case c.Type == Decimal:
		return appendDecimal(nil, c.Scale, batch.Int128Of(r.minInt)),
			appendDecimal(nil, c.Scale, batch.Int128Of(r.maxInt)), true
	}
	return c.intBound(r.minInt), c.intBound(r.maxInt), true
}

func floatBound(typ Type, v float64) []byte {
	b := make([]byte, floatBoundLen)
	if typ == Float {
		binary.BigEndian.PutUint32(b, math.Float32bits(float32(v)))
	} else {
		binary.BigEndian.PutUint64(b, math.Float64bits(v))
	}
	return b
}

func (c *columnWriter) intBound(v int64) []byte {
	switch {
	case c.dimension && c.Type == Boolean: // a sort column
		if v != 0 {
			return []byte{0xff}
		}
		return []byte{0}
	case c.Type == Boolean, c.Type == Byte:
		return []byte{byte(v)}
	case c.dimension:
		b := binary.BigEndian.AppendUint64(nil, uint64(v))
		b = b[8-numberWidth(c.Type):]
		b[0] ^= 0x80
		return b
	}
	return binary.BigEndian.AppendUint64(nil, uint64(v))
}
