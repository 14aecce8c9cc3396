package batch

import "slices"

// Take returns a batch with the rows of b and moves the memory of b's columns and selection to it.
// The columns of b are empty afterwards, so whoever fills b again allocates new memory.
func (b *RecordBatch) Take() *RecordBatch {
	out := &RecordBatch{Schema: b.Schema, Columns: make([]*Vector, len(b.Columns)), Len: b.Len, Selection: b.Selection}
	for i, v := range b.Columns {
		if k := slices.Index(b.Columns[:i], v); k >= 0 {
			out.Columns[i] = out.Columns[k]
			continue
		}
		moved := *v
		out.Columns[i] = &moved
	}
	for _, v := range b.Columns {
		*v = Vector{Type: v.Type}
	}
	b.Selection, b.Len = nil, 0
	return out
}
