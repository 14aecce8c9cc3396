package kuduschema

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Kudu's message for an array has type NESTED and describes it in nested_type; the attributes
// belong to the elements.
func TestArrayColumnsMatchKuduMessage(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{ID: 1, Name: "k", Type: schema.Int8},
		{ID: 2, Name: "a", Type: schema.Array, Element: schema.Decimal32, Precision: 5, Scale: 2,
			Nullable: true, ReadDefault: []byte{1, 0, 0}}}, 1))(t)
	m := Message(s)
	got := must.Get(proto.MarshalOptions{Deterministic: true}.Marshal(m.Columns[1]))(t)
	must.Equal(t, got, must.Hex(t, "08 02 12 01 61 18 15 20 00 28 01 32 03 01 00 00 40 00 48 00 50 00 5a 04 08 05 10 "+
		"02 7a 04 0a 02 08 0f"))
	must.Equal(t, must.Get(FromMessage(m))(t), s)
	nested := func(n *kudupb.NestedDataTypePB, typ int32) error {
		m := Message(s)
		m.Columns[1].NestedType, m.Columns[1].Type = n, proto.Int32(typ)
		_, err := FromMessage(m)
		return err
	}
	array := func(typ *int32) *kudupb.NestedDataTypePB {
		elements := &kudupb.NestedDataTypePB_ArrayTypeDescriptor{Type: typ}
		return &kudupb.NestedDataTypePB{Descriptor_: &kudupb.NestedDataTypePB_Array{Array: elements}}
	}
	for name, test := range map[string]struct {
		err, want error
	}{
		"not described":            {nested(nil, 21), fault.ErrCorrupt},
		"described and not nested": {nested(array(proto.Int32(15)), 15), fault.ErrCorrupt},
		"nested in an unknown way": {nested(&kudupb.NestedDataTypePB{}, 21), fault.ErrUnsupported},
		"array of arrays":          {nested(array(proto.Int32(21)), 21), fault.ErrUnsupported},
		"array without type":       {nested(array(nil), 21), fault.ErrCorrupt},
		"array of an unknown type": {nested(array(proto.Int32(99)), 21), fault.ErrCorrupt},
		"of strings":               {nested(array(proto.Int32(8)), 21), nil},
		"array of int128":          {nested(array(proto.Int32(14)), 21), fault.ErrCorrupt},
	} {
		must.Fail(t, test.err, test.want, name)
	}
}
