package carbondata

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/fault"
)

// rowCode encodes rows as bytes: first a key, which sorts as CarbonData sorts the rows, then the
// values of the other columns. The bytes are for temporary files.
//
// The key has the values of the sort columns, nulls first:
//
//	null        00
//	number      01, then the number with its sign bit flipped, big-endian, as wide as its type
//	text        01, then its bytes, 00 as 00 ff, and at the end 00 00
//
// The other values: numbers as a byte 01 and a varint, text as its length plus one and its bytes,
// lists likewise, a null as 00.
type rowCode struct {
	columns []Column
	keys    []int  // the sort columns, as indexes in columns
	inKey   []bool // by column
}

func newRowCode(columns []Column, keys []int) *rowCode {
	c := &rowCode{columns: columns, keys: keys, inKey: make([]bool, len(columns))}
	for _, k := range keys {
		c.inKey[k] = true
	}
	return c
}

// appendRow appends the length of the key, the key, and the other values.
func (c *rowCode) appendRow(dst []byte, row []any) ([]byte, error) {
	if len(row) != len(c.columns) {
		return dst, fmt.Errorf("%d values for %d columns", len(row), len(c.columns))
	}
	from := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var err error
	for _, k := range c.keys {
		if dst, err = appendKey(dst, &c.columns[k], row[k]); err != nil {
			return dst, fmt.Errorf("column %q: %w", c.columns[k].Name, err)
		}
	}
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-keyLenBytes))
	for i := range c.columns {
		if c.inKey[i] {
			continue
		}
		if dst, err = appendValue(dst, &c.columns[i], row[i]); err != nil {
			return dst, fmt.Errorf("column %q: %w", c.columns[i].Name, err)
		}
	}
	return dst, nil
}

const keyLenBytes = 4

// rowKey returns the key of an encoded row.
func rowKey(b []byte) ([]byte, error) {
	if len(b) < keyLenBytes || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-keyLenBytes) {
		return nil, fault.Corruptf("row of %d bytes", len(b))
	}
	return b[keyLenBytes:][:binary.LittleEndian.Uint32(b)], nil
}

// row decodes a row. The values do not alias b.
func (c *rowCode) row(b []byte) ([]any, error) {
	key, err := rowKey(b)
	if err != nil {
		return nil, err
	}
	row := make([]any, len(c.columns))
	r := codeReader{b: key}
	for _, k := range c.keys {
		row[k] = r.key(&c.columns[k])
	}
	if !r.bad && len(r.b) == 0 {
		r.b = b[keyLenBytes+len(key):]
		for i := range c.columns {
			if !c.inKey[i] {
				row[i] = r.value(&c.columns[i])
			}
		}
	}
	if r.bad || len(r.b) > 0 {
		return nil, fault.Corruptf("row of %d bytes", len(b))
	}
	return row, nil
}

// numberWidth is the width in bytes of a type whose values are integers, and 0 for other types.
func numberWidth(t Type) int {
	switch t {
	case Boolean, Byte:
		return 1
	case Short:
		return 2
	case Int, Date:
		return 4
	case Long, Timestamp:
		return 8
	}
	return 0
}

// number returns a value of such a type as an integer.
func number(t Type, v any) (n int64, ok bool) {
	switch t {
	case Boolean:
		var b bool
		if b, ok = v.(bool); b {
			n = 1
		}
		return n, ok
	case Byte:
		return signed[int8](v)
	case Short:
		return signed[int16](v)
	case Int:
		return signed[int32](v)
	case Long:
		return signed[int64](v)
	case Date:
		return signed[Days](v)
	case Timestamp:
		return signed[Micros](v)
	}
	return 0, false
}

func signed[T ~int8 | ~int16 | ~int32 | ~int64](v any) (int64, bool) {
	n, ok := v.(T)
	return int64(n), ok
}

// ofNumber is the value that number returned.
func ofNumber(t Type, n int64) any {
	switch t {
	case Boolean:
		return n != 0
	case Byte:
		return int8(n)
	case Short:
		return int16(n)
	case Int:
		return int32(n)
	case Long:
		return n
	case Date:
		return Days(n)
	}
	return Micros(n)
}

func wrongType(c *Column, v any) error {
	return fmt.Errorf("a value of type %T for %s", v, c.TypeName())
}

func appendKey(dst []byte, c *Column, v any) ([]byte, error) {
	if v == nil {
		return append(dst, 0), nil
	}
	dst = append(dst, 1)
	if width := numberWidth(c.Type); width > 0 {
		n, ok := number(c.Type, v)
		if !ok {
			return dst, wrongType(c, v)
		}
		ordered := uint64(n)<<(64-8*width) ^ 1<<63
		for range width {
			dst = append(dst, byte(ordered>>56))
			ordered <<= 8
		}
		return dst, nil
	}
	text, ok := v.(string)
	if !ok || c.Type != String {
		return dst, wrongType(c, v)
	}
	for i := range len(text) {
		if dst = append(dst, text[i]); text[i] == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 0), nil
}

