package tablet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// KeyText is an encoded key as people write it, in JSON: the value of a one-column key, else an object of the key columns. Bytes that
// are no key stand in hex.
func (t *Tablet) KeyText(key []byte) string {
	cells, err := t.Encoder.Decode(key)
	if err != nil {
		return fmt.Sprintf("0x%x", key)
	}
	if t.Schema.SingleKey() {
		return string(appendCellText(nil, &t.Schema.Columns[0], cells[0]))
	}
	out := []byte{'{'}
	for i, cell := range cells {
		if i > 0 {
			out = append(out, ',')
		}
		c := &t.Schema.Columns[i]
		out = append(appendString(out, c.Name), ':')
		out = appendCellText(out, c, cell)
	}
	return string(append(out, '}'))
}

const secondsPerDay = 24 * 60 * 60

// appendCellText appends the JSON form of a cell of a key column.
func appendCellText(dst []byte, c *schema.Column, cell []byte) []byte {
	switch c.Type {
	case schema.String, schema.Varchar:
		return appendString(dst, string(cell))
	case schema.Binary:
		return append(hex.AppendEncode(append(dst, `"0x`...), cell), '"')
	case schema.Date:
		day := time.Unix(int64(integerOf(c.Type, cell).Lo)*secondsPerDay, 0).UTC()
		return append(day.AppendFormat(append(dst, '"'), time.DateOnly), '"')
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		return append(appendDecimal(append(dst, '"'), integerOf(c.Type, cell).String(), c.Scale), '"')
	}
	return append(dst, integerOf(c.Type, cell).String()...)
}

// integerOf widens an integer cell of any width.
func integerOf(t schema.Type, cell []byte) batch.Int128 {
	var b [16]byte
	copy(b[:], cell)
	negative := cell[len(cell)-1]&0x80 != 0
	switch t {
	case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
		negative = false
	}
	for i := len(cell); negative && i < len(b); i++ {
		b[i] = 0xff
	}
	return batch.Int128{Lo: binary.LittleEndian.Uint64(b[:]), Hi: int64(binary.LittleEndian.Uint64(b[8:]))}
}

// appendDecimal appends digits, which may begin with a minus, with the last scale of them behind the point.
func appendDecimal(dst []byte, digits string, scale int) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	dst = append(dst, digits[:point]...)
	if scale > 0 {
		dst = append(append(dst, '.'), digits[point:]...)
	}
	return dst
}

// appendString appends s as a JSON string; only quotes, backslashes and control characters are escaped.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ':
			dst = append(dst, `\u00`...)
			dst = append(dst, strconv.FormatUint(uint64(b)>>4, 16)...)
			dst = append(dst, strconv.FormatUint(uint64(b)&15, 16)...)
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}
