// Package kuduschema converts schemas to Kudu's messages and back, as superblocks, logs, and calls to
// servers have them. A schema without ids, as clients send it, is [Message] of it with the ids
// removed: package kudurow does that.
//
// Source: tablet spec §2.2.
package kuduschema

import (
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/schema"
)

// Message converts a schema to Kudu's message.
func Message(s *schema.Schema) *kudupb.SchemaPB {
	m := &kudupb.SchemaPB{Columns: make([]*kudupb.ColumnSchemaPB, len(s.Columns))}
	for i := range s.Columns {
		m.Columns[i] = columnMessage(&s.Columns[i], i < s.Keys)
	}
	return m
}

func columnMessage(c *schema.Column, key bool) *kudupb.ColumnSchemaPB {
	m := &kudupb.ColumnSchemaPB{
		Id:             proto.Uint32(uint32(c.ID)),
		Name:           proto.String(c.Name),
		Type:           proto.Int32(int32(c.Type)),
		IsKey:          proto.Bool(key),
		IsNullable:     proto.Bool(c.Nullable),
		Encoding:       proto.Int32(int32(c.Encoding)),
		Compression:    proto.Int32(int32(c.Compression.Codec())),
		CfileBlockSize: proto.Int32(c.BlockBytes),
	}
	m.ReadDefaultValue, m.WriteDefaultValue = c.ReadDefault, c.Default
	if c.Type == schema.Array {
		m.NestedType = &kudupb.NestedDataTypePB{Descriptor_: &kudupb.NestedDataTypePB_Array{
			Array: &kudupb.NestedDataTypePB_ArrayTypeDescriptor{Type: proto.Int32(int32(c.Element))}}}
	}
	switch t := c.Stored(); {
	case t.Decimal():
		m.TypeAttributes = &kudupb.ColumnTypeAttributesPB{Precision: proto.Int32(int32(c.Precision)),
			Scale: proto.Int32(int32(c.Scale))}
	case t == schema.Varchar:
		m.TypeAttributes = &kudupb.ColumnTypeAttributesPB{Length: proto.Int32(int32(c.Length))}
	}
	if c.Immutable {
		m.Immutable = proto.Bool(true)
	}
	if c.AutoIncrement {
		m.IsAutoIncrementing = proto.Bool(true)
	}
	if c.Comment != "" {
		m.Comment = proto.String(c.Comment)
	}
	return m
}

// FromMessage converts Kudu's message to a schema. Every column has its ID, key columns are
// first, and the rules of schema.New apply. Errors: ErrCorrupt; ErrUnsupported for nested columns
// that are not arrays.
func FromMessage(m *kudupb.SchemaPB) (*schema.Schema, error) {
	if m == nil {
		return nil, fault.Corruptf("schema: absent")
	}
	if n := len(m.Columns); n > schema.MaxColumns {
		return nil, fault.Corruptf("schema: %d columns, at most %d", n, schema.MaxColumns)
	}
	columns := make([]schema.Column, len(m.Columns))
	keys := 0
	for i, c := range m.Columns {
		if c.GetIsKey() {
			if keys != i {
				return nil, fault.Corruptf("schema: key column %q after a column that is not in the key", c.GetName())
			}
			keys++
		}
		var err error
		if columns[i], err = columnFromMessage(c); err != nil {
			return nil, err
		}
	}
	s, err := schema.New(columns, keys)
	if err != nil {
		return nil, fault.Corruptf("schema: %v", err)
	}
	return s, nil
}

func columnFromMessage(m *kudupb.ColumnSchemaPB) (schema.Column, error) {
	nested := schema.Type(m.GetType()) == schema.Array
	element := schema.Type(m.GetNestedType().GetArray().GetType())
	switch {
	case m.Id == nil || int32(m.GetId()) < 0:
		return schema.Column{}, fault.Corruptf("schema: column %q: missing or negative id", m.GetName())
	case nested != (m.NestedType != nil):
		return schema.Column{}, fault.Corruptf("schema: column %q: type %d, described as nested: %t",
			m.GetName(), m.GetType(), m.NestedType != nil)
	case nested && (m.GetNestedType().GetArray() == nil || element == schema.Array):
		return schema.Column{},
			fault.Unsupportedf("schema: column %q is nested but not an array of scalars", m.GetName())
	case nested && m.GetNestedType().GetArray().Type == nil:
		return schema.Column{}, fault.Corruptf("schema: column %q: array without an element type", m.GetName())
	}
	a := m.GetTypeAttributes()
	return schema.Column{
		ID:            schema.ColumnID(m.GetId()),
		Name:          m.GetName(),
		Type:          schema.Type(m.GetType()),
		Nullable:      m.GetIsNullable(),
		Immutable:     m.GetImmutable(),
		AutoIncrement: m.GetIsAutoIncrementing(),
		Default:       m.WriteDefaultValue,
		ReadDefault:   m.ReadDefaultValue,
		Encoding:      schema.Encoding(m.GetEncoding()),
		Compression:   schema.Compression(m.GetCompression()),
		BlockBytes:    m.GetCfileBlockSize(),
		Precision:     int(a.GetPrecision()),
		Scale:         int(a.GetScale()),
		Length:        int(a.GetLength()),
		Element:       element,
		Comment:       m.GetComment(),
	}, nil
}
