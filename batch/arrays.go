package batch

import "github.com/oribi-db/oribi/schema"

// NewArrays makes a vector of no cells in array form, whose elements are of type t. Fill it with
// AppendArray and AppendNullArray, or let a reader fill it.
func NewArrays(t schema.Type) *Vector {
	v := &Vector{Type: t}
	v.ResetArrays(0)
	return v
}

// ResetArrays makes v hold n cells in array form, all of them empty and none NULL, reusing its
// memory where that suffices.
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

// Array tells where the elements of cell i, of a vector in array form, stand: [from, to) of
// Elements. A NULL cell has none; IsNull tells it from an empty one.
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

// SetOffsets makes v, in array form, the cells that offsets cut its elements into. offsets goes on
// from v.Offsets, whose memory it may use, and is kept; the cells that it adds are not NULL.
// Elements may follow later.
func (v *Vector) SetOffsets(offsets []uint32) {
	v.Offsets = offsets
	v.growPresent(len(offsets) - 1)
	v.Len = len(offsets) - 1
}

// endArray ends the cell behind the last one with the last element.
func (v *Vector) endArray() {
	v.SetOffsets(append(v.Offsets, uint32(v.Elements.Len)))
}

// Extend adds k cells, present and of undefined value, to a vector that is not in array form; one
// in dictionary form is materialised first.
func (v *Vector) Extend(k int) { v.grow(k) }
