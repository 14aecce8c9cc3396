package carbondata

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// memory limits what a scan has in memory of one file: the headers and dictionaries of a blocklet,
// and a page of each column with the offsets, codes, and values computed from it. Source:
// carbondata spec §17.
type memory struct {
	left int
	work *work // nil: not limited
}

// memoryFor returns the limit for a number of bytes, so that reading them takes no more than 32
// times their size and 32 MiB, whatever a codec could produce from them.
func memoryFor(size int64) int { return int(min(24<<20+28*size, 1<<31-1)) }

// elementBytes is the memory of a Go value in a row, or of an element, a field, or a pair, with its
// place in a slice, but without long text.
const elementBytes = 64

// rowBytes is memory for a row in addition to the part of the limit that pages do not use.
const rowBytes = 4 << 20

// elements returns the memory that a row may take, in multiples of elementBytes.
func (m *memory) elements() int { return (max(m.left, 0) + rowBytes) / elementBytes }

// take uses n bytes of the limit.
func (m *memory) take(n int) error {
	if m.left -= n; m.left < 0 {
		return fault.Unsupportedf("a page of all columns takes more memory than one of a file of this size may")
	}
	return nil
}

// work limits the bytes that a scan uncompresses from one file, and so its time. Zstandard makes
// 128 KiB of 4 bytes: without a limit, a damaged file of a megabyte could keep a CPU busy for
// minutes, with pages that each fit into memory. A cell of a page is free up to cellWork bytes:
// rows that the file has may take time. Rows of longer text are limited, by far more than any real
// file has.
//
// It is safe for concurrent use.
type work struct{ left atomic.Int64 }

const (
	cellWork  = 64
	minWork   = 1 << 30
	workRatio = 1024 // about what gzip makes of a byte, at most
)

// unpacked uses the limit of work for n bytes of some cells.
func (m *memory) unpacked(n, cells int) error {
	// A page inside complex columns may have more cells than rows, at no cost to the file.
	n -= cellWork * min(cells, maxPageRows)
	if m.work != nil && n > 0 && m.work.left.Add(-int64(n)) < 0 {
		return fault.Unsupportedf("its pages become more bytes than a file of this size may have")
	}
	return nil
}

// fewer reports whether n is less than most, and fails otherwise.
func fewer(r *thrift.Reader, n, most int, what string) bool {
	if n >= most && r.Err == nil {
		r.Err = fault.Unsupportedf("more than %d %s in %d bytes", most, what, len(r.In))
	}
	return r.Err == nil
}

// maxPageRows is the greatest number of rows of a page.
const maxPageRows = 1<<15 - 1
