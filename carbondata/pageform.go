package carbondata

import (
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/internal/fault"
)

// Data of a page after decompression, one entry per row. Source: carbondata spec §7.
//
//	numbers            see numbers: store type's width, little-endian; 3 bytes: big-endian
//	DECIMAL over 18    digits: two's complement, big-endian, see decimalWidth
//	STRING             length (2, big-endian), bytes
//	VARCHAR, BINARY    length (4, big-endian), bytes
//	local dictionary   surrogate (3, big-endian)
//	DATE               4, big-endian: 1 for null, else days since 1970-01-01, see switchDay, and
//	                   3fffffff
//	numbers before 1.5 in sort columns, and TIMESTAMP: length (2), big-endian with the sign bit
//	                   flipped; no bytes for null
//
// With INVERTED_INDEX the entries are sorted, see inverse. With RLE and runs there is one entry for
// each run, see runEnds.
//
// Inside ARRAY, STRUCT, and MAP there is one entry for each element of the parent's page, and no
// entry is sorted. Numbers are as above. The length of a string has 4 bytes if the encodings
// contain INT_LENGTH_COMPLEX_CHILD_BYTE_ARRAY, else 2. Source: carbondata spec §7.8.
//
//	ARRAY, MAP         number of elements (4, big-endian), index of the first (4): elements are in
//	                   order and without gaps
//	STRUCT             number of fields (2, big-endian)
//	DATE               length, 4 bytes as above with the sign bit flipped; no bytes for null
//	DECIMAL            length, scale (1), unscaled: two's complement, big-endian; no bytes for null
//
// The DATE 2019-03-02: 40 00 46 24. The STRING "ab": 00 02 61 62. A null STRING:
// 00 08 40 4e 55 23 4c 4c 24 21
const (
	nullText      = "@NU#LL$!" // file format: never change
	dateNull      = 1          // file format: never change
	dateZero      = 1<<30 - 1  // file format: never change
	dateLen       = 4          // file format: never change
	surrogateLen  = 3          // file format: never change
	lengthLen     = 2          // file format: never change
	longLengthLen = 4          // file format: never change
)

// form is how the values of a page are stored.
type form int

const (
	formNumbers form = iota
	formStrings
	formSurrogates
	formDates
	formOldNumbers // as strings of bytes
	formNestedDates
	formNestedDecimals
	formElements // of ARRAY and MAP
	formFields   // of STRUCT
)

// isNullText reports whether a stored STRING, VARCHAR, or BINARY is null. Source: carbondata spec
// §7.4.
func isNullText(typ Type, b []byte) bool {
	if typ == Binary {
		return len(b) == 0
	}
	return len(b) == len(nullText) && string(b) == nullText
}

// splitStrings returns where the strings in data are: string i ends at offset i+1, and begins
// prefix bytes after offset i. They are in the memory of dst if that is large enough.
func splitStrings(dst []uint32, data []byte, prefix, n int) ([]uint32, error) {
	if n > len(data)/prefix {
		return nil, fault.Corruptf("%d bytes are too short for %d strings", len(data), n)
	}
	if cap(dst) < n+1 {
		dst = make([]uint32, n+1)
	}
	offsets := dst[:n+1]
	offsets[0] = 0
	i, at := 0, 0
	if prefix == lengthLen {
		i, at = splitShort(offsets, data)
	}
	for ; i < n; i++ {
		if len(data)-at < prefix {
			return nil, fault.Corruptf("string %d begins at byte %d of %d", i, at, len(data))
		}
		length := int(int16(binary.BigEndian.Uint16(data[at:])))
		if prefix == longLengthLen {
			length = int(int32(binary.BigEndian.Uint32(data[at:])))
		}
		at += prefix
		if length < 0 || length > len(data)-at {
			return nil, fault.Corruptf("string %d: %d bytes, %d are left", i, length, len(data)-at)
		}
		at += length
		offsets[i+1] = uint32(at)
	}
	if at != len(data) {
		return nil, fault.Corruptf("%d bytes after the last string", len(data)-at)
	}
	return offsets, nil
}

// splitShort sets offsets, but the first, to the ends of strings in data whose lengths have two
// bytes. It stops before a string that is too long, and returns the string's index and offset.
func splitShort(offsets []uint32, data []byte) (i, at int) {
	ends := offsets[1:]
	for i = range ends {
		if uint(at+lengthLen) > uint(len(data)) {
			return i, at
		}
		end := at + lengthLen + int(binary.BigEndian.Uint16(data[at:at+lengthLen]))
		if end > len(data) || end-at > lengthLen+math.MaxInt16 {
			return i, at
		}
		ends[i] = uint32(end)
		at = end
	}
	return len(ends), at
}

// offsetBytes is the memory of an offset or a code.
const offsetBytes = 4
