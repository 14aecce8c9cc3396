package arrowio

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
	fields, rest, ok := thriftFields(b)
	if !ok {
		return h, 0, false
	}
	var crc int32
	if !integersOf(fields, 3, &h.kind, &h.size, &h.stored, &crc) {
		return h, 0, false
	}
	h.crc, h.compressed = uint32(crc), true
	structs := 0 // a bit for each type of page whose struct was found
	for _, f := range fields {
		var in []thriftField
		if f.kind == thriftStruct {
			in, _, ok = thriftFields(f.value)
		}
		switch {
		case f.id == 4:
			h.hasCRC = true
		case f.id == 5:
			structs |= 1 << dataPage
			ok = ok && integersOf(in, 2, &h.values, &h.encoding, &h.defCoding, &h.repCoding)
		case f.id == 7:
			structs |= 1 << dictionaryPage
			ok = ok && integersOf(in, 2, &h.values, &h.encoding)
		case f.id == 8:
			structs |= 1 << dataPageV2
			ok = ok && integersOf(in, 6, &h.values, &h.nulls, &h.rows, &h.encoding, &h.defBytes, &h.repBytes)
			for _, f := range in {
				h.compressed = h.compressed && !(f.id == 7 && f.kind == thriftFalse)
			}
		}
		if !ok {
			return h, 0, false
		}
	}
	switch h.kind {
	case dataPage, dictionaryPage, dataPageV2:
		ok = structs == 1<<h.kind
	}
	return h, len(b) - len(rest), ok
}

// integersOf stores fields 1, 2, … of a struct in to. The first required ones must be present.
func integersOf(fields []thriftField, required int, to ...*int32) bool {
	found := 0
	for _, f := range fields {
		if f.id < 1 || int(f.id) > len(to) {
			continue
		}
		n, ok := f.integer()
		if !ok {
			return false
		}
		*to[f.id-1] = n
		if int(f.id) <= required {
			found |= 1 << f.id
		}
	}
	return found == 1<<(required+1)-2
}
