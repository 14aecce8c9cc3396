package batch

import (
	"iter"
	"slices"
)

// Rows returns the positions of the selected rows, in order.
func (b *RecordBatch) Rows() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			if !yield(i) {
				return
			}
		}
	}
}

// Compact makes b dense: it removes the rows that are not selected, in place, so that every
// position below the new Len is a row of the result. The rows keep their order. The memory of the
// columns is reused: slices of it that were obtained before are invalid.
func (b *RecordBatch) Compact() {
	n := b.Selection.Count()
	if n == b.Len {
		return
	}
	for i, v := range b.Columns {
		if !slices.Contains(b.Columns[:i], v) {
			v.compact(b.Selection, n)
		}
	}
	b.Len = n
	b.Selection = b.Selection.Resize(n)
	b.Selection.SetRange(0, n)
}

// compact keeps the cells whose bit in sel is 1; there are n.
func (v *Vector) compact(sel Bitmap, n int) {
	if v.Present != nil {
		to := 0
		for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
			if v.Present.Get(i) {
				v.Present.Set(to)
			} else {
				v.Present.Clear(to)
			}
			to++
		}
		v.Present.ClearRange(n, v.Len)
		v.Present = v.Present[:(n+63)/64]
	}
	switch {
	case v.Elements != nil:
		v.compactArrays(sel, n)
	case v.Dict != nil:
		v.Codes = kept(v.Codes, sel)
	case v.Type.Variable():
		v.Bytes = kept(v.Bytes, sel)
	default:
		w, to := v.Type.Width(), 0
		for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
			copy(v.Data[to:to+w], v.Data[i*w:])
			to += w
		}
		v.Data = v.Data[:to]
	}
	v.Len = n
}

// compactArrays keeps the arrays whose bit in sel is 1; there are n.
func (v *Vector) compactArrays(sel Bitmap, n int) {
	elements := MakeBitmap(v.Elements.Len)
	to, total := 0, uint32(0)
	for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
		from, end := v.Offsets[i], v.Offsets[i+1] // read before Offsets[to+1], to ≤ i, is written
		elements.SetRange(int(from), int(end))
		total += end - from
		v.Offsets[to+1] = total
		to++
	}
	v.Offsets = v.Offsets[:n+1]
	v.Elements.compact(elements, int(total))
}

// kept moves the elements whose bit in sel is 1 to the front of s, and returns them.
func kept[T any](s []T, sel Bitmap) []T {
	to := 0
	for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
		s[to] = s[i]
		to++
	}
	return s[:to]
}
