package meta

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

func TestKeysMatchTheWorkedExample(t *testing.T) {
	cases := []struct {
		key   []byte
		want  string
		kind  RowKind
		table uint32
		id    uint64
	}{
		{StoreKey(), "01", StoreRow, 0, 0},
		{TableKey(258), "02 00 00 01 02", TableRow, 258, 0},
		{RowSetKey(2, 17), "03 00 00 00 02 00 00 00 00 00 00 00 11", RowSetRow, 2, 17},
	}
	for _, c := range cases {
		must.Equal(t, c.key, must.Hex(t, c.want))
		kind, table, id, err := ParseKey(c.key)
		if err != nil || kind != c.kind || table != c.table || id != c.id {
			t.Errorf("%x: %d %d %d %v", c.key, kind, table, id, err)
		}
		for _, bad := range [][]byte{c.key[:len(c.key)-1], append(c.key[:len(c.key):len(c.key)], 0)} {
			if _, _, _, err := ParseKey(bad); !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("%x: %v", bad, err)
			}
		}
	}
	if _, _, _, err := ParseKey([]byte{4}); !errors.Is(err, fault.ErrCorrupt) {
		t.Errorf("unknown kind: %v", err)
	}
	if !bytes.HasPrefix(RowSetKey(2, 17), RowSetPrefix(2)) || !bytes.HasPrefix(TableKey(2), TablePrefix()) {
		t.Error("prefixes do not begin their keys")
	}
}

func exampleSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{
		{ID: 10, Name: "region", Type: schema.String, Encoding: schema.Prefix},
		{ID: 4, Name: "at", Type: schema.Timestamp},
		{ID: 5, Name: schema.AutoIncrementName, Type: schema.Int64, AutoIncrement: true},
		{ID: 11, Name: "price", Type: schema.Decimal64, Precision: 12, Scale: 2, Nullable: true,
			Immutable: true, Comment: "net"},
		{ID: 12, Name: "code", Type: schema.Varchar, Length: 8, Default: []byte{}, ReadDefault: []byte("x"),
			Compression: schema.Zlib},
		{ID: 13, Name: "n", Type: schema.Int16, ReadDefault: []byte{5, 0}, BlockBytes: 4096},
	}, 3))(t)
	return s
}

func exampleTable(t testing.TB) *Table {
	return &Table{Number: 3, Name: "sales", TableID: [16]byte{0xab, 1}, TabletID: [16]byte{15: 0xcd},
		Schema:        exampleSchema(t),
		SchemaVersion: 2, NextColumnID: 14, HistorySec: KeepForever, HistoryFloor: 77, FlushedLSN: 8,
		NextRowSetID: 9, Comment: "é", AutoIncrement: 1 << 40}
}

func TestTableRowsRoundTrip(t *testing.T) {
	want := exampleTable(t)
	got := must.Get(DecodeTable(want.Encode()))(t)
	must.Equal(t, got, want)
	if d := got.Schema.Columns[4].Default; d == nil {
		t.Error("the empty string as a default became none")
	}
}

func TestStoreRowsRoundTrip(t *testing.T) {
	want := Store{DefaultHistorySec: 604800, ClockHigh: mvcc.Timestamp(1) << 60, NextTable: 4, LogEnd: 1 << 40}
	got := must.Get(DecodeStore(want.Encode()))(t)
	must.Equal(t, *got, want, got)
	bad := Store{DefaultHistorySec: -2}
	must.Fail(t, must.Err(DecodeStore(bad.Encode())), fault.ErrCorrupt, "retention −2")
}

