package kudurow

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestTypesThatKuduDoesNotHave(t *testing.T) {
	for _, c := range []schema.Column{{Type: schema.Uint8}, {Type: schema.Uint16}, {Type: schema.Uint32},
		{Type: schema.Uint64}, {Type: schema.Int128}, {Type: schema.Array, Element: schema.Int8}} {
		c.Name = "x"
		s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int8}, c}, 1))(t)
		err := Check(s)
		must.Fail(t, err, fault.ErrUnsupported)
		must.Contain(t, err.Error(), `column "x": `)
	}
	must.Do(t, Check(exampleSchema(t)))
	bad := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int8},
		{Name: "x", Type: schema.Bool, Default: []byte{2}}}, 1))(t)
	must.Fail(t, Check(bad), fault.ErrSchema)
}

// Requests have no ids, and projections no keys.
func TestSchemasOfRequests(t *testing.T) {
	s := exampleSchema(t)
	wire := must.Get(proto.MarshalOptions{Deterministic: true}.Marshal(WireSchema(s)))(t)
	must.Equal(t, wire, must.Hex(t, `0a0f 12016b 1805 2001 2800 4000 4800 5000
		0a0f 120176 1807 2000 2801 4000 4800 5000 0a0f 120173 1808 2000 2801 4000 4800 5000`))
	m := &kudupb.SchemaPB{Columns: append(Projection(s.Columns[:2]), Deleted("d"))}
	must.Equal(t, must.Get(proto.MarshalOptions{Deterministic: true}.Marshal(m))(t),
		must.Hex(t, "0a07 12016b 1805 2800 0a07 120176 1807 2801 0a0a 120164 1812 2800 320100"))
	must.Equal(t, s.Columns[0].Key, true)
}

func TestFeaturesOfMasters(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int8}, {Name: schema.AutoIncrementName,
		Type: schema.Int64, AutoIncrement: true}, {Name: "i", Type: schema.Int8, Immutable: true}}, 2))(t)
	by := &kudupb.PartitionSchemaPB{CustomHashSchemaRanges: make([]*kudupb.PartitionSchemaPB_RangeWithHashSchemaPB, 1)}
	must.Equal(t, Features(s, by, true), []uint32{1, 8, 10, 11})
	must.Equal(t, Features(exampleSchema(t), nil, false), nil)
}
