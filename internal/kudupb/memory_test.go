package kudupb

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/memtest"
)

// A message that passes takes memory in proportion to its bytes, whatever it is made of.
func TestMemoryOfMessagesIsBounded(t *testing.T) {
	const size = 1 << 20
	repeated := func(field protowire.Number, value string) []byte {
		one := protowire.AppendString(protowire.AppendTag(nil, field, protowire.BytesType), value)
		return bytes.Repeat(one, size/len(one))
	}
	schema := func(b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), b)
	}
	for _, c := range []struct {
		name    string
		b       []byte
		m       proto.Message
		refused bool
	}{
		{"rowsets", repeated(6, ""), new(TabletSuperBlockPB), true},
		{"rowsets with an ID", repeated(6, "\x08\x01\x10\x01"), new(TabletSuperBlockPB), true},
		{"columns", schema(repeated(1, "")), new(TabletSuperBlockPB), true},
		{"delta files", protowire.AppendBytes([]byte{6<<3 | 2}, repeated(5, "")), new(TabletSuperBlockPB), true},
		{"peers", repeated(3, ""), new(RaftConfigPB), true},
		{"UUIDs", repeated(2, ""), new(DirSetPB), false},
		{"tenants", repeated(6, ""), new(InstanceMetadataPB), true},
		{"buckets", schema(bytes.Repeat([]byte{1}, size)), new(TabletSuperBlockPB), true}, // malformed
		{"packed buckets", protowire.AppendBytes([]byte{1<<3 | 2}, make([]byte, size)), new(PartitionPB), false},
		{"single buckets", bytes.Repeat([]byte{1 << 3, 1}, size/2), new(PartitionPB), false},
		{"unknown fields", repeated(500, ""), new(TabletSuperBlockPB), false},
		{"table names", repeated(7, ""), new(TabletSuperBlockPB), false},
		{"schemas", repeated(8, ""), new(TabletSuperBlockPB), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			if n := memtest.Allocated(func() { err = CheckMemory(c.b, c.m) }); n > 256<<10 {
				t.Errorf("the check allocates %d bytes", n)
			}
			if (err != nil) != c.refused || err != nil && !errors.Is(err, fault.ErrCorrupt) {
				t.Fatalf("refused: %v", err)
			}
			if err != nil {
				return
			}
			n := memtest.Allocated(func() { proto.Unmarshal(c.b, c.m) }) // fields are missing: an error
			if most := int64(4 * memoryPerByte * len(c.b)); n > most {   // what grows is copied
				t.Errorf("allocates %d bytes, want at most %d", n, most)
			}
		})
	}
}

// The messages of servers pass, also those that take the most memory for their bytes.
func TestServersMessagesPassTheCheckOfMemory(t *testing.T) {
	rows := &RowSetDataPB{Id: proto.Uint64(1), LastDurableDmsId: proto.Int64(0), BloomBlock: block(1)}
	for i := range uint64(50) {
		rows.Columns = append(rows.Columns, &ColumnDataPB{Block: block(i), ColumnId: proto.Int32(int32(i))})
		rows.UndoDeltas = append(rows.UndoDeltas, &DeltaDataPB{Block: block(i)})
	}
	small := &RowSetDataPB{Id: proto.Uint64(1), LastDurableDmsId: proto.Int64(-1), BloomBlock: block(1),
		Columns: []*ColumnDataPB{{Block: block(1), ColumnId: proto.Int32(0)}}}
	column := &ColumnSchemaPB{Id: proto.Uint32(1), Name: proto.String("c"), Type: proto.Int32(1),
		IsKey: proto.Bool(false), IsNullable: proto.Bool(false),
		Encoding: proto.Int32(1), Compression: proto.Int32(1), CfileBlockSize: proto.Int32(0)}
	s := &TabletSuperBlockPB{TableId: []byte("t"), TabletId: []byte("t"), TableName: proto.String("t"),
		Schema:           new(SchemaPB),
		LastDurableMrsId: proto.Int64(1), SchemaVersion: proto.Uint32(1)}
	for range 500 {
		s.Rowsets, s.Schema.Columns = append(s.Rowsets, rows, small), append(s.Schema.Columns, column)
	}
	deltas := &RowSetDataPB{Id: proto.Uint64(1), LastDurableDmsId: proto.Int64(0)}
	for range 5000 {
		deltas.UndoDeltas = append(deltas.UndoDeltas, &DeltaDataPB{Block: block(1)})
	}
	for _, m := range []proto.Message{s, deltas, s.Schema} {
		if err := CheckMemory(EncodeRow(m), m); err != nil {
			t.Error(err)
		}
	}
}
