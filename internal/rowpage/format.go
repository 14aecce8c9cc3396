// Package rowpage packs a few consecutive rows into a page, so that a read of one row reads a few
// kilobytes and unpacks nothing but that row. A page has one column after another: integers as
// their distances from the smallest one, in as many bits as the largest distance needs; decimal
// fractions, stored as doubles, as such integers; byte strings of a small vocabulary as numbers of
// words. Long byte strings may be left out, to be read elsewhere.
//
// A Builder makes the pages of a file and collects its words. Format.Parse reads a page.
package rowpage

import (
	"github.com/oribi-db/oribi/schema"
)

// MaxRows is the largest number of rows of a page.
const MaxRows = 1 << 12

// MaxString is the most bytes that a byte string of a page has, unless its column is part of the
// key.
const MaxString = 4 << 10

// A page of n rows:
//
//	offset  width  field    meaning
//	0       2      rows     n, 1 to 4096, little-endian
//	2       …      columns  in the order of the format
//	…       …      pieces   of the columns of kind 6, in their order
//	…       8      zeros    so that the last bits can be read as a word
//
// A column:
//
//	width   field     meaning
//	1       kind      see below; +128: some cells are NULL
//	1       bits      w, 0 to 64; not of kinds 0 and 5
//	1       decimals  0 to 15; of kind 2 only
//	8       base      a number, little-endian; not of kinds 0 and 5
//	⌈n/8⌉   presence  bit i, lowest first, is row i, 1 = present; only if some cells are NULL
//	⌈nw/8⌉  numbers   w bits for each row, lowest first; not of kinds 0 and 5
//	…       heap      of kinds 4 and 5
//
// The cell of row i, with the number x:
//
//	kind    name      cell
//	0       left out  not in the page
//	1       integer   base + x modulo 2^64, cut to the width of the type; of 16 bytes: extended by its sign
//	2       decimal   a double: the signed integer base + x, divided by 10^decimals
//	3       word      word base + x of the column's words
//	4       string    bytes of the heap that end at base·(i+1) + x, and begin where those of row i−1 end
//	5       raw       the bytes [16i, 16i+16) of the heap; zeros for NULL
//	6       far       as kind 4, but the bytes are in pieces of the column's file
//
// The pieces of a column:
//
//	width   field     meaning
//	1       count     of pieces
//	14 each pieces
//	+0  2   rows      whose bytes are in the piece, back to back
//	+2  8   offset    of the bytes in the file; all ones: they are not stored as they are
//	+10 4   crc       CRC-32C of the bytes
//
// The rows (INT32 7, STRING "a" left out) and (9, "b" left out):
// 02 00 01 02 07 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 00 00
const (
	kindOut     = 0 // file format: never change
	kindInteger = 1 // file format: never change
	kindDecimal = 2 // file format: never change
	kindWord    = 3 // file format: never change
	kindString  = 4 // file format: never change
	kindRaw     = 5 // file format: never change
	kindFar     = 6 // file format: never change

	hasNulls = 128 // file format: never change

	headBytes  = 2  // file format: never change
	slackBytes = 8  // file format: never change
	pieceBytes = 14 // file format: never change
	maxDecimal = 15 // file format: never change
)

// Format describes the pages of rows with certain columns. It is immutable and safe for concurrent
// use.
type Format struct{ columns []column }

// column is what a page needs to know of a column.
type column struct {
	typ   schema.Type
	width int // 0 = byte string
}

// NewFormat returns the format of pages with the given columns.
func NewFormat(columns []schema.Column) *Format {
	f := &Format{columns: make([]column, len(columns))}
	for i := range columns {
		f.columns[i] = column{columns[i].Type, columns[i].Type.Width()}
	}
	return f
}

// powers are the powers of ten with at most maxDecimal zeros, each of which a double has exactly.
var powers = func() (p [maxDecimal + 1]float64) {
	x := 1.0
	for i := range p {
		p[i] = x
		x *= 10
	}
	return p
}()
