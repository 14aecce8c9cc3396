package batch

import (
	"iter"
	"math/bits"
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
		for from, end := sel.NextRun(0, v.Len); from < end; from, end = sel.NextRun(end, v.Len) {
			to += copy(v.Data[to:], v.Data[from*w:end*w])
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

// kept moves the elements whose bit in sel is 1 to the front of s, and returns them. Most rows that a
// scan leaves out are single rows, so the others are moved in runs.
func kept[T any](s []T, sel Bitmap) []T {
	to := 0
	for from, end := sel.NextRun(0, len(s)); from < end; from, end = sel.NextRun(end, len(s)) {
		to += copy(s[to:], s[from:end])
	}
	return s[:to]
}

// NextRun returns the first run [from, end) of 1 bits at or after i, among the first n bits; both
// are n if no bit from i on is 1.
func (b Bitmap) NextRun(i, n int) (from, end int) {
	if from = b.Next(i); from < 0 || from >= n {
		return n, n
	}
	w := from >> 6
	if x := ^b[w] >> (uint(from) & 63); x != 0 {
		return from, min(n, from+bits.TrailingZeros64(x))
	}
	for w++; w < len(b); w++ {
		if x := ^b[w]; x != 0 {
			return from, min(n, w<<6+bits.TrailingZeros64(x))
		}
	}
	return from, n
}
