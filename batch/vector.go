package batch

import (
	"unsafe"

	"github.com/oribi-db/oribi/schema"
)

// Ordinal is the 0-based position of a cell within one cfile, and of a row within one DiskRowSet
// (row ID).
type Ordinal uint32

// Int128 is a signed 128-bit integer in two's complement, low half first.
type Int128 struct {
	Lo uint64
	Hi int64
}

// Fixed are the Go types of cells of fixed width.
type Fixed interface {
	~uint8 | ~int8 | ~uint16 | ~int16 | ~uint32 | ~int32 | ~uint64 | ~int64 | ~float32 | ~float64 | Int128
}

// Dictionary contains the distinct values that the codes of a vector refer to. Immutable.
type Dictionary struct {
	Words [][]byte
}

// Vector is one decoded column of Len cells.
//
// The values have exactly one of three forms:
//   - Data, for types of fixed width: Len × Width bytes, little-endian, aligned to 8 bytes (Values
//     gives the typed view; Bool is one byte, 0 or 1);
//   - Bytes, for byte strings: one slice a cell;
//   - Codes with Dict, for byte strings of a dictionary cblock; Materialize turns them into Bytes.
//
// A column of arrays has a fourth form instead: cell i is the elements [Offsets[i], Offsets[i+1])
// of Elements, a vector of one of the forms above; Type is the type of an element. NewArrays and
// ResetArrays make such a vector; methods that return or take single cells (Cell, SetCell, Fill,
// AppendRun …) do not work on it. The same column as byte strings, of type schema.Array, is an
// ordinary vector: AppendPacked and AppendUnpacked convert between the two.
//
// Present has one bit for each cell, 1 for present; nil means that no cell is NULL. The value of a
// NULL cell is undefined in Data and Codes (but codes are below the dictionary's length) and nil in
// Bytes.
//
// The function that fills a vector documents how long its byte strings are valid. A Vector is not
// safe for concurrent use while it is filled.
type Vector struct {
	Type    schema.Type
	Len     int
	Data    []byte
	Bytes   [][]byte
	Codes   []uint32
	Dict    *Dictionary
	Present Bitmap

	Elements *Vector  // of all cells, back to back; its NULLs are NULL elements
	Offsets  []uint32 // Len+1 of them, ascending from 0

	presentBuf  Bitmap  // memory of Present, kept while Present is nil
	elementsBuf *Vector // memory of Elements
	packed      []byte  // memory of AppendPacked
}

// NewVector makes a vector of n cells, none of them NULL, values zero.
func NewVector(t schema.Type, n int) *Vector {
	v := &Vector{Type: t}
	v.Reset(n)
	return v
}

// Reset makes v a vector of n cells, none of them NULL, with undefined values. It reuses v's memory
// if that is large enough.
func (v *Vector) Reset(n int) {
	v.Len, v.Present, v.Dict, v.Codes, v.Elements = n, nil, nil, v.Codes[:0], nil
	if w := v.Type.Width(); w > 0 {
		v.Data = growAligned(v.Data, n*w)
		return
	}
	if cap(v.Bytes) < n {
		v.Bytes = make([][]byte, n)
	}
	v.Bytes = v.Bytes[:n]
}

// Drop makes v an empty vector of no type that refers to no cell, for use as any column after Type
// is set. It keeps v's memory if that has at most limit bytes.
func (v *Vector) Drop(limit int) {
	const header = 24 // bytes of a slice
	if cap(v.Data)+header*cap(v.Bytes)+4*cap(v.Codes)+8*cap(v.presentBuf) > limit {
		*v = Vector{}
		return
	}
	if len(v.Bytes) > 0 { // else all of them were cleared before
		clear(v.Bytes[:cap(v.Bytes)])
	}
	v.Type, v.Len, v.Present, v.Dict = 0, 0, nil, nil
	v.Data, v.Bytes, v.Codes, v.presentBuf = v.Data[:0], v.Bytes[:0], v.Codes[:0], v.presentBuf[:0]
	v.Elements, v.Offsets, v.elementsBuf, v.packed = nil, nil, nil, nil
}

