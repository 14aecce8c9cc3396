package model

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// cellLimit is the default of Options.CellLimit.
const cellLimit = 64 << 10

// valueAfter returns the cell of column i after an operation that sets it, or has an operand for it, given
// the cell before. It reports whether the column can represent the result.
func (t *Table) valueAfter(op *script.Op, i int, before []byte) (cell []byte, ok bool) {
	c, x := &t.Schema.Columns[i], op.Cells[i]
	kind := op.Operand(i)
	switch {
	case kind == "" || before == nil:
		return x, true
	case kind == script.SetIfNull:
		return before, true
	case kind == script.Append:
		cell = append(append([]byte{}, before...), x...) // not nil
		return cell, len(cell) <= cellLimit && (c.Type != schema.Varchar || utf8.RuneCount(cell) <= c.Length)
	case kind == script.Add && c.Type.Float():
		return addFloats(c, before, x)
	case kind == script.Add:
		sum := new(big.Int).Add(bigOf(c.Type, before), bigOf(c.Type, x))
		return bigCell(c, sum)
	}
	if less := lessCell(c, x, before); less && kind == script.Min || !less && kind == script.Max && lessCell(c, before, x) {
		return x, true
	}
	return before, true
}

func addFloats(c *schema.Column, a, b []byte) ([]byte, bool) {
	if c.Type == schema.Float {
		x, y := values.GoValue(c, a).(float32), values.GoValue(c, b).(float32)
		sum := x + y
		return knownNaN(c.Type, littleEndian(uint64(math.Float32bits(sum)), 4)), finite(float64(sum)) || !finite(float64(x)) || !finite(float64(y))
	}
	x, y := values.GoValue(c, a).(float64), values.GoValue(c, b).(float64)
	return knownNaN(c.Type, littleEndian(math.Float64bits(x+y), 8)), finite(x+y) || !finite(x) || !finite(y)
}

// finite reports whether f is a number; NaN counts as one.
func finite(f float64) bool { return !math.IsInf(f, 0) }

func littleEndian(v uint64, n int) []byte {
	cell := make([]byte, n)
	for i := range cell {
		cell[i] = byte(v >> (8 * i))
	}
	return cell
}

// bigOf returns the integer of a cell, the unscaled one of a decimal.
func bigOf(t schema.Type, cell []byte) *big.Int {
	bytes := slices.Clone(cell)
	slices.Reverse(bytes)
	v := new(big.Int).SetBytes(bytes)
	if !unsigned(t) && bytes[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(cell))))
	}
	return v
}

func unsigned(t schema.Type) bool {
	return t == schema.Uint8 || t == schema.Uint16 || t == schema.Uint32 || t == schema.Uint64
}

// bigCell returns the cell for an integer. It reports whether the column can represent it.
func bigCell(c *schema.Column, v *big.Int) ([]byte, bool) {
	bits := uint(8 * c.Type.Width())
	most := new(big.Int).Lsh(big.NewInt(1), bits-1)
	least := new(big.Int).Neg(most)
	switch {
	case c.Type.Decimal():
		most = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Precision)), nil)
		least = new(big.Int).Sub(big.NewInt(1), most)
	case unsigned(c.Type):
		most.Lsh(most, 1)
		least = new(big.Int)
	}
	if v.Cmp(least) < 0 || v.Cmp(most) >= 0 {
		return nil, false
	}
	m := new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), bits), big.NewInt(1)))
	cell := m.FillBytes(make([]byte, bits/8))
	slices.Reverse(cell)
	return cell, true
}

// lessCell reports whether a is below b in the order of MinOf.
func lessCell(c *schema.Column, a, b []byte) bool {
	if !c.Type.Float() {
		return CompareKeys(&schema.Schema{Columns: []schema.Column{*c}}, [][]byte{a}, [][]byte{b}) < 0
	}
	x, y := floatOf(c, a), floatOf(c, b)
	switch {
	case math.IsNaN(x) || math.IsNaN(y):
		return !math.IsNaN(x)
	case x == y:
		return cmp.Compare(1/x, 1/y) < 0 // zeros of different signs
	}
	return x < y
}

func floatOf(c *schema.Column, cell []byte) float64 {
	switch x := values.GoValue(c, cell).(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	}
	return 0
}
