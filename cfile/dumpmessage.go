package cfile

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// message prints the fields of b, a message of m's type at offset off. It is well-formed, since it
// was parsed before.
func (d *dumper) message(off int64, b []byte, m proto.Message) {
	d.messageFields(off, b, m.ProtoReflect().Descriptor())
}

func (d *dumper) messageFields(off int64, b []byte, fields protoreflect.MessageDescriptor) {
	for len(b) > 0 {
		number, wire, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			d.Field(off, b, "no field")
			return
		}
		n := protowire.ConsumeFieldValue(number, wire, b[tag:])
		if n < 0 {
			d.Field(off, b, "field %d is cut short", number)
			return
		}
		d.messageField(off, b[:tag+n], tag, wire, number, fields.Fields().ByNumber(number))
		off, b = off+int64(tag+n), b[tag+n:]
	}
}

// messageField prints one field, b, which begins with tag bytes of its number; field is nil if the
// number is unknown.
func (d *dumper) messageField(off int64, b []byte, tag int, wire protowire.Type, number protowire.Number,
	field protoreflect.FieldDescriptor) {
	value := b[tag:]
	switch {
	case field == nil:
		d.Field(off, b, "field %d, not known", number)
	case wire == protowire.VarintType:
		v, _ := protowire.ConsumeVarint(value)
		if field.Kind() == protoreflect.BoolKind {
			d.Field(off, b, "%s: %v", field.Name(), v != 0)
			return
		}
		d.Field(off, b, "%s: %d", field.Name(), int64(v))
	case wire == protowire.BytesType:
		content, _ := protowire.ConsumeBytes(value)
		head := len(b) - len(content)
		switch field.Kind() {
		case protoreflect.MessageKind:
			d.Section("%s", field.Name())
			d.Field(off, b[:head], "tag, length: %d", len(content))
			d.messageFields(off+int64(head), content, field.Message())
			d.End()
		case protoreflect.StringKind:
			d.Field(off, b, "%s: %q", field.Name(), content)
		default:
			d.Field(off, b, "%s: %x", field.Name(), content)
		}
	default:
		d.Field(off, b, "%s", field.Name())
	}
}
