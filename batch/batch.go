// Package batch holds decoded columns: vectors of equal length with a selection, and tests on one
// column.
//
// Use: a reader fills the vectors of a RecordBatch, predicates clear bits of its selection, a caller
// walks the bits that are left with Selection.Next. Types of fixed width are read through Values,
// without a call per cell:
//
//	sizes := batch.Values[int64](b.Columns[1])
//	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
//		sum += sizes[i]
//	}
//
// Nothing here is safe for concurrent use. Cells are kept as the machine reads them, little-endian;
// the engine builds for little-endian machines only.
package batch

import "github.com/oribi-db/oribi/schema"

// WindowRows is the number of rows of a scan's window: row IDs [4096 k, 4096 (k+1)).
const WindowRows = 4096

// RecordBatch is a number of rows, decoded: column i of the batch is Columns[i], all of Len cells.
//
// Selection has one bit a row, 1 for the rows that are in the result; it is never nil in a batch
// that a scan hands out.
type RecordBatch struct {
	Schema    []schema.Column // the columns, in the order of Columns
	Columns   []*Vector
	Len       int
	Selection Bitmap
}

// New makes a batch of n rows for the given columns, all rows selected.
func New(columns []schema.Column, n int) *RecordBatch {
	b := &RecordBatch{Schema: columns, Columns: make([]*Vector, len(columns))}
	for i := range columns {
		b.Columns[i] = &Vector{Type: columns[i].Type}
	}
	b.Reset(n)
	return b
}

// Reset makes b hold n rows, values undefined, all selected.
func (b *RecordBatch) Reset(n int) {
	b.Len = n
	for _, v := range b.Columns {
		v.Reset(n)
	}
	b.Selection = b.Selection.Resize(n)
	b.Selection.SetRange(0, n)
}

// Selected is the number of rows still wanted.
func (b *RecordBatch) Selected() int { return b.Selection.Count() }
