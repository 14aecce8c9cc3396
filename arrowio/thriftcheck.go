package arrowio

import "encoding/binary"

// checkThrift returns ErrCorrupt unless a buffer begins with a well-formed struct of Thrift's
// compact protocol: all lengths of lists and strings are inside the buffer. arrow-go allocates by
// the lengths of lists before it reads their elements.
//
//	struct   fields; 0
//	field    byte: distance to the number of the field before (0: the number follows as a zigzag
//	         varint), type; value
//	value    bool: part of the type, in a list a byte; byte; i16, i32, i64: varint; double: 8 bytes;
//	         string: varint length, bytes; list, set: byte with length (15: a varint follows) and type of
//	         elements, elements; map: varint length, types if it is not 0, keys and values; struct
//
// Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
func checkThrift(b []byte) error {
	t := thriftCheck{b: b}
	if !t.value(thriftStruct, 0) {
		return corruptf("malformed metadata at byte %d of %d", len(b)-len(t.b), len(b))
	}
	return nil
}

// Types of the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftString = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12

	thriftDepth = 64
)

type thriftCheck struct{ b []byte }

func (t *thriftCheck) skip(n uint64) bool {
	if n > uint64(len(t.b)) {
		return false
	}
	t.b = t.b[n:]
	return true
}

func (t *thriftCheck) varint() (uint64, bool) {
	v, n := binary.Uvarint(t.b)
	if n <= 0 {
		return 0, false
	}
	t.b = t.b[n:]
	return v, true
}

func (t *thriftCheck) value(kind byte, depth int) bool {
	switch {
	case depth > thriftDepth:
		return false
	case kind == thriftTrue || kind == thriftFalse:
		return true
	case kind == thriftByte:
		return t.skip(1)
	case kind > thriftByte && kind <= thriftI64:
		_, ok := t.varint()
		return ok
	case kind == thriftDouble:
		return t.skip(8)
	case kind == thriftString:
		n, ok := t.varint()
		return ok && t.skip(n)
	case kind == thriftList || kind == thriftSet:
		return t.list(depth)
	case kind == thriftMap:
		return t.pairs(depth)
	case kind == thriftStruct:
		return t.fields(depth)
	}
	return false
}

// element is value for an element of a list or a map: bools are bytes there.
func (t *thriftCheck) element(kind byte, depth int) bool {
	if kind == thriftTrue || kind == thriftFalse {
		return t.skip(1)
	}
	return t.value(kind, depth)
}

func (t *thriftCheck) list(depth int) bool {
	if len(t.b) == 0 {
		return false
	}
	head := t.b[0]
	t.b = t.b[1:]
	n, ok := uint64(head>>4), true
	if n == 15 {
		n, ok = t.varint()
	}
	if !ok || n > uint64(len(t.b)) { // an element has a byte at least
		return false
	}
	for range n {
		if !t.element(head&15, depth+1) {
			return false
		}
	}
	return true
}

func (t *thriftCheck) pairs(depth int) bool {
	n, ok := t.varint()
	if !ok || n == 0 {
		return ok
	}
	if len(t.b) == 0 || n > uint64(len(t.b)) {
		return false
	}
	kinds := t.b[0]
	t.b = t.b[1:]
	for range n {
		if !t.element(kinds>>4, depth+1) || !t.element(kinds&15, depth+1) {
			return false
		}
	}
	return true
}

func (t *thriftCheck) fields(depth int) bool {
	for len(t.b) > 0 {
		head := t.b[0]
		t.b = t.b[1:]
		if head == 0 {
			return true
		}
		if head>>4 == 0 {
			if _, ok := t.varint(); !ok {
				return false
			}
		}
		if !t.value(head&15, depth+1) {
			return false
		}
	}
	return false
}
