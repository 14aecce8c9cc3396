// Package batch contains decoded columns: vectors of equal length with a selection, and predicates
// on one column.
//
// A reader fills the vectors of a RecordBatch and predicates clear bits of its selection. A caller
// visits the rows that remain, or makes the batch dense with Compact. Values and Strings return a
// whole column as a Go slice, without a call for each cell:
//
//	sizes := batch.Values[int64](b.Columns[1])
//	for i := range b.Rows() {
//		sum += sizes[i]
//	}
//
// Nothing here is safe for concurrent use. Cells are stored as the machine reads them,
// little-endian; the engine builds for little-endian machines only.
package batch

import "github.com/oribi-db/oribi/schema"

// WindowRows is the number of rows of a scan's window: row IDs [4096 k, 4096 (k+1)).
const WindowRows = 4096

// windowBytes is about how many bytes the cells of a window take in memory, without the bytes of byte
// strings: up to 32 columns have windows of WindowRows.
const windowBytes = 2 << 20

// RowsOf returns the number of rows of windows in which a row has cells of so many bytes, see
// CellBytes: WindowRows, or less for wide tables, in which many windows may be in memory at once. It
// is a power of two, so that windows end where full ones do.
func RowsOf(cells int) int {
	n := WindowRows
	for n > leastRows && n*cells > windowBytes {
		n /= 2
	}
	return n
}

// leastRows is the minimum of RowsOf.
const leastRows = 256

// CellBytes returns the bytes that a cell of a type has in a vector, without the bytes of a byte
// string.
func CellBytes(t schema.Type) int {
	if w := t.Width(); w > 0 {
		return w
	}
	return sliceBytes
}

// sliceBytes is the size of a slice.
const sliceBytes = 24

// RowBytes returns the sum of CellBytes of columns.
func RowBytes(columns []schema.Column) (n int) {
	for i := range columns {
		n += CellBytes(columns[i].Type)
	}
	return n
}

// RecordBatch is a set of decoded rows: column i of the batch is Columns[i], each with Len cells.
//
// Selection has one bit for each row, 1 for the rows of the result; a scan never returns a batch
// with a nil Selection. The other rows have cells too, but their byte strings may be empty instead
// of the table's. Rows visits the selected rows, Compact removes the others.
type RecordBatch struct {
	Schema    []schema.Column // the columns, in the order of Columns
	Columns   []*Vector
	Len       int
	Selection Bitmap
}

// New returns a batch of n rows for the given columns, all rows selected, values zero.
func New(columns []schema.Column, n int) *RecordBatch {
	b := &RecordBatch{Schema: columns, Columns: make([]*Vector, len(columns))}
	for i := range columns {
		b.Columns[i] = &Vector{Type: columns[i].Type}
	}
	b.Reset(n)
	return b
}

// Reset makes b a batch of n rows, values undefined, all selected, and reuses its memory.
func (b *RecordBatch) Reset(n int) {
	b.Len = n
	for _, v := range b.Columns {
		v.Reset(n)
	}
	b.Selection = b.Selection.Resize(n)
	b.Selection.SetRange(0, n)
}

// Selected returns the number of selected rows.
func (b *RecordBatch) Selected() int { return b.Selection.Count() }
