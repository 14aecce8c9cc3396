package carbondata

import (
	"encoding/binary"

	"github.com/oribi-db/oribi/internal/fault"
)

// Thrift's compact protocol, as CarbonData stores its messages: bare structs, without framing.
// Source: carbondata spec §1, §4.
//
//	struct  fields, then a byte 00
//	field   one byte: difference to the ID of the last field << 4 | type; then the value. If the
//	        difference is 0, the ID follows as a zigzag varint
//	bool    no value: types 1 (true) and 2 (false); in a list one byte, 1 or 2
//	ints    zigzag varint, base 128, low bits first
//	binary  length (varint), bytes; also for text
//	list    one byte: count << 4 | type of the elements; count 15: the count follows as a varint
//	map     count (varint); unless 0: type of keys << 4 | type of values, then pairs
//
// The header of a file, version 3 (field 1, an int): 15 06
const (
	typeTrue   = 1  // file format: never change
	typeFalse  = 2  // file format: never change
	typeByte   = 3  // file format: never change
	typeI16    = 4  // file format: never change
	typeI32    = 5  // file format: never change
	typeI64    = 6  // file format: never change
	typeDouble = 7  // file format: never change
	typeBinary = 8  // file format: never change
	typeList   = 9  // file format: never change
	typeSet    = 10 // file format: never change
	typeMap    = 11 // file format: never change
	typeStruct = 12 // file format: never change

	longCount = 15 // file format: never change
	maxDepth  = 32 // of nested structs, lists and maps
)

// thriftReader reads messages from b. After the first error it returns zeros; err is that error.
// Results point into b.
type thriftReader struct {
	b     []byte
	at    int
	depth int
	err   error
	short bool // the error is that b ends too early
}

// fail records the first error and moves to the end, so that loops end.
func (r *thriftReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fault.Corruptf("byte %d: "+format, append([]any{r.at}, args...)...)
	}
}

// take returns the next n bytes.
func (r *thriftReader) take(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)-r.at) {
		r.fail("%d bytes, %d are left", n, len(r.b)-r.at)
		r.short = true
		return nil
	}
	b := r.b[r.at : r.at+int(n) : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *thriftReader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *thriftReader) varint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 {
		r.fail("a varint that does not end")
		r.short = n == 0
		return 0
	}
	r.at += n
	return v
}

func (r *thriftReader) zigzag() int64 {
	v := r.varint()
	return int64(v>>1) ^ -int64(v&1)
}

// enter and leave count the depth of nesting.
func (r *thriftReader) enter() bool {
	if r.depth++; r.depth > maxDepth {
		r.fail("more than %d levels of nesting", maxDepth)
	}
	return r.err == nil
}

func (r *thriftReader) leave() { r.depth-- }

// fields reads a struct. It calls field for each field whose ID is at most 63; field reads the
// value with one of the functions that take its type, or skips it. The struct must contain each of
// the required IDs, and none twice.
func (r *thriftReader) fields(name string, field func(id int, typ byte), required ...int) {
	if !r.enter() {
		return
	}
	defer r.leave()
	var seen uint64
	id := int64(0)
	for {
		head := r.byte()
		if r.err != nil {
			return
		}
		if head == 0 {
			break
		}
		typ := head & 15
		if delta := int64(head >> 4); delta > 0 {
			id += delta
		} else {
			id = r.zigzag()
		}
		if id < 0 || id > 1<<15-1 {
			r.fail("%s: field %d", name, id)
			return
		}
		if id > 63 {
			r.skip(typ)
			continue
		}
		if seen&(1<<id) != 0 {
			r.fail("%s: field %d twice", name, id)
			return
		}
		seen |= 1 << id
		field(int(id), typ)
	}
	for _, id := range required {
		if seen&(1<<id) == 0 {
			r.fail("%s: no field %d", name, id)
			return
		}
	}
}

// want checks the type of a value.
func (r *thriftReader) want(typ, want byte) bool {
	if r.err == nil && typ != want {
		r.fail("a value of type %d, want %d", typ, want)
	}
	return r.err == nil
}

func (r *thriftReader) bool(typ byte) bool {
	if typ != typeFalse {
		return r.want(typ, typeTrue)
	}
	return false
}

func (r *thriftReader) i32(typ byte) int {
	if !r.want(typ, typeI32) {
		return 0
	}
	v := r.zigzag()
	if v != int64(int32(v)) {
		r.fail("%d is out of the range of 32 bits", v)
	}
	return int(v)
}

func (r *thriftReader) i64(typ byte) int64 {
	if !r.want(typ, typeI64) {
		return 0
	}
	return r.zigzag()
}

func (r *thriftReader) bytes(typ byte) []byte {
	if !r.want(typ, typeBinary) {
		return nil
	}
	return r.take(r.varint())
}

func (r *thriftReader) text(typ byte) string { return string(r.bytes(typ)) }

// list calls element for each element with its type. No memory depends on the count alone.
func (r *thriftReader) list(typ byte, element func(typ byte)) {
	if !r.want(typ, typeList) || !r.enter() {
		return
	}
	defer r.leave()
	head := r.byte()
	count := uint64(head >> 4)
	if count == longCount {
		count = r.varint()
	}
	if left := len(r.b) - r.at; r.err == nil && count > uint64(left) {
		r.fail("a list of %d elements, %d bytes are left", count, left)
		r.short = true
	}
	for ; count > 0 && r.err == nil; count-- {
		switch typ := head & 15; typ {
		case typeTrue, typeFalse:
			element(r.byte())
		default:
			element(typ)
		}
	}
}

func (r *thriftReader) i32s(typ byte) (list []int) {
	r.list(typ, func(typ byte) { list = append(list, r.i32(typ)) })
	return list
}

func (r *thriftReader) i64s(typ byte) (list []int64) {
	r.list(typ, func(typ byte) { list = append(list, r.i64(typ)) })
	return list
}

// skip passes over a value of any type.
func (r *thriftReader) skip(typ byte) {
	switch typ {
	case typeTrue, typeFalse:
	case typeByte:
		r.byte()
	case typeI16, typeI32, typeI64:
		r.varint()
	case typeDouble:
		r.take(8)
	case typeBinary:
		r.take(r.varint())
	case typeList, typeSet:
		r.list(typeList, r.skip)
	case typeMap:
		r.skipMap()
	case typeStruct:
		r.fields("struct", func(_ int, typ byte) { r.skip(typ) })
	default:
		r.fail("a value of unknown type %d", typ)
	}
}

func (r *thriftReader) skipMap() {
	if !r.enter() {
		return
	}
	defer r.leave()
	r.pairs(func(key, value byte) {
		r.skip(key)
		r.skip(value)
	})
}

// pairs calls pair for each pair of a map with the types of key and value.
func (r *thriftReader) pairs(pair func(key, value byte)) {
	count := r.varint()
	if count == 0 || r.err != nil {
		return
	}
	types := r.byte()
	element := func(typ byte) byte {
		if typ == typeTrue || typ == typeFalse {
			return typeByte // a bool in a map takes a byte, as in a list
		}
		return typ
	}
	if left := len(r.b) - r.at; count > uint64(left) {
		r.fail("a map of %d pairs, %d bytes are left", count, left)
		r.short = true
	}
	for ; count > 0 && r.err == nil; count-- {
		pair(element(types>>4), element(types&15))
	}
}

// properties reads a map of texts.
func (r *thriftReader) properties(typ byte) map[string]string {
	if !r.want(typ, typeMap) {
		return nil
	}
	m := map[string]string{}
	r.pairs(func(key, value byte) {
		k := r.text(key)
		m[k] = r.text(value)
	})
	return m
}
