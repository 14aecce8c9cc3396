package carbondata

import (
	"fmt"
	"strings"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
)

// message is a Thrift message with all its fields: values are bool, int64, string (the bytes),
// message, []any, and map[string]string.
type message map[int]any

// readMessage reads a message with every field, known or not.
func readMessage(r *thrift.Reader) message {
	m := message{}
	r.Fields("message", func(id int, typ byte) { m[id] = readAny(r, typ, false) })
	return m
}

func readAny(r *thrift.Reader, typ byte, inList bool) any {
	switch typ {
	case thrift.True, thrift.False:
		return typ == thrift.True
	case thrift.I16, thrift.I32, thrift.I64:
		return r.Zigzag()
	case thrift.Binary:
		return r.Text(typ)
	case thrift.Struct:
		return readMessage(r)
	case thrift.Map:
		return r.Properties(typ)
	case thrift.List:
		list := []any{}
		r.List(typ, func(typ byte) { list = append(list, readAny(r, typ, true)) })
		return list
	}
	r.Fail("type %d", typ)
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
