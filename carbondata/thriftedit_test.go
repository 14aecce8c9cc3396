package carbondata

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
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

func i32(v int) anyInt   { return anyInt{thrift.I32, int64(v)} }
func i64(v int64) anyInt { return anyInt{thrift.I64, v} }

func anyValue(r *thrift.Reader, typ byte) any {
	switch typ {
	case thrift.True, thrift.False:
		return r.Bool(typ)
	case thrift.I16, thrift.I32, thrift.I64:
		return anyInt{typ, r.Zigzag()}
	case thrift.Binary:
		return slices.Clone(r.Bytes(typ))
	case thrift.Struct:
		s := anyStruct{}
		r.Fields("struct", func(id int, typ byte) { s[id] = anyValue(r, typ) })
		return s
	case thrift.Map:
		return anyMap(r.Properties(typ))
	case thrift.List:
		list := anyList{typ: thrift.Struct}
		if r.At < len(r.In) {
			list.typ = r.In[r.At] & 15
		}
		r.List(typ, func(typ byte) { list.elements = append(list.elements, anyValue(r, typ)) })
		return list
	}
	r.Fail("type %d", typ)
	return nil
}

// readMessages reads all messages in b.
func readMessages(t testing.TB, b []byte) (list []anyStruct) {
	r := thrift.Reader{In: b}
	for r.Err == nil && r.At < len(b) {
		list = append(list, anyValue(&r, thrift.Struct).(anyStruct))
	}
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	return list
}

func typeOf(v any) byte {
	switch v := v.(type) {
	case bool:
		if v {
			return thrift.True
		}
		return thrift.False
	case anyInt:
		return v.typ
	case []byte:
		return thrift.Binary
	case anyList:
		return thrift.List
	case anyMap:
		return thrift.Map
	}
	return thrift.Struct
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
			b = append(b, thrift.Binary<<4|thrift.Binary)
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b = appendAny(appendAny(b, []byte(k)), []byte(v[k]))
		}
	case anyList:
		b = append(b, thrift.LongCount<<4|v.typ)
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
