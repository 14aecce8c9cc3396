package arrowio

import "math"

// pageHeader is the header of a page of a Parquet file: a struct of Thrift, before the bytes of the
// page.
//
//	field  type    meaning
//	1      i32     type of the page
//	2      i32     bytes of the page, uncompressed
//	3      i32     bytes of the page in the file
//	4      i32     optional: CRC-32 of the bytes of the page in the file
//	5      struct  of a data page: 1 values, 2 encoding, 3 encoding of definition levels,
//	               4 encoding of repetition levels
//	7      struct  of a dictionary page: 1 values, 2 encoding
//	8      struct  of a data page of version 2: 1 values, 2 NULLs, 3 rows, 4 encoding, 5 bytes of
//	               definition levels, 6 bytes of repetition levels, 7 whether values are compressed
//
// A required column of a page of 8 bytes: 15 00 15 10 15 10 2c 15 04 15 00 15 06 15 06 00 00
//
// Source: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
type pageHeader struct {
	kind       int32
	size       int32 // of the page, uncompressed
	stored     int32 // bytes of the page in the file
	crc        uint32
	hasCRC     bool
	values     int32 // of a data page NULLs too
	encoding   int32
	defCoding  int32 // of version 1
	repCoding  int32 // of version 1
	nulls      int32 // of version 2
	rows       int32 // of version 2
	defBytes   int32 // of version 2
	repBytes   int32 // of version 2
	compressed bool  // of version 2
}

// Types of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// parsePageHeader returns the page header at the beginning of b and its size. It returns false if b
// has no whole one.
func parsePageHeader(b []byte) (h pageHeader, size int, ok bool) {
	t := thriftCheck{b: b}
	bodies := 0 // a bit for each type of page whose struct was found
	h.compressed = true
	seen := uint(0)
	ok = t.structure(0, func(id int64, kind byte) (bool, bool) {
		switch {
		case id >= 1 && id <= 4 && kind == thriftI32:
			var crc int32
			seen |= 1 << id
			h.hasCRC = h.hasCRC || id == 4
			ok := t.i32([]*int32{&h.kind, &h.size, &h.stored, &crc}[id-1])
			if id == 4 {
				h.crc = uint32(crc)
			}
			return true, ok
		case id == 5 && kind == thriftStruct:
			bodies |= 1 << dataPage
			return true, t.integers(2, &h.values, &h.encoding, &h.defCoding, &h.repCoding)
		case id == 7 && kind == thriftStruct:
			bodies |= 1 << dictionaryPage
			return true, t.integers(2, &h.values, &h.encoding)
		case id == 8 && kind == thriftStruct:
			bodies |= 1 << dataPageV2
			return true, t.dataPageV2(&h)
		}
		return false, true
	})
	const required = 1<<1 | 1<<2 | 1<<3
	ok = ok && seen&required == required
	switch h.kind {
	case dataPage, dictionaryPage, dataPageV2:
		ok = ok && bodies == 1<<h.kind
	}
	return h, len(b) - len(t.b), ok
}

// i32 reads a value of type i32.
func (t *thriftCheck) i32(to *int32) bool {
	v, ok := t.integer()
	*to = int32(v)
	return ok && v >= math.MinInt32 && v <= math.MaxInt32
}

// integers reads a struct. Its fields 1, 2, … of type i32 are stored in fields; the first required
// ones must be present.
func (t *thriftCheck) integers(required int, fields ...*int32) bool {
	seen := uint(0)
	ok := t.structure(1, func(id int64, kind byte) (bool, bool) {
		if id < 1 || id > int64(len(fields)) || kind != thriftI32 {
			return false, true
		}
		seen |= 1 << (id - 1)
		return true, t.i32(fields[id-1])
	})
	want := uint(1)<<required - 1
	return ok && seen&want == want
}

// dataPageV2 reads the struct of a data page of version 2.
func (t *thriftCheck) dataPageV2(h *pageHeader) bool {
	before := t.b
	ok := t.integers(6, &h.values, &h.nulls, &h.rows, &h.encoding, &h.defBytes, &h.repBytes)
	flags := thriftCheck{b: before}
	return ok && flags.structure(1, func(id int64, kind byte) (bool, bool) {
		if id == 7 && (kind == thriftTrue || kind == thriftFalse) {
			h.compressed = kind == thriftTrue
		}
		return false, true
	})
}
