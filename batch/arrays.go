package batch

import "github.com/oribi-db/oribi/schema"

// NewArrays returns an empty vector in array form with elements of type t. Fill it with AppendArray
// and AppendNullArray, or pass it to a reader.
func NewArrays(t schema.Type) *Vector {
	v := &Vector{Type: t}
	v.ResetArrays(0)
	return v
}

// ResetArrays makes v a vector of n cells in array form, all of them empty and none NULL. It reuses
// v's memory if that is large enough.
func (v *Vector) ResetArrays(n int) {
	v.Len, v.Present, v.Dict, v.Codes = n, nil, nil, v.Codes[:0]
	v.Data, v.Bytes = v.Data[:0], v.Bytes[:0]
	if cap(v.Offsets) < n+1 {
		v.Offsets = make([]uint32, n+1)
	}
	v.Offsets = v.Offsets[:n+1]
	clear(v.Offsets)
	if v.elementsBuf == nil {
		v.elementsBuf = &Vector{Type: v.Type}
	}
	v.Elements = v.elementsBuf
	v.Elements.Reset(0)
}

// Array returns the range [from, to) of Elements that is cell i of a vector in array form. It is
// empty for a NULL cell, which IsNull distinguishes from an empty array.
func (v *Vector) Array(i int) (from, to int) { return int(v.Offsets[i]), int(v.Offsets[i+1]) }

// AppendArray appends a cell of the given elements, nil for those that are NULL, to a vector in
// array form. Elements of fixed width are copied, byte strings aliased.
func (v *Vector) AppendArray(elements [][]byte) {
	for _, e := range elements {
		v.Elements.AppendCell(e)
	}
	v.endArray()
}

// AppendNullArray appends a NULL cell to a vector in array form.
func (v *Vector) AppendNullArray() {
	v.endArray()
	v.NeedPresent().Clear(v.Len - 1)
}

// SetOffsets sets the offsets of v, in array form. offsets extends v.Offsets and may share its
// memory; v retains it. The added cells are not NULL. The elements may be appended later.
func (v *Vector) SetOffsets(offsets []uint32) {
	v.Offsets = offsets
	v.growPresent(len(offsets) - 1)
	v.Len = len(offsets) - 1
}

// endArray appends a cell that ends with the last element.
func (v *Vector) endArray() {
	v.SetOffsets(append(v.Offsets, uint32(v.Elements.Len)))
}

// Extend appends k cells, not NULL and of undefined value, to a vector that is not in array form. A
// vector in dictionary form is materialized first.
func (v *Vector) Extend(k int) { v.grow(k) }
