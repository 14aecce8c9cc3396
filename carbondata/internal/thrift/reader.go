// Package thrift reads and writes messages of Thrift's compact protocol, as CarbonData stores them. A
// Reader and a Writer are for one goroutine.
package thrift

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
	True   = 1  // file format: never change
	False  = 2  // file format: never change
	Byte   = 3  // file format: never change
	I16    = 4  // file format: never change
	I32    = 5  // file format: never change
	I64    = 6  // file format: never change
	Double = 7  // file format: never change
	Binary = 8  // file format: never change
	List   = 9  // file format: never change
	Set    = 10 // file format: never change
	Map    = 11 // file format: never change
	Struct = 12 // file format: never change

	LongCount = 15 // file format: never change
	MaxDepth  = 32 // of nested structs, lists and maps
)

// Reader reads messages from In. After the first error it returns zeros; Err is that error. Results
// point into In.
type Reader struct {
	In    []byte
	At    int
	depth int
	Err   error
	Short bool // the error is that In ends too early
}

// Fail records the first error and moves to the end, so that loops end.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fault.Corruptf("byte %d: "+format, append([]any{r.At}, args...)...)
	}
}

// take returns the next n bytes.
func (r *Reader) take(n uint64) []byte {
	if r.Err != nil {
		return nil
	}
	if n > uint64(len(r.In)-r.At) {
		r.Fail("%d bytes, %d are left", n, len(r.In)-r.At)
		r.Short = true
		return nil
	}
	b := r.In[r.At : r.At+int(n) : r.At+int(n)]
	r.At += int(n)
	return b
}

func (r *Reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *Reader) varint() uint64 {
	if r.Err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.In[r.At:])
	if n <= 0 {
		r.Fail("a varint that does not end")
		r.Short = n == 0
		return 0
	}
	r.At += n
	return v
}

// Zigzag returns an integer without its type, as in lists.
func (r *Reader) Zigzag() int64 {
	v := r.varint()
	return int64(v>>1) ^ -int64(v&1)
}

// enter and leave count the depth of nesting.
func (r *Reader) enter() bool {
	if r.depth++; r.depth > MaxDepth {
		r.Fail("more than %d levels of nesting", MaxDepth)
	}
	return r.Err == nil
}

func (r *Reader) leave() { r.depth-- }

// Fields reads a struct. It calls field for each field whose ID is at most 63; field reads the
// value with one of the functions that take its type, or skips it. The struct must contain each of
// the required IDs, and none twice.
func (r *Reader) Fields(name string, field func(id int, typ byte), required ...int) {
	if !r.enter() {
		return
	}
	defer r.leave()
	var seen uint64
	id := int64(0)
	for {
		head := r.byte()
		if r.Err != nil {
			return
		}
		if head == 0 {
			break
		}
		typ := head & 15
		if delta := int64(head >> 4); delta > 0 {
			id += delta
		} else {
			id = r.Zigzag()
		}
		if id < 0 || id > 1<<15-1 {
			r.Fail("%s: field %d", name, id)
			return
		}
		if id > 63 {
			r.Skip(typ)
			continue
		}
		if seen&(1<<id) != 0 {
			r.Fail("%s: field %d twice", name, id)
			return
		}
		seen |= 1 << id
		field(int(id), typ)
	}
	for _, id := range required {
		if seen&(1<<id) == 0 {
			r.Fail("%s: no field %d", name, id)
			return
		}
	}
}

// Want checks the type of a value.
func (r *Reader) Want(typ, want byte) bool {
	if r.Err == nil && typ != want {
		r.Fail("a value of type %d, want %d", typ, want)
	}
	return r.Err == nil
}

// Bool returns a bool of type typ, which must be True or False.
func (r *Reader) Bool(typ byte) bool {
	if typ != False {
		return r.Want(typ, True)
	}
	return false
}

// I32 returns an i32; typ must be I32.
func (r *Reader) I32(typ byte) int {
	if !r.Want(typ, I32) {
		return 0
	}
	v := r.Zigzag()
	if v != int64(int32(v)) {
		r.Fail("%d is out of the range of 32 bits", v)
	}
	return int(v)
}

// I64 returns an i64; typ must be I64.
func (r *Reader) I64(typ byte) int64 {
	if !r.Want(typ, I64) {
		return 0
	}
	return r.Zigzag()
}

// Bytes returns a byte string; typ must be Binary.
func (r *Reader) Bytes(typ byte) []byte {
	if !r.Want(typ, Binary) {
		return nil
	}
	return r.take(r.varint())
}

// Text returns a copy of a byte string; typ must be Binary.
func (r *Reader) Text(typ byte) string { return string(r.Bytes(typ)) }

// List calls element for each element with its type. No memory depends on the count alone.
func (r *Reader) List(typ byte, element func(typ byte)) {
	if !r.Want(typ, List) || !r.enter() {
		return
	}
	defer r.leave()
	head := r.byte()
	count := uint64(head >> 4)
	if count == LongCount {
		count = r.varint()
	}
	if left := len(r.In) - r.At; r.Err == nil && count > uint64(left) {
		r.Fail("a list of %d elements, %d bytes are left", count, left)
		r.Short = true
	}
	for ; count > 0 && r.Err == nil; count-- {
		switch typ := head & 15; typ {
		case True, False:
			element(r.byte())
		default:
			element(typ)
		}
	}
}

// I32s returns a list of i32.
func (r *Reader) I32s(typ byte) (list []int) {
	r.List(typ, func(typ byte) { list = append(list, r.I32(typ)) })
	return list
}

// I64s returns a list of i64.
func (r *Reader) I64s(typ byte) (list []int64) {
	r.List(typ, func(typ byte) { list = append(list, r.I64(typ)) })
	return list
}

// Skip passes over a value of any type.
func (r *Reader) Skip(typ byte) {
	switch typ {
	case True, False:
	case Byte:
		r.byte()
	case I16, I32, I64:
		r.varint()
	case Double:
		r.take(8)
	case Binary:
		r.take(r.varint())
	case List, Set:
		r.List(List, r.Skip)
	case Map:
		r.skipMap()
	case Struct:
		r.Fields("struct", func(_ int, typ byte) { r.Skip(typ) })
	default:
		r.Fail("a value of unknown type %d", typ)
	}
}

func (r *Reader) skipMap() {
	if !r.enter() {
		return
	}
	defer r.leave()
	r.pairs(func(key, value byte) {
		r.Skip(key)
		r.Skip(value)
	})
}

// pairs calls pair for each pair of a map with the types of key and value.
func (r *Reader) pairs(pair func(key, value byte)) {
	count := r.varint()
	if count == 0 || r.Err != nil {
		return
	}
	types := r.byte()
	element := func(typ byte) byte {
		if typ == True || typ == False {
			return Byte // a bool in a map takes a byte, as in a list
		}
		return typ
	}
	if left := len(r.In) - r.At; count > uint64(left) {
		r.Fail("a map of %d pairs, %d bytes are left", count, left)
		r.Short = true
	}
	for ; count > 0 && r.Err == nil; count-- {
		pair(element(types>>4), element(types&15))
	}
}

// Properties reads a map of texts.
func (r *Reader) Properties(typ byte) map[string]string {
	if !r.Want(typ, Map) {
		return nil
	}
	m := map[string]string{}
	r.pairs(func(key, value byte) {
		k := r.Text(key)
		m[k] = r.Text(value)
	})
	return m
}