func TestInvalidTableRowsAreRefused(t *testing.T) {
	message := func() *kudupb.TableRow {
		var m kudupb.TableRow
		must.Do(t, proto.Unmarshal(exampleTable(t).Encode(), &m))
		return &m
	}
	cases := []struct {
		name string
		bend func(m *kudupb.TableRow)
		want error
	}{
		{"no schema", func(m *kudupb.TableRow) { m.Schema = nil }, fault.ErrCorrupt},
		{"no name", func(m *kudupb.TableRow) { m.Name = "" }, fault.ErrCorrupt},
		{"short table id", func(m *kudupb.TableRow) { m.TableId = m.TableId[1:] }, fault.ErrCorrupt},
		{"tablet id of other digits", func(m *kudupb.TableRow) { m.TabletId[0] = 'g' }, fault.ErrCorrupt},
		{"retention below -1", func(m *kudupb.TableRow) { m.HistoryMaxAgeSec = -2 }, fault.ErrCorrupt},
		{"next column id given out", func(m *kudupb.TableRow) { m.NextColumnId = 13 }, fault.ErrCorrupt},
		{"key after a value", func(m *kudupb.TableRow) {
			m.Schema.Columns[2].IsKey = proto.Bool(false)
			m.Schema.Columns[3].IsKey = proto.Bool(true)
		}, fault.ErrCorrupt},
		{"column without id", func(m *kudupb.TableRow) { m.Schema.Columns[1].Id = nil }, fault.ErrCorrupt},
		{"id beyond 31 bits", func(m *kudupb.TableRow) {
			m.Schema.Columns[1].Id = proto.Uint32(1 << 31)
		}, fault.ErrCorrupt},
		{"unknown type", func(m *kudupb.TableRow) { m.Schema.Columns[1].Type = proto.Int32(21) }, fault.ErrCorrupt},
		{"negative type", func(m *kudupb.TableRow) { m.Schema.Columns[1].Type = proto.Int32(-1) }, fault.ErrCorrupt},
		{"read default of a wrong width", func(m *kudupb.TableRow) {
			m.Schema.Columns[5].ReadDefaultValue = []byte{1}
		}, fault.ErrCorrupt},
		{"default of a wrong width", func(m *kudupb.TableRow) {
			m.Schema.Columns[5].WriteDefaultValue = []byte{1, 2, 3}
		}, fault.ErrCorrupt},
		{"auto-incremented below 0", func(m *kudupb.TableRow) { m.AutoIncrement = -1 }, fault.ErrCorrupt},
		{"auto-incrementing timestamp", func(m *kudupb.TableRow) {
			m.Schema.Columns[1].IsAutoIncrementing = proto.Bool(true)
		}, fault.ErrCorrupt},
	}
	for _, c := range cases {
		m := message()
		c.bend(m)
		b := must.Get(proto.Marshal(m))(t)
		must.Fail(t, must.Err(DecodeTable(b)), c.want, c.name)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	row := exampleTable(t).Encode()
	with := append(append([]byte{}, row...), 0xf8, 0x07, 1) // field 127, varint 1
	table := must.Get(DecodeTable(with))(t)
	must.Equal(t, table.Encode(), row, "the unknown field came back")
}

func TestDamagedRowsNeverPanic(t *testing.T) {
	r := rowset.Metadata{Columns: []rowset.ColumnBlock{{ID: 1, Block: 1}}, Undo: []block.ID{3}, Bloom: 4,
		Rows: 1, LiveRows: 1}
	rows := map[string][]byte{"table": exampleTable(t).Encode(), "rowset": r.Encode(),
		"store": (&Store{NextTable: 1 << 31}).Encode()}
	for name, row := range rows {
		for i := range row {
			for bit := range 8 {
				flipped := append([]byte{}, row...)
				flipped[i] ^= 1 << bit
				decodeAll(t, fmt.Sprintf("%s with bit %d of byte %d flipped", name, bit, i), flipped)
			}
			decodeAll(t, fmt.Sprintf("%s cut at %d", name, i), row[:i])
		}
	}
}

// decodeAll decodes value as every kind of row. Each must decode, and then encode again, or return
// one of two errors.
func decodeAll(t *testing.T, what string, value []byte) {
	check := func(err error, encode func() []byte) {
		if err == nil {
			encode()
		} else if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
			t.Errorf("%s: %v", what, err)
		}
	}
	table, err := DecodeTable(value)
	check(err, table.Encode)
	set, err := rowset.DecodeMetadata(value)
	check(err, set.Encode)
	store, err := DecodeStore(value)
	check(err, store.Encode)
}

func FuzzDecode(f *testing.F) {
	f.Add(exampleTable(f).Encode())
	fuzztest.Run(f, func(t *testing.T, value []byte) { decodeAll(t, "fuzz", value) })
}
