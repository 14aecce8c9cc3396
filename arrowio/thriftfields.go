package arrowio

import "encoding/binary"

// thriftField is a field of a struct of Thrift's compact protocol.
type thriftField struct {
	id    int16
	kind  byte
	value []byte // its bytes; none of a bool, whose value is the kind
}

// thriftFields returns the fields of the struct at the beginning of a buffer and the bytes after
// it. It returns false if there is no well-formed one, or if a number is no number of a field.
func thriftFields(b []byte) (fields []thriftField, rest []byte, ok bool) {
	t, last := thriftCheck{b: b}, int64(0)
	for len(t.b) > 0 {
		head := t.b[0]
		t.b = t.b[1:]
		if head == 0 {
			return fields, t.b, true
		}
		if last += int64(head >> 4); head>>4 == 0 {
			n, ok := t.varint()
			if !ok {
				return nil, nil, false
			}
			last = unzigzag(n)
		}
		if last != int64(int16(last)) {
			return nil, nil, false
		}
		from := t.b
		if !t.value(head&15, 1) {
			return nil, nil, false
		}
		fields = append(fields, thriftField{int16(last), head & 15, from[:len(from)-len(t.b)]})
	}
	return nil, nil, false
}

// thriftElements returns the elements of a list of structs, each as its bytes.
func thriftElements(f *thriftField) (elements [][]byte, ok bool) {
	if f.kind != thriftList || len(f.value) == 0 || f.value[0]&15 != thriftStruct && f.value[0]>>4 != 0 {
		return nil, false
	}
	t := thriftCheck{b: f.value[1:]}
	n := uint64(f.value[0] >> 4)
	if n == 15 {
		if n, ok = t.varint(); !ok || n > uint64(len(t.b)) {
			return nil, false
		}
	}
	for range n {
		from := t.b
		if !t.fields(1) {
			return nil, false
		}
		elements = append(elements, from[:len(from)-len(t.b)])
	}
	return elements, true
}

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// integer returns the value of an integer of up to 32 bits, or of a byte.
func (f *thriftField) integer() (int32, bool) {
	if f.kind == thriftByte && len(f.value) == 1 {
		return int32(int8(f.value[0])), true
	}
	if f.kind <= thriftByte || f.kind > thriftI64 {
		return 0, false
	}
	n, size := binary.Uvarint(f.value)
	v := unzigzag(n)
	return int32(v), size == len(f.value) && v == int64(int32(v))
}

// text returns the bytes of a string.
func (f *thriftField) text() ([]byte, bool) {
	if f.kind != thriftString {
		return nil, false
	}
	_, size := binary.Uvarint(f.value)
	return f.value[max(size, 0):], size > 0
}

// thriftStructWriter appends fields of a struct. Their numbers ascend.
type thriftStructWriter struct {
	b    []byte
	last int16
}

func (w *thriftStructWriter) field(f thriftField) {
	if d := int(f.id) - int(w.last); d > 0 && d < 16 {
		w.b = append(w.b, byte(d)<<4|f.kind)
	} else {
		w.b = binary.AppendVarint(append(w.b, f.kind), int64(f.id))
	}
	w.b, w.last = append(w.b, f.value...), f.id
}

func (w *thriftStructWriter) i32(id int16, v int32) {
	w.field(thriftField{id, thriftI32, binary.AppendVarint(nil, int64(v))})
}

// end ends the struct and returns its bytes.
func (w *thriftStructWriter) end() []byte { return append(w.b, 0) }
