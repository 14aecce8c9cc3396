package carbondata

import (
	"bytes"
	"encoding/binary"

	"github.com/oribi-db/oribi/batch"
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

func nestedDate(b []byte) (any, error) {
	switch len(b) {
	case 0:
		return nil, nil
	case dateLen:
		return date(binary.BigEndian.Uint32(b) ^ 1<<31), nil
	}
	return nil, fault.Corruptf("DATE of %d bytes", len(b))
}

func nestedDecimal(c *Column, b []byte) (any, error) {
	if len(b) == 0 {
		return nil, nil
	}
	scale, unscaled := int(b[0]), b[1:]
	const maxBytes = 16
	if len(unscaled) == 0 || len(unscaled) > maxBytes || scale > c.Scale {
		return nil, fault.Corruptf("%s with %d digits after the point in %d bytes", c.TypeName(), scale, len(b))
	}
	v, err := rescale(batch.Int128(int128(unscaled)), c.Scale-scale)
	if err != nil || !v.FitsDigits(c.Precision) {
		return nil, fault.Corruptf("a value out of the range of %s", c.TypeName())
	}
	return v, nil
}
