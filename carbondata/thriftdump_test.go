package carbondata

import (
	"fmt"
	"strings"
)

// message is a Thrift message with all its fields: values are bool, int64, string (the bytes),
// message, []any, and map[string]string.
type message map[int]any

// readMessage reads a message with every field, known or not.
func readMessage(r *thriftReader) message {
	m := message{}
	r.fields("message", func(id int, typ byte) { m[id] = readAny(r, typ, false) })
	return m
}

func readAny(r *thriftReader, typ byte, inList bool) any {
	switch typ {
	case typeTrue, typeFalse:
		return typ == typeTrue
	case typeI16, typeI32, typeI64:
		return r.zigzag()
	case typeBinary:
		return r.text(typ)
	case typeStruct:
		return readMessage(r)
	case typeMap:
		return r.properties(typ)
	case typeList:
		list := []any{}
		r.list(typ, func(typ byte) { list = append(list, readAny(r, typ, true)) })
		return list
	}
	r.fail("type %d", typ)
	return nil
}

func (m message) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for id := range 64 {
		if v, ok := m[id]; ok {
			fmt.Fprintf(&b, " %d:%s", id, dumpAny(v))
		}
	}
	b.WriteString(" }")
	return b.String()
}

func dumpAny(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, dumpAny(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}
