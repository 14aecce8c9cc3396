package rowset

import (
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// memory is the memory of an iterator, apart from the Iterator itself. It is kept for later
// iterators, of any rowset: making vectors and readers for each column would take longer than a
// scan of a few rows.
type memory struct {
	out     batch.RecordBatch // the current window
	keys    [][]byte          // of its rows
	place   place
	window  delta.Window
	columns []*scanColumn       // by index in the schema; nil if not used yet
	used    []*scanColumn       // the columns that are not nil
	spare   []*scanColumn       // for further ones
	cold    []int               // columns that the current window must read from the disk
	ids     []schema.ColumnID   // see columnIDs
	changed batch.Bitmap        // rows of the window with a change in the iterator's span
	touched batch.Bitmap        // see touchedRows
	rest    batch.Bitmap        // rows that a predicate tests on encoded data
	tests   []columnTests       // of the filter, see planFilter
	others  []batch.Filter      // its other parts
	one     [1]*batch.Predicate // see filterOne
	eval    batch.FilterEval
	encoded encoded
	ahead   ahead
	stored  storedRows
}

// scanColumn is one column of a scan.
type scanColumn struct {
	reader cfile.ColumnReader
	vector batch.Vector // cells in the current window
	columnState
}

// columnState is zero for a column that is not used yet.
type columnState struct {
	open     bool // reader reads the column's file
	loaded   bool // vector has the cells of the current window
	reversed bool // vector has them in descending order
	tested   bool // the filter has a predicate on the column
	again    bool // the column is tested, and then tested again or read
	passed   bool // its test left rows in the last window
}

// Limits of the memory that is kept, in addition to an iterator's selections of up to aheadRows
// bits.
const (
	maxKeptColumns = 64      // of one iterator
	maxKeptVector  = 8 << 10 // bytes of a column: 340 byte strings, 1024 numbers of 8 bytes
)

// memories keeps as many memories as iterators have been open at a time, until the garbage
// collector drops them.
var memories = sync.Pool{New: func() any { return new(memory) }}

// newMemory returns memory for a request on a schema of n columns. The iterator calls release at
// its end.
func newMemory(n int, req *scan.Request) *memory {
	m := memories.Get().(*memory)
	m.columns = resized(m.columns, n)
	m.out.Schema, m.out.Columns = req.Projection(), resized(m.out.Columns, len(req.Columns()))
	return m
}

// resized returns n zero values, in the memory of s if that is large enough.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// column returns a column by its index in the schema.
func (m *memory) column(col int) *scanColumn {
	c := m.columns[col]
	if c == nil {
		if n := len(m.spare); n > 0 {
			c, m.spare = m.spare[n-1], m.spare[:n-1]
		} else {
			c = new(scanColumn)
		}
		m.columns[col] = c
		m.used = append(m.used, c)
	}
	return c
}

// release keeps m for the next iterator. Nothing of the last batch is valid from here on, except
// the memory of byte strings, which m does not own.
func (m *memory) release() {
	for _, c := range m.used {
		if invariant.Enabled {
			for i := range c.vector.Data {
				c.vector.Data[i] = 0xdd // a batch that is used too long shows
			}
		}
		if c.open {
			c.reader.Reset(nil)
		}
		c.vector.Drop(maxKeptVector)
		c.columnState = columnState{}
	}
	if len(m.used) > maxKeptColumns {
		m.used = nil
	}
	m.place.release()
	for i := range m.tests {
		clear(m.tests[i].ps)
	}
	clear(m.others)
	m.encoded.release()
	m.stored.release()
	clear(m.columns)
	clear(m.out.Columns)
	m.out = batch.RecordBatch{Columns: m.out.Columns, Selection: m.out.Selection}
	m.keys, m.window, m.one[0] = nil, delta.Window{}, nil
	m.spare, m.used = append(m.spare, m.used...), m.used[:0]
	m.cold, m.ids, m.tests, m.others = m.cold[:0], m.ids[:0], m.tests[:0], m.others[:0]
	m.ahead = ahead{sel: m.ahead.sel}
	memories.Put(m)
}
