package carbondata

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
)

// A Thrift message that a test changes: anyStruct has the values by field ID. A value has the type
// of its bytes: bool, an integer of anyInt, []byte, anyList, anyMap, or anyStruct.
type (
	anyStruct map[int]any
	anyInt    struct {
		typ byte
		v   int64
	}
	anyList struct {
		typ      byte
		elements []any
	}
	anyMap map[string]string
)

func i32(v int) anyInt   { return anyInt{typeI32, int64(v)} }
func i64(v int64) anyInt { return anyInt{typeI64, v} }

func (r *thriftReader) any(typ byte) any {
	switch typ {
	case typeTrue, typeFalse:
		return r.bool(typ)
	case typeI16, typeI32, typeI64:
		return anyInt{typ, r.zigzag()}
	case typeBinary:
		return slices.Clone(r.bytes(typ))
	case typeStruct:
		s := anyStruct{}
		r.fields("struct", func(id int, typ byte) { s[id] = r.any(typ) })
		return s
	case typeMap:
		return anyMap(r.properties(typ))
	case typeList:
		list := anyList{typ: typeStruct}
		if r.at < len(r.b) {
			list.typ = r.b[r.at] & 15
		}
		r.list(typ, func(typ byte) { list.elements = append(list.elements, r.any(typ)) })
		return list
	}
	r.fail("type %d", typ)
	return nil
}

// readMessages reads all messages in b.
func readMessages(t testing.TB, b []byte) (list []anyStruct) {
	r := thriftReader{b: b}
	for r.err == nil && r.at < len(b) {
		list = append(list, r.any(typeStruct).(anyStruct))
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return list
}

func typeOf(v any) byte {
	switch v := v.(type) {
	case bool:
		if v {
			return typeTrue
		}
		return typeFalse
	case anyInt:
		return v.typ
	case []byte:
		return typeBinary
	case anyList:
		return typeList
	case anyMap:
		return typeMap
	}
	return typeStruct
}

// appendAny appends a value without its type.
func appendAny(b []byte, v any) []byte {
	switch v := v.(type) {
	case anyInt:
		return binary.AppendVarint(b, v.v)
	case []byte:
		return append(binary.AppendUvarint(b, uint64(len(v))), v...)
	case anyMap:
		b = binary.AppendUvarint(b, uint64(len(v)))
		if len(v) > 0 {
			b = append(b, typeBinary<<4|typeBinary)
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = appendAny(appendAny(b, []byte(k)), []byte(v[k]))
		}
	case anyList:
		b = append(b, longCount<<4|v.typ)
		b = binary.AppendUvarint(b, uint64(len(v.elements)))
		for _, e := range v.elements {
			if is, ok := e.(bool); ok {
				b = append(b, typeOf(is))
			} else {
				b = appendAny(b, e)
			}
		}
	case anyStruct:
		for _, id := range slices.Sorted(maps.Keys(v)) {
			b = append(b, typeOf(v[id])) // a field with its ID
			b = binary.AppendVarint(b, int64(id))
			b = appendAny(b, v[id])
		}
		b = append(b, 0)
	}
	return b
}

// editMessages reads all messages in b, changes them, and writes them.
func editMessages(t testing.TB, b []byte, edit func(list []anyStruct)) []byte {
	list := readMessages(t, b)
	edit(list)
	b = nil
	for _, m := range list {
		b = appendAny(b, m)
	}
	return b
}
