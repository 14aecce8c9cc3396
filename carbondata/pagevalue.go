package carbondata

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/oribi-db/oribi/internal/fault"
)

func (p *page) isNull(row int) bool {
	return row/8 < len(p.nulls) && p.nulls[row/8]&(1<<(row%8)) != 0
}

// value returns the value of a row of a column without children as a Go value, see Type.
func (p *page) value(row int) (any, error) {
	if p.isNull(row) {
		return nil, nil
	}
	i := row
	if p.inverse != nil {
		i = int(p.inverse[row])
	}
	switch p.form {
	case formSurrogates:
		code, err := p.code(i)
		if err != nil {
			return nil, err
		}
		return p.dict.value(p.column.Type, code), nil
	case formDates:
		return date(binary.BigEndian.Uint32(p.data[i*dateLen:])), nil
	case formStrings:
		return textValue(p.column.Type, p.bytes(i)), nil
	case formOldNumbers:
		return oldNumber(p.column, p.bytes(i))
	case formNestedDates:
		return nestedDate(p.bytes(i))
	case formNestedDecimals:
		return nestedDecimal(p.column, p.bytes(i))
	case formElements, formFields:
		return nil, fault.Corruptf("%s without children", p.column.TypeName())
	}
	return p.numbers.value(i)
}

func (p *page) bytes(i int) []byte {
	return p.data[int(p.offsets[i])+p.prefix : p.offsets[i+1]]
}

// bytesAt returns the length of a row's string of bytes, of which value returns a copy, else 0.
func (p *page) bytesAt(row int) int {
	if p.form != formStrings {
		return 0
	}
	return len(p.bytes(p.entry(row)))
}

// isNullText reports whether a stored STRING, VARCHAR, or BINARY is null. Source: carbondata spec
// §7.4.
func isNullText(typ Type, b []byte) bool {
	if typ == Binary {
		return len(b) == 0
	}
	return len(b) == len(nullText) && string(b) == nullText
}

// textValue returns the value of a STRING, VARCHAR or BINARY.
func textValue(typ Type, b []byte) any {
	switch {
	case isNullText(typ, b):
		return nil
	case typ == Binary:
		return bytes.Clone(b)
	}
	return string(b)
}

func date(surrogate uint32) any {
	if surrogate == dateNull {
		return nil
	}
	return Days(int32(int64(surrogate) - dateZero))
}

// oldNumber returns a number of a sort column before 1.5. Source: carbondata spec §7.1.
func oldNumber(c *Column, b []byte) (any, error) {
	switch typ := c.inFile().Type; {
	case len(b) == 0:
		return nil, nil
	case typ == Boolean && len(b) == 1:
		return b[0] != 0, nil
	case typ == Short && len(b) == 2:
		return int16(binary.BigEndian.Uint16(b) ^ 1<<15), nil
	case typ == Int && len(b) == 4:
		return integer(c.Type, int64(int32(binary.BigEndian.Uint32(b)^1<<31)))
	case (typ == Long || typ == Timestamp) && len(b) == 8:
		return integer(typ, int64(binary.BigEndian.Uint64(b)^1<<63))
	}
	return nil, fault.Corruptf("%v of %d bytes", c.inFile().Type, len(b))
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