// growAligned returns a slice of n bytes that begins at a multiple of 8 bytes, in b's memory if
// that is large enough.
func growAligned(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

// UseCodes makes v a vector in dictionary form with n codes, which the caller fills.
func (v *Vector) UseCodes(d *Dictionary, n int) {
	v.Len, v.Dict = n, d
	if cap(v.Codes) < n {
		v.Codes = make([]uint32, n)
	}
	v.Codes = v.Codes[:n]
}

// NeedPresent gives v a presence bitmap of all ones if it has none, and returns it.
func (v *Vector) NeedPresent() Bitmap {
	if v.Present == nil {
		v.presentBuf = v.presentBuf.Resize(v.Len)
		v.presentBuf.SetRange(0, v.Len)
		v.Present = v.presentBuf
	}
	return v.Present
}

// ZeroPresent gives v a presence bitmap of all zeros and returns it.
func (v *Vector) ZeroPresent() Bitmap {
	v.presentBuf = v.presentBuf.Resize(v.Len)
	v.Present = v.presentBuf
	return v.Present
}

// IsNull reports whether cell i is NULL.
func (v *Vector) IsNull(i int) bool { return v.Present != nil && !v.Present.Get(i) }

// Cell returns the bytes of cell i, nil for NULL: Width bytes little-endian, or the byte string. An
// empty byte string is not nil. The result aliases v.
func (v *Vector) Cell(i int) []byte {
	if v.IsNull(i) {
		return nil
	}
	if w := v.Type.Width(); w > 0 {
		return v.Data[i*w : i*w+w : i*w+w]
	}
	var b []byte
	if v.Dict != nil {
		b = v.Dict.Words[v.Codes[i]]
	} else {
		b = v.Bytes[i]
	}
	if b == nil {
		return emptyCell
	}
	return b
}

var emptyCell = []byte{}

// SetCell sets cell i to the given bytes, nil for NULL. Cells of fixed width are copied, byte
// strings aliased. A vector in dictionary form is materialized first.
func (v *Vector) SetCell(i int, cell []byte) {
	if v.Dict != nil {
		v.Materialize()
	}
	if cell == nil {
		v.NeedPresent().Clear(i)
		if v.Type.Variable() {
			v.Bytes[i] = nil
		}
		return
	}
	if v.Present != nil {
		v.Present.Set(i)
	}
	if w := v.Type.Width(); w > 0 {
		copy(v.Data[i*w:i*w+w], cell)
		return
	}
	v.Bytes[i] = cell
}

// Materialize turns the dictionary form into Bytes, which alias the dictionary's words. It does
// nothing to other forms.
func (v *Vector) Materialize() {
	if v.Dict == nil {
		return
	}
	if cap(v.Bytes) < v.Len {
		v.Bytes = make([][]byte, v.Len)
	}
	v.Bytes = v.Bytes[:v.Len]
	words := v.Dict.Words
	if v.Present == nil {
		for i, c := range v.Codes {
			v.Bytes[i] = words[c]
		}
	} else {
		for i, c := range v.Codes {
			if v.Present.Get(i) {
				v.Bytes[i] = words[c]
			} else {
				v.Bytes[i] = nil
			}
		}
	}
	v.Dict, v.Codes = nil, v.Codes[:0]
}

// Fill makes v a vector of n equal cells, nil for NULL, as for a column that a rowset does not
// have.
func (v *Vector) Fill(n int, cell []byte) {
	v.Reset(n)
	if cell == nil {
		v.ZeroPresent()
		if v.Type.Variable() {
			clear(v.Bytes)
		}
		return
	}
	if v.Type.Variable() {
		for i := range v.Bytes {
			v.Bytes[i] = cell
		}
		return
	}
	for o := 0; o < len(v.Data); o += len(cell) {
		copy(v.Data[o:], cell)
	}
}

// grow adds k cells, present, values undefined.
func (v *Vector) grow(k int) {
	if v.Dict != nil {
		v.Materialize()
	}
	n := v.Len + k
	if w := v.Type.Width(); w > 0 {
		if cap(v.Data) < n*w {
			grown := growAligned(nil, max(2*cap(v.Data), n*w))
			copy(grown, v.Data)
			v.Data = grown
		}
		v.Data = v.Data[:n*w]
	} else {
		for len(v.Bytes) < n {
			v.Bytes = append(v.Bytes, nil)
		}
	}
	v.growPresent(n)
	v.Len = n
}

// growPresent extends the presence bitmap, if v has one, to n bits with ones.
func (v *Vector) growPresent(n int) {
	if v.Present == nil {
		return
	}
	for len(v.Present) < (n+63)/64 {
		v.Present = append(v.Present, 0)
	}
	v.Present.SetRange(v.Len, n)
	v.presentBuf = v.Present
}
