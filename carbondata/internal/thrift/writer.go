package thrift

import (
	"encoding/binary"
	"maps"
	"slices"
)

// Writer appends messages to Out, see the table above True. Fields are written in the order of their
// IDs.
type Writer struct {
	Out   []byte
	last  int   // ID of the last field of the open message
	outer []int // the same of the messages around it
}

// field begins a field of the open message.
func (w *Writer) field(id int, typ byte) {
	if delta := id - w.last; delta > 0 && delta <= 15 {
		w.Out = append(w.Out, byte(delta)<<4|typ)
	} else {
		w.Out = append(w.Out, typ)
		w.Zigzag(int64(id))
	}
	w.last = id
}

func (w *Writer) varint(v uint64) { w.Out = binary.AppendUvarint(w.Out, v) }

// Zigzag appends an integer without its field, as in lists.
func (w *Writer) Zigzag(v int64) { w.varint(uint64(v)<<1 ^ uint64(v>>63)) }

// Bool appends a bool.
func (w *Writer) Bool(id int, v bool) { w.field(id, boolType(v)) }

func boolType(v bool) byte {
	if v {
		return True
	}
	return False
}

// I32 appends an i32.
func (w *Writer) I32(id, v int) {
	w.field(id, I32)
	w.Zigzag(int64(v))
}

// I64 appends an i64.
func (w *Writer) I64(id int, v int64) {
	w.field(id, I64)
	w.Zigzag(v)
}

// Bytes appends a byte string.
func (w *Writer) Bytes(id int, v []byte) {
	w.field(id, Binary)
	w.binary(v)
}

// Text appends a text, which is a byte string.
func (w *Writer) Text(id int, v string) { w.Bytes(id, []byte(v)) }

// binary appends a value without its field, as in lists.
func (w *Writer) binary(v []byte) {
	w.varint(uint64(len(v)))
	w.Out = append(w.Out, v...)
}

// List begins a list of n elements of one type, which the caller appends.
func (w *Writer) List(id int, typ byte, n int) {
	w.field(id, List)
	if n < LongCount {
		w.Out = append(w.Out, byte(n)<<4|typ)
		return
	}
	w.Out = append(w.Out, LongCount<<4|typ)
	w.varint(uint64(n))
}

// I32s appends a list of i32.
func (w *Writer) I32s(id int, list []int) {
	w.List(id, I32, len(list))
	for _, v := range list {
		w.Zigzag(int64(v))
	}
}

// I64s appends a list of i64.
func (w *Writer) I64s(id int, list []int64) {
	w.List(id, I64, len(list))
	for _, v := range list {
		w.Zigzag(v)
	}
}

// Bools appends a list of bool.
func (w *Writer) Bools(id int, list []bool) {
	w.List(id, True, len(list))
	for _, v := range list {
		w.Out = append(w.Out, boolType(v))
	}
}

// Binaries appends a list of byte strings.
func (w *Writer) Binaries(id int, list [][]byte) {
	w.List(id, Binary, len(list))
	for _, v := range list {
		w.binary(v)
	}
}

// Properties writes a map of texts, in the order of the keys.
func (w *Writer) Properties(id int, m map[string]string) {
	w.field(id, Map)
	w.varint(uint64(len(m)))
	if len(m) == 0 {
		return
	}
	w.Out = append(w.Out, Binary<<4|Binary)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.binary([]byte(k))
		w.binary([]byte(m[k]))
	}
}

// Begin opens a message that is a field, Open a message that is an element of a list. End closes
// either.
func (w *Writer) Begin(id int) {
	w.field(id, Struct)
	w.Open()
}

func (w *Writer) Open() {
	w.outer = append(w.outer, w.last)
	w.last = 0
}

func (w *Writer) End() {
	w.Stop()
	w.last = w.outer[len(w.outer)-1]
	w.outer = w.outer[:len(w.outer)-1]
}

// Stop ends a message at the top level.
func (w *Writer) Stop() {
	w.Out = append(w.Out, 0)
	w.last = 0
}
