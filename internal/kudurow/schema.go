package kudurow

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/kuduschema"
	"github.com/oribi-db/oribi/schema"
)

// Check returns an error for a schema of a table that Kudu does not have, or that its clients
// cannot read. It names the column. Errors: ErrUnsupported; ErrSchema for a default that is no value
// of its column.
func Check(s *schema.Schema) error {
	for i := range s.Columns {
		c := &s.Columns[i]
		switch c.Type {
		case schema.Uint8, schema.Uint16, schema.Uint32, schema.Uint64:
			return fault.Unsupportedf("column %q: no client of Kudu reads %s: use a wider signed integer", c.Name, c.TypeName())
		case schema.Int128:
			return fault.Unsupportedf("column %q: no client of Kudu reads int128: use decimal(38,0)", c.Name)
		case schema.Array:
			return fault.Unsupportedf("column %q: Kudu 1.18 has no arrays", c.Name)
		}
		for _, d := range [][]byte{c.Default, c.ReadDefault} {
			if d == nil {
				continue
			}
			if err := checkCell(c, d); err != nil {
				return fmt.Errorf("column %q: default: %w: %w", c.Name, err, fault.ErrSchema)
			}
		}
	}
	return nil
}

// WireSchema returns s as requests have it: without ids.
func WireSchema(s *schema.Schema) *kudupb.SchemaPB {
	m := kuduschema.Message(s)
	for _, c := range m.Columns {
		c.Id = nil
	}
	return m
}

// Projection returns columns as a scan requests them: without ids, and none of them as a key, since
// key columns would have to come first, and in order.
func Projection(columns []schema.Column) []*kudupb.ColumnSchemaPB {
	s := schema.Schema{Columns: columns}
	m := WireSchema(&s).Columns
	for i, c := range m {
		c.IsKey = nil
		c.WriteDefaultValue, c.CfileBlockSize, c.Comment, c.Encoding, c.Compression = nil, nil, nil, nil, nil
		if columns[i].AutoIncrement {
			c.IsAutoIncrementing = nil
		}
	}
	return m
}

// Deleted returns the column of a scan of changes that says whether the row was deleted. Its cells are
// Bool.
func Deleted(name string) *kudupb.ColumnSchemaPB {
	return &kudupb.ColumnSchemaPB{Name: &name, Type: proto.Int32(int32(kudupb.DataType_IS_DELETED)),
		IsNullable: proto.Bool(false), ReadDefaultValue: []byte{0}}
}

// Features returns the numbers of the features that a master must have for a table with the schema s
// and a partition schema.
func Features(s *schema.Schema, by *kudupb.PartitionSchemaPB, bounds bool) (flags []uint32) {
	need := func(f kudurpcpb.MasterFeature) { flags = append(flags, uint32(f)) }
	if bounds {
		need(kudurpcpb.MasterFeature_RANGE_PARTITION_BOUNDS)
	}
	if len(by.GetCustomHashSchemaRanges()) > 0 {
		need(kudurpcpb.MasterFeature_RANGE_SPECIFIC_HASH_SCHEMA)
	}
	if slices.ContainsFunc(s.Columns, func(c schema.Column) bool { return c.Immutable }) {
		need(kudurpcpb.MasterFeature_IMMUTABLE_COLUMN_ATTRIBUTE)
	}
	if s.AutoIncrement() >= 0 {
		need(kudurpcpb.MasterFeature_AUTO_INCREMENTING_COLUMN)
	}
	return flags
}

func schemaError(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, fault.ErrSchema)...)
}
