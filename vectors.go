package oribi

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// packArrays returns columns with vectors in array form converted to cells, the form that the
// engine uses. The caller's vectors do not change. After an error, row and column are its position.
func packArrays(s *schema.Schema, columns []*batch.Vector, limit int) (packed []*batch.Vector, row int, column string, err error) {
	packed = columns
	for i, v := range columns {
		if v == nil || v.Elements == nil {
			continue
		}
		if row, err := checkArrays(v, limit); err != nil {
			return nil, row, s.Columns[i].Name, err
		}
		if &packed[0] == &columns[0] {
			packed = append([]*batch.Vector(nil), columns...)
		}
		packed[i] = &batch.Vector{Type: schema.Array}
		if err := packed[i].AppendPacked(v); err != nil {
			return nil, packed[i].Len, s.Columns[i].Name, err
		}
	}
	return packed, 0, "", nil
}

// checkArrays checks the cells of a vector in array form and returns the first one that is too
// large.
func checkArrays(v *batch.Vector, limit int) (row int, err error) {
	width := v.Type.Width()
	for i := range v.Len {
		from, to := v.Array(i)
		if to-from > schema.MaxElements {
			return i, errTooManyElements(to - from)
		}
		size := 0
		for k := from; k < to && width == 0; k++ {
			size += len(v.Elements.Cell(k))
		}
		if size > limit {
			return i, errCellTooLong(size, limit)
		}
	}
	return 0, nil
}
