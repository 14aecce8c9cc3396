package carbondata

import (
	"sync"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// pages reads the columns of a scan, page by page, and selects rows.
type pages struct {
	table       *Table
	stats       *ScanStats
	nextFile    int
	fileRead    bool // counted in stats
	*pageReader      // reads the current page

	// See readAhead.
	readers []*pageReader // all; the first reads headers and dictionaries
	free    []*pageReader // of them: without a page
	ahead   []*pageReader // of them: with the pages after the current one, in order
	last    int           // the last page that a reader was given
}

// pageReader reads one page after another of a scan's columns, and selects rows. It reads the
// columns of the filter before the others, and the others only if the filter selects rows of the
// page.
type pageReader struct {
	filter  *boundFilter  // nil without a filter
	pruner  pruner        // if there is a filter
	columns []*scanColumn // the filter's columns first; each once
	tested  int           // how many are the filter's
	result  []*scanColumn // the columns of the result

	file     *tableFile // nil before the first file is opened
	blocklet int        // of file; −1 before the first
	page     int        // of the blocklet; −1 before the first

	rows      int          // of the page
	selection batch.Bitmap // of the page's rows
	judged    bool         // the page's bounds do not say that no row is selected

	limit   int      // memory of the file
	keep    int      // memory of former pages that may be used again
	headers int      // what the headers and dictionaries of the blocklet have left of the limit
	memory  memory   // of the page
	scratch []byte   // a page as it is in the file
	others  [][]byte // the same for goroutines
	procs   int      // goroutines that read columns, at most
	eval    batch.FilterEval
	window  int // rows that the filter is evaluated on at once

	running sync.WaitGroup // a goroutine that reads the page
	taken   int            // memory that the page takes, at most
	err     error          // of the page
}

// keptShare is the part of the limit that memory of former pages may take.
const keptShare = 8

// scanColumn is a column of a scan.
type scanColumn struct {
	column *Column // of the table
	place  int     // in the table's schema
	cells  *cells  // nil: the file does not have the column, but missing in each row
	open   bool    // cells has the headers of the blocklet
	read   bool    // cells has the current page
	need   int     // memory of the page, see readColumns

	missing any

	vector batch.Vector // of the filter: cells of the window
	filled bool
}

// pruner finds out what a scan need not read: blocklets and pages of which bounds and dictionaries
// say that the filter is true for no row, and columns of pages that need no test.
type pruner struct {
	filter   *boundFilter
	disabled bool      // for tests: everything is read
	blocklet []verdict // of each test in the blocklet
	page     []verdict // in the page
	// of each test: the words of the dictionary that pass; nil without a dictionary
	matches []batch.Bitmap
}

const (
	maxBatchRows  = batch.WindowRows
	maxBatchBytes = 4 << 20 // of vectors, without the bytes that strings point to
	stringBytes   = 24
)

// cellBytes returns the memory of a cell in a vector, without the bytes of a string.
func cellBytes(t schema.Type) int {
	if w := t.Width(); w > 0 {
		return w
	}
	return stringBytes
}

// verdict says of how many rows of a file, a blocklet, or a page a filter is true.
type verdict uint8
