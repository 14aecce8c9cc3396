package batch

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// A column of arrays has two forms in memory. As cells of type schema.Array, byte strings in the
// form that schema.AppendArray tells, it goes wherever other columns go: that is how scans hand it
// out. In array form (NewArrays) its elements are there to be computed with, and files are read and
// written. AppendPacked and AppendUnpacked bring one into the other.

// maxArrayBytes bounds one cell: no row is longer. A dictionary says 65535 long words in few bytes.
const maxArrayBytes = 8 << 20

// AppendPacked appends all cells of src, in array form, to v, a vector of type schema.Array. The
// bytes are v's own, and hold as long as they are referenced; of neighbours that are equal they are
// the same. Errors: ErrCorrupt for a cell that no row can have. v has the cells before it then.
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

// AppendUnpacked appends cells [from, to) of src, which is of type schema.Array, to v, in array
// form; its elements are of v's type. Byte strings are aliased. Errors: ErrCorrupt for a cell that
// is no array of such elements; v has the cells before it then.
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
