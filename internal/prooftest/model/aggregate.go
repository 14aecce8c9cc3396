package model

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Group is a set of rows that are equal in some columns.
type Group struct {
	Key  [][]byte // of these columns
	Rows [][][]byte
}

// GroupRows divides rows into groups by the columns with the indexes by, in ascending order of
// their keys. Without columns, there is one group, even of no rows. NULL is a value, after all
// others, and so is NaN, after all numbers. −0 is the same value as +0.
func GroupRows(columns []schema.Column, rows [][][]byte, by []int) (list []*Group) {
	byKey := map[string]*Group{}
	if len(by) == 0 {
		list = append(list, &Group{})
		byKey[""] = list[0]
	}
	for _, row := range rows {
		var key [][]byte
		for _, c := range by {
			key = append(key, groupCell(columns[c].Type, row[c]))
		}
		text := KeyText(key)
		g := byKey[text]
		if g == nil {
			g = &Group{Key: key}
			byKey[text], list = g, append(list, g)
		}
		g.Rows = append(g.Rows, row)
	}
	slices.SortFunc(list, func(a, b *Group) int {
		for i, c := range by {
			if order := compareValues(columns[c].Type, a.Key[i], b.Key[i]); order != 0 {
				return order
			}
		}
		return 0
	})
	return list
}

// groupCell returns the cell that stands for all cells that are in one group with it.
func groupCell(t schema.Type, cell []byte) []byte {
	if cell != nil && IsFloat(t) && FloatOf(t, cell) == 0 {
		return make([]byte, t.Width())
	}
	return knownNaN(t, cell)
}

// knownNaN returns a cell with the bits of any NaN replaced by the bits of math.NaN, which sums in
// rows have. An aggregate may return another NaN than the model.
func knownNaN(t schema.Type, cell []byte) []byte {
	if cell == nil || !IsFloat(t) || FloatOf(t, cell) == FloatOf(t, cell) {
		return cell
	}
	if t == schema.Float {
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	}
	return binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.NaN()))
}

// compareValues orders NULL after all values, NaN after all numbers, and −0 before +0.
func compareValues(t schema.Type, a, b []byte) int {
	switch {
	case a == nil || b == nil:
		return compareBools(a == nil, b == nil)
	case IsFloat(t):
		x, y := FloatOf(t, a), FloatOf(t, b)
		if x != x || y != y {
			return compareBools(x != x, y != y)
		}
		return cmp.Or(cmp.Compare(x, y), compareBools(math.Signbit(y), math.Signbit(x)))
	}
	return batch.Compare(t, a, b)
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Count returns the number of rows whose column i is not NULL.
func (g *Group) Count(i int) (n int64) {
	for _, row := range g.Rows {
		if row[i] != nil {
			n++
		}
	}
	return n
}

// Extreme returns the least or the greatest cell of column i, nil if all are NULL.
func (g *Group) Extreme(t schema.Type, i int, greatest bool) (best []byte) {
	for _, row := range g.Rows {
		cell := row[i]
		if cell == nil {
			continue
		}
		if order := compareValues(t, cell, best); best == nil || order != 0 && (order > 0) == greatest {
			best = cell
		}
	}
	return knownNaN(t, best)
}

// IsFloat reports whether a column has floats.
func IsFloat(t schema.Type) bool { return t == schema.Float || t == schema.Double }

// FloatOf returns the value of a cell of a float.
func FloatOf(t schema.Type, cell []byte) float64 {
	if t == schema.Float {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(cell)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(cell))
}

// IntOf returns the value of a cell of an integer, or the unscaled integer of a decimal.
func IntOf(t schema.Type, cell []byte) *big.Int {
	v := new(big.Int)
	for _, b := range slices.Backward(cell) {
		v.Or(v.Lsh(v, 8), big.NewInt(int64(b)))
	}
	switch t {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64, schema.Bool:
		return v
	}
	if cell[len(cell)-1] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(cell))))
	}
	return v
}

// Fits128 reports whether v fits 128 bits.
func Fits128(v *big.Int) bool {
	if v.Sign() < 0 {
		v = new(big.Int).Not(v)
	}
	return v.BitLen() < 128
}

// FloatSum is the exact sum of floats.
type FloatSum struct {
	N       int64
	finite  big.Rat
	special float64 // sum of the values that are not finite
}

// Add adds v.
func (s *FloatSum) Add(v float64) {
	s.N++
	if math.IsInf(v, 0) || v != v {
		s.special += v
		return
	}
	s.finite.Add(&s.finite, new(big.Rat).SetFloat64(v))
}

// Over returns the nearest float to the sum divided by n.
func (s *FloatSum) Over(n int64) float64 {
	switch {
	case s.special != s.special:
		return math.NaN()
	case s.special != 0:
		return s.special
	}
	f, _ := new(big.Rat).Quo(&s.finite, new(big.Rat).SetInt64(n)).Float64()
	return f
}
