package carbondata

import (
	"encoding/binary"
	"maps"
	"slices"
)

// thriftWriter appends messages to b, see the table above typeTrue. Fields are written in the order
// of their IDs.
type thriftWriter struct {
	b     []byte
	last  int   // ID of the last field of the open message
	outer []int // the same of the messages around it
}

// field begins a field of the open message.
func (w *thriftWriter) field(id int, typ byte) {
	if delta := id - w.last; delta > 0 && delta <= 15 {
		w.b = append(w.b, byte(delta)<<4|typ)
	} else {
		w.b = append(w.b, typ)
		w.zigzag(int64(id))
	}
	w.last = id
}

func (w *thriftWriter) varint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }

func (w *thriftWriter) zigzag(v int64) { w.varint(uint64(v)<<1 ^ uint64(v>>63)) }

func (w *thriftWriter) bool(id int, v bool) { w.field(id, boolType(v)) }

func boolType(v bool) byte {
	if v {
		return typeTrue
	}
	return typeFalse
}

func (w *thriftWriter) i32(id, v int) {
	w.field(id, typeI32)
	w.zigzag(int64(v))
}

func (w *thriftWriter) i64(id int, v int64) {
	w.field(id, typeI64)
	w.zigzag(v)
}

func (w *thriftWriter) bytes(id int, v []byte) {
	w.field(id, typeBinary)
	w.binary(v)
}

func (w *thriftWriter) text(id int, v string) { w.bytes(id, []byte(v)) }

// binary appends a value without its field, as in lists.
func (w *thriftWriter) binary(v []byte) {
	w.varint(uint64(len(v)))
	w.b = append(w.b, v...)
}

// list begins a list of n elements of one type, which the caller appends.
func (w *thriftWriter) list(id int, typ byte, n int) {
	w.field(id, typeList)
	if n < longCount {
		w.b = append(w.b, byte(n)<<4|typ)
		return
	}
	w.b = append(w.b, longCount<<4|typ)
	w.varint(uint64(n))
}

func (w *thriftWriter) i32s(id int, list []int) {
	w.list(id, typeI32, len(list))
	for _, v := range list {
		w.zigzag(int64(v))
	}
}

func (w *thriftWriter) i64s(id int, list []int64) {
	w.list(id, typeI64, len(list))
	for _, v := range list {
		w.zigzag(v)
	}
}

func (w *thriftWriter) bools(id int, list []bool) {
	w.list(id, typeTrue, len(list))
	for _, v := range list {
		w.b = append(w.b, boolType(v))
	}
}

func (w *thriftWriter) binaries(id int, list [][]byte) {
	w.list(id, typeBinary, len(list))
	for _, v := range list {
		w.binary(v)
	}
}

// properties writes a map of texts, in the order of the keys.
func (w *thriftWriter) properties(id int, m map[string]string) {
	w.field(id, typeMap)
	w.varint(uint64(len(m)))
	if len(m) == 0 {
		return
	}
	w.b = append(w.b, typeBinary<<4|typeBinary)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.binary([]byte(k))
		w.binary([]byte(m[k]))
	}
}

// begin opens a message that is a field, open a message that is an element of a list. end closes
// either.
func (w *thriftWriter) begin(id int) {
	w.field(id, typeStruct)
	w.open()
}

func (w *thriftWriter) open() {
	w.outer = append(w.outer, w.last)
	w.last = 0
}

func (w *thriftWriter) end() {
	w.stop()
	w.last = w.outer[len(w.outer)-1]
	w.outer = w.outer[:len(w.outer)-1]
}

// stop ends a message at the top level.
func (w *thriftWriter) stop() {
	w.b = append(w.b, 0)
	w.last = 0
}