func appendValue(dst []byte, c *Column, v any) (_ []byte, err error) {
	if v == nil {
		return append(dst, 0), nil
	}
	ok := false
	switch c.Type {
	case Float:
		var f float32
		if f, ok = v.(float32); ok {
			dst = binary.LittleEndian.AppendUint32(append(dst, 1), math.Float32bits(f))
		}
	case Double:
		var f float64
		if f, ok = v.(float64); ok {
			dst = binary.LittleEndian.AppendUint64(append(dst, 1), math.Float64bits(f))
		}
	case Decimal:
		var n batch.Int128
		if n, ok = v.(batch.Int128); ok {
			dst = binary.AppendVarint(binary.AppendVarint(append(dst, 1), n.Hi), int64(n.Lo))
		}
	case String, Varchar:
		var text string
		if text, ok = v.(string); ok {
			dst = append(binary.AppendUvarint(dst, uint64(len(text))+1), text...)
		}
	case Binary:
		var b []byte
		if b, ok = v.([]byte); ok {
			dst = append(binary.AppendUvarint(dst, uint64(len(b))+1), b...)
		}
	case Array, Map, Struct:
		var list []any
		if list, ok = v.([]any); !ok || c.Type == Struct && len(list) != len(c.Children) {
			return dst, wrongType(c, v)
		}
		dst = binary.AppendUvarint(dst, uint64(len(list))+1)
		for i, element := range list {
			child := &c.Children[0]
			if c.Type == Struct {
				child = &c.Children[i]
			}
			if dst, err = appendValue(dst, child, element); err != nil {
				return dst, err
			}
		}
	default:
		var n int64
		if n, ok = number(c.Type, v); ok {
			dst = binary.AppendVarint(append(dst, 1), n)
		}
	}
	if !ok {
		return dst, wrongType(c, v)
	}
	return dst, nil
}

// codeReader reads values from the front of b. After malformed bytes bad is set, and the values
// that it returns have no meaning.
type codeReader struct {
	b   []byte
	bad bool
}

// take returns the next n bytes, or nil if there are fewer.
func (r *codeReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *codeReader) uvarint() uint64 {
	v, n, ok := coding.Uvarint64(r.b)
	if !ok {
		r.b, r.bad = nil, true
	}
	r.b = r.b[n:]
	return v
}

func (r *codeReader) varint() int64 {
	v := r.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// present reads the byte before a value that is not text or a list.
func (r *codeReader) present() bool {
	b := r.take(1)
	return len(b) > 0 && b[0] != 0
}

func (r *codeReader) key(c *Column) any {
	if !r.present() {
		return nil
	}
	if width := numberWidth(c.Type); width > 0 {
		var ordered uint64
		for _, b := range r.take(uint64(width)) {
			ordered = ordered<<8 | uint64(b)
		}
		return ofNumber(c.Type, int64(ordered<<(64-8*width)^1<<63)>>(64-8*width))
	}
	var text []byte
	for {
		b := r.take(1)
		if len(b) == 0 {
			return nil
		}
		if b[0] == 0 {
			if end := r.take(1); len(end) == 0 || end[0] == 0 {
				return string(text)
			}
		}
		text = append(text, b[0])
	}
}

func (r *codeReader) value(c *Column) any {
	switch c.Type {
	case String, Varchar, Binary:
		n := r.uvarint()
		if n == 0 {
			return nil
		}
		b := r.take(n - 1)
		if c.Type == Binary {
			return append([]byte{}, b...)
		}
		return string(b)
	case Array, Map, Struct:
		return r.list(c)
	}
	if !r.present() {
		return nil
	}
	switch c.Type {
	case Float:
		if b := r.take(4); !r.bad {
			return math.Float32frombits(binary.LittleEndian.Uint32(b))
		}
	case Double:
		if b := r.take(8); !r.bad {
			return math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case Decimal:
		hi := r.varint()
		return batch.Int128{Hi: hi, Lo: uint64(r.varint())}
	default:
		return ofNumber(c.Type, r.varint())
	}
	return nil
}

func (r *codeReader) list(c *Column) any {
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	n--
	if n > uint64(len(r.b)) || c.Type == Struct && n != uint64(len(c.Children)) {
		r.b, r.bad = nil, true
		return nil
	}
	list := make([]any, n)
	for i := range list {
		child := &c.Children[0]
		if c.Type == Struct {
			child = &c.Children[i]
		}
		list[i] = r.value(child)
	}
	return list
}
