package carbondata

import (
	"bytes"
	"io"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/carbondata/internal/codec"
	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// A data file, in the order of its bytes. Source: carbondata spec §3, §4.1.
//
//	FileHeader       a message; its first field, the version, makes the file begin with 15 06
//	blocklets        column chunks, back to back
//	FileFooter3      a message
//	footer position  8 bytes, big-endian
//
// FileHeader:
//
//	ID  type  field              meaning
//	1   i32   version            3
//	2   list  column_schema      see ColumnSchema
//	3   bool  is_footer_present  false in streaming files, which are not supported
//	4   i64   time_stamp         when it was written, in milliseconds since 1970; not used
//
// The header of a file with the STRING "a":
//
//	15 06  19 1c 15 00 18 01 61 18 01 61 11 19 05 11 00  11  00
//
// The end of a file with its footer at byte 899: 00 00 00 00 00 00 03 83
const (
	headerVersion = 1 // file format: never change
	headerColumns = 2 // file format: never change
	headerFooter  = 3 // file format: never change
	headerTime    = 4 // file format: never change

	version3   = 3  // file format: never change
	pointerLen = 8  // file format: never change
	minFile    = 10 // version and position

	oldMagic = "CARBONDATAVERSION#" // of V2 files
)

// FileFooter3:
//
//	ID  type    field                meaning
//	1   i64     num_rows             of the file
//	2   struct  segment_info         1: columns (i32), 2: cardinalities (list of i32); not used
//	3   list    blocklet_index_list  minima and maxima of each blocklet, see bounds
//	4   list    blocklet_info_list3  see BlockletInfo3
//	6   bool    is_sort              the rows are sorted by the sort columns
//	7   map     extra_info           "written_by", "version"
//
// BlockletInfo3:
//
//	ID  type  field                       meaning
//	1   i32   num_rows
//	2   list  column_data_chunks_offsets  i64 for each column: its chunk in the file
//	3   list  column_data_chunks_length   i32 for each column: bytes of the chunk's header
//	4   i64   dimension_offsets           end of the last dimension
//	5   i64   measure_offsets             end of the last measure, and of the blocklet
//	6   i32   number_number_of_pages
//	7   list  row_count_in_page           i32 for each page; if absent, 32000 and the rest
//
// The footer of a sorted file of 100 rows and two columns, without minima and maxima:
//
//	16 c8 01  1c 15 04 19 05 00  19 1c 00
//	19 1c 15 c8 01 19 26 b0 03 e2 0a 19 25 76 d6 01 16 e2 0a 16 86 0e 15 02 00  21  00
//
// Its blocklet: 100 rows of two columns in one page, chunks at 216 and 689 with headers of 59 and
// 107 bytes, the first ends at 689, the second at 899:
//
//	15 c8 01  19 26 b0 03 e2 0a  19 25 76 d6 01  16 e2 0a  16 86 0e  15 02  00
const (
	footerRows      = 1 // file format: never change
	footerSegment   = 2 // file format: never change
	footerIndexes   = 3 // file format: never change
	footerBlocklets = 4 // file format: never change
	footerSorted    = 6 // file format: never change
	footerExtra     = 7 // file format: never change

	segmentColumns       = 1 // file format: never change
	segmentCardinalities = 2 // file format: never change

	blockletRows       = 1 // file format: never change
	blockletOffsets    = 2 // file format: never change
	blockletLengths    = 3 // file format: never change
	blockletDimensions = 4 // file format: never change
	blockletMeasures   = 5 // file format: never change
	blockletPages      = 6 // file format: never change
	blockletPageRows   = 7 // file format: never change

	defaultPageRows = 32000 // file format: never change
)

// blocklet is a group of rows.
type blocklet struct {
	rows       int
	offsets    []int64 // of the columns' chunks
	lengths    []int   // of the chunks' headers
	dimensions int64   // end of the last dimension
	measures   int64   // end of the last measure
	pages      int
	pageRows   []int
	noPageRows bool   // pageRows is not in the file
	bounds     bounds // not in a BlockletInfo3
}

// segmentInfo is a SegmentInfo.
type segmentInfo struct {
	columns       int
	cardinalities []int
}

func readSegmentInfo(r *thrift.Reader, typ byte) (s segmentInfo) {
	if !r.Want(typ, thrift.Struct) {
		return s
	}
	r.Fields("SegmentInfo", func(id int, typ byte) {
		switch id {
		case segmentColumns:
			s.columns = r.I32(typ)
		case segmentCardinalities:
			s.cardinalities = r.I32s(typ)
		default:
			r.Skip(typ)
		}
	})
	return s
}

func readBlocklet(r *thrift.Reader) (b blocklet) {
	r.Fields("BlockletInfo3", func(id int, typ byte) {
		switch id {
		case blockletRows:
			b.rows = r.I32(typ)
		case blockletOffsets:
			b.offsets = r.I64s(typ)
		case blockletLengths:
			b.lengths = r.I32s(typ)
		case blockletDimensions:
			b.dimensions = r.I64(typ)
		case blockletMeasures:
			b.measures = r.I64(typ)
		case blockletPages:
			b.pages = r.I32(typ)
		case blockletPageRows:
			b.pageRows = r.I32s(typ)
		default:
			r.Skip(typ)
		}
	}, blockletRows, blockletOffsets, blockletLengths, blockletDimensions, blockletMeasures, blockletPages)
	return b
}

// end returns the end of the chunk of column i, of which the first ones are dimensions.
func (b *blocklet) end(i, dimensions int) int64 {
	switch i + 1 {
	case len(b.offsets):
		if i+1 == dimensions {
			return b.dimensions
		}
		return b.measures
	case dimensions:
		return b.dimensions
	}
	return b.offsets[i+1]
}

// check compares the parts of b with each other and with where the blocklets of the file are.
func (b *blocklet) check(columns, dimensions int, from, to int64) error {
	if len(b.offsets) != columns || len(b.lengths) != columns {
		return fault.Corruptf("%d offsets and %d lengths of %d columns", len(b.offsets), len(b.lengths), columns)
	}
	for i := range columns {
		start, end := b.offsets[i], b.end(i, dimensions)
		if start < from || end > to || start >= end || int64(b.lengths[i]) > end-start || b.lengths[i] <= 0 {
			return fault.Corruptf("chunk %d: bytes [%d, %d) with a header of %d, the blocklets are in [%d, %d)", i,
				start, end, b.lengths[i], from, to)
		}
		if i+1 < columns && end > b.offsets[i+1] {
			return fault.Corruptf("chunk %d: ends at byte %d, after the next one begins", i, end)
		}
	}
	b.noPageRows = b.pageRows == nil
	if b.noPageRows && b.rows >= 0 && b.pages == (b.rows+defaultPageRows-1)/defaultPageRows {
		for left := b.rows; left > 0; left -= defaultPageRows {
			b.pageRows = append(b.pageRows, min(left, defaultPageRows))
		}
	}
	if len(b.pageRows) != b.pages {
		return fault.Corruptf("the row counts of %d pages, want %d", len(b.pageRows), b.pages)
	}
	sum := 0
	for i, n := range b.pageRows {
		if n < 0 || n > maxPageRows {
			return fault.Corruptf("page %d: %d rows", i, n)
		}
		sum += n
	}
	if sum != b.rows {
		return fault.Corruptf("%d rows, its pages have %d", b.rows, sum)
	}
	return nil
}

// readAt returns n bytes from the given offset. The caller has checked them against the file's
// size.
func readAt(src block.Source, offset int64, n int) ([]byte, error) {
	var b []byte
	return readInto(&b, src, offset, n)
}

// readInto is readAt into the memory of buffer, which it replaces by a larger one if necessary.
func readInto(buffer *[]byte, src block.Source, offset int64, n int) ([]byte, error) {
	switch {
	case cap(*buffer) >= n:
	case *buffer == nil:
		*buffer = make([]byte, n)
	default:
		*buffer = make([]byte, n+n/codec.GrowSpare)
	}
	b := (*buffer)[:n]
	if n, err := src.ReadAt(b, offset); n < len(b) {
		if err == nil || err == io.EOF {
			err = fault.Corruptf("%d of %d bytes", n, len(b))
		}
		return nil, err
	}
	return b, nil
}

// notV3 returns the error of a file that does not begin with the header of version 3. It names
// version 2 where the first bytes show it.
func notV3(start []byte) error {
	switch {
	case bytes.HasPrefix(start, []byte(oldMagic)):
		return fault.Unsupportedf("a file of version 2")
	case start[0] == 0 || start[0] == 0xff:
		return fault.Corruptf("no header: it begins with %x", start[:2])
	case start[0] == 0x15:
		return fault.Unsupportedf("a version other than 3: it begins with %x", start[:2])
	}
	return fault.Unsupportedf("not a CarbonData file of version 3: it begins with %x", start[:2])
}
