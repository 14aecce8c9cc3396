package batch

import (
	"slices"

	"github.com/oribi-db/oribi/schema"
)

// sortCells returns the distinct values of cells in ascending order, without NULLs and NaNs.
func sortCells(t schema.Type, cells [][]byte) [][]byte {
	out := make([][]byte, 0, len(cells))
	for _, c := range cells {
		if c != nil && !IsNaN(t, c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b []byte) int { return Compare(t, a, b) })
	return slices.CompactFunc(out, func(a, b []byte) bool { return Compare(t, a, b) == 0 })
}

// Eval clears the bits of sel whose cells do not pass and sets none. Bit i is for cell i of v,
// which is of p's type. Eval may skip cells whose bit is 0. For arrays only IsNull and NotNull can
// be true.
func (p *Predicate) Eval(v *Vector, sel Bitmap) {
	switch {
	case p.Op == IsNull && v.Present == nil:
		sel.ClearRange(0, v.Len)
		return
	case p.Op == IsNull:
		for i, w := range v.Present[:min(len(v.Present), len(sel))] {
			sel[i] &^= w
		}
		return
	}
	if v.Present != nil {
		for i, w := range v.Present[:min(len(v.Present), len(sel))] {
			sel[i] &= w
		}
	}
	switch {
	case p.Op == NotNull || v.Len == 0:
	case v.Elements != nil:
		sel.ClearRange(0, v.Len)
	case v.Dict != nil:
		p.evalCodes(v, sel)
	case v.Type.Variable():
		p.evalStrings(v.Bytes, sel)
	default:
		p.evalFixed(v, sel)
	}
}

// evalFixed selects the kernel for the type, once per vector.
func (p *Predicate) evalFixed(v *Vector, sel Bitmap) {
	switch v.Type.Physical() {
	case schema.Uint8, schema.Bool:
		evalOrdered[uint8](p, v, sel)
	case schema.Int8:
		evalOrdered[int8](p, v, sel)
	case schema.Uint16:
		evalOrdered[uint16](p, v, sel)
	case schema.Int16:
		evalOrdered[int16](p, v, sel)
	case schema.Uint32:
		evalOrdered[uint32](p, v, sel)
	case schema.Int32:
		evalOrdered[int32](p, v, sel)
	case schema.Uint64:
		evalOrdered[uint64](p, v, sel)
	case schema.Int64:
		evalOrdered[int64](p, v, sel)
	case schema.Float:
		evalOrdered[float32](p, v, sel)
	case schema.Double:
		evalOrdered[float64](p, v, sel)
	case schema.Int128:
		p.evalEach(v, sel) // Go's operators cannot compare these
	}
}

// evalStrings tests the selected byte strings one by one.
func (p *Predicate) evalStrings(cells [][]byte, sel Bitmap) {
	if p.Op == Eq || p.Op == Ne {
		// Equality needs no order: most strings differ in length or in the first word.
		want, c := p.Op == Eq, string(p.Values[0])
		for i := sel.Next(0); i >= 0 && i < len(cells); i = sel.Next(i + 1) {
			if (string(cells[i]) == c) != want {
				sel.Clear(i)
			}
		}
		return
	}
	for i := sel.Next(0); i >= 0 && i < len(cells); i = sel.Next(i + 1) {
		// An empty byte string may be nil here, which EvalCell would treat as NULL.
		cell := cells[i]
		if cell == nil {
			cell = emptyCell
		}
		if !p.EvalCell(cell) {
			sel.Clear(i)
		}
	}
}

// evalEach tests the selected cells of fixed width one by one.
func (p *Predicate) evalEach(v *Vector, sel Bitmap) {
	width := v.Type.Width()
	for i := sel.Next(0); i >= 0 && i < v.Len; i = sel.Next(i + 1) {
		if !p.EvalCell(v.Data[i*width : i*width+width]) {
			sel.Clear(i)
		}
	}
}
