package batch

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// A column of arrays has two forms in memory. The packed form, returned by scans, is an ordinary
// vector of type schema.Array whose cells are byte strings in the format of schema.AppendArray. The
// array form (NewArrays) gives access to the elements; files are read and written in it.
// AppendPacked and AppendUnpacked convert between the two.

// maxArrayBytes limits one cell; no row is longer. Without the limit, a few bytes of dictionary
// codes could expand to 65535 long words.
const maxArrayBytes = 8 << 20

// AppendPacked appends all cells of src, in array form, to v, a vector of type schema.Array. The
// new cells do not alias src and are never overwritten; equal adjacent cells share memory. Errors:
// ErrCorrupt for a cell that is too large for a row; v then has the cells before it.
func (v *Vector) AppendPacked(src *Vector) error {
	var elements [][]byte
	var last []byte
	for i := range src.Len {
		if src.IsNull(i) {
			v.AppendCell(nil)
			continue
		}
		from, to := src.Array(i)
		if to-from > schema.MaxElements {
			return fault.Corruptf("array of %d elements, at most %d", to-from, schema.MaxElements)
		}
		elements = elements[:0]
		size := 0
		for k := from; k < to; k++ {
			e := src.Elements.Cell(k)
			elements, size = append(elements, e), size+len(e)
		}
		if size > maxArrayBytes {
			return fault.Corruptf("array of %d bytes, at most %d", size, maxArrayBytes)
		}
		v.packed = schema.AppendArray(v.packed[:0], src.Type, elements)
		if last == nil || string(last) != string(v.packed) {
			last = append(make([]byte, 0, len(v.packed)), v.packed...)
		}
		v.AppendCell(last)
	}
	return nil
}

// AppendUnpacked appends cells [from, to) of src, of type schema.Array, to v, which is in array
// form and has the type of the elements. Byte strings are aliased. Errors: ErrCorrupt for a cell
// that is not an array of such elements; v then has the cells before it.
func (v *Vector) AppendUnpacked(src *Vector, from, to int) error {
	var elements [][]byte
	for i := from; i < to; i++ {
		cell := src.Cell(i)
		if cell == nil {
			v.AppendNullArray()
			continue
		}
		var err error
		if elements, err = schema.ArrayElements(elements[:0], v.Type, cell); err != nil {
			return fmt.Errorf("cell %d: %w", i, err)
		}
		v.AppendArray(elements)
	}
	return nil
}
