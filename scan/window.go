package scan

import "github.com/oribi-db/oribi/batch"

// Window is a range of rows of a DiskRowSet, of which some are selected, before their columns are
// read. It computes with stored values, without decoding them. Columns are indexes of the request's
// columns.
//
// rows are rows of Selection, which are the rows of the answer. If ok is false, the window cannot
// compute the answer from stored values: the columns must be read. Not safe for concurrent use.
type Window interface {
	// Selection returns the rows for which the filter is true. Read-only, and valid until the
	// iterator moves.
	Selection() batch.Bitmap
	// Count returns the number of cells that are not NULL.
	Count(column int, rows batch.Bitmap) (n int64, ok bool, err error)
	// Sum adds up the cells of a column of integers. n is the number of cells that are not NULL.
	Sum(column int, rows batch.Bitmap) (sum batch.Int128, n int64, ok bool, err error)
	// SumProducts adds up the products of two columns of integers. n is the number of rows in which
	// neither is NULL.
	SumProducts(a, b int, rows batch.Bitmap) (sum batch.Int128, n int64, ok bool, err error)
	// Extreme returns the least or the greatest cell of a column of numbers or byte strings, nil if
	// all are NULL. −0 is below +0; NaN is the answer only if all cells are NaN or NULL.
	Extreme(column int, greatest bool, rows batch.Bitmap) (cell []byte, ok bool, err error)
	// Split calls f for each distinct cell of a column that has few, with the rows that have it;
	// nil is NULL. It stops at the first error of f. The arguments of f are valid during the call.
	Split(column int, rows batch.Bitmap, f func(cell []byte, rows batch.Bitmap) error) (ok bool, err error)
	// InPlanes reports whether Sum is likely to compute with a column of integers as it is stored,
	// without decompressing it.
	InPlanes(column int) (bool, error)
	// Describe describes the cells of a column in all windows of the rowset.
	Describe(column int) (ColumnInfo, error)
	// Strips calls f for successive parts of rows, with the codes of some columns and the cells of
	// others. If ok is false, it has not called f. It stops at the first error of f.
	Strips(x *Index, rows batch.Bitmap, f func(s *Strip) error) (ok bool, err error)
}

// ColumnInfo describes the stored cells of a column.
type ColumnInfo struct {
	// Coded is set if each cell has a code, a small integer.
	Coded bool
	Bits  int // of a code, at most 16
	// Words has the cell of each code and is read-only. It is nil if the code of a cell is its
	// integer.
	Words [][]byte
	// Null is the code of NULL: one bit that no other code has. It is 0 if the column has no NULLs.
	Null uint16

	// Integers is set if the cells are integers whose magnitudes are at most Most, and not NULL.
	Integers bool
	Most     uint64
}

// Index describes what Strips reads.
type Index struct {
	Codes  []IndexColumn // columns whose codes make up the index of a row
	Bits   int           // of an index, at most 15
	Values []int         // columns of integers
}

// IndexColumn is a column whose codes are bits [Shift, Shift+Bits) of the indexes.
type IndexColumn struct {
	Column int
	Shift  int
	ColumnInfo
}

// Strip is part of the rows of a window, valid until f returns.
type Strip struct {
	Index  []uint16  // of each row; 1<<Bits or more if the row is not selected
	Values [][]int64 // the cells of each column of values, of all rows; undefined if not selected
}

// Consumer takes a window and returns true, or wants it as a batch and returns false.
type Consumer func(w Window) (taken bool, err error)

// Offerer is an iterator that can offer its windows to a consumer before it reads columns. Next
// does not return windows that the consumer takes.
type Offerer interface {
	// Offer sets the consumer, which is offered all windows that Next has not read yet.
	Offer(c Consumer)
}
