package client

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/internal/kudupb"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/internal/kudurpc/rpctest"
	pb "github.com/oribi-db/oribi/internal/kudurpcpb"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// testColumns are two key columns and two others.
func testColumns() []schema.Column {
	return []schema.Column{{Name: "host", Type: schema.String, Key: true}, {Name: "day", Type: schema.Int32, Key: true},
		{Name: "v", Type: schema.Int64, Nullable: true},
		{Name: "price", Type: schema.Decimal64, Precision: 15, Scale: 2, Default: []byte{1, 0, 0, 0, 0, 0, 0, 0}}}
}

func testSchema(t testing.TB) *schema.Schema { return must.Get(schema.New(testColumns()))(t) }

// closes is the reply of a master that carries out a call and dies before it answers.
var closes = &pbReply{Reply: rpctest.Reply{Raw: []byte{}}, after: true}

// once returns a hook that replaces the reply of one call of a method.
func once(method string, reply *pbReply) func(int, string) *pbReply {
	done := false
	return func(_ int, m string) *pbReply {
		if m != method || done {
			return nil
		}
		done = true
		return reply
	}
}

// The request for a table has its columns without IDs, its partitioning, and the flags that a master
// must know. The returned table is what the master answers, and knows its partitioning.
func TestCreateTable(t *testing.T) {
	hash := []Hash{{Columns: []string{"host"}, Buckets: 4, Seed: 7}}
	for _, test := range []struct {
		name     string
		by       Partitioning
		features []uint32
		want     string // partition schema
		bounds   string // rows of split_rows_range_bounds
	}{
		{name: "one tablet", want: "range_schema{}"},
		{name: "hash", by: Partitioning{Hash: hash},
			want: `hash_schema{columns{name:"host"} num_buckets:4 seed:7} range_schema{}`},
		{name: "ranges", by: Partitioning{Range: []string{"day"},
			Ranges: []Range{{To: []any{100}}, {From: []any{100}, To: []any{200}}}}, features: []uint32{1},
			want: `range_schema{columns{name:"day"}}`, bounds: "06 00 00" + " 07 02 00 64000000" +
				" 06 02 00 64000000" + " 07 02 00 c8000000"},
		{name: "ranges with their own hashes", by: Partitioning{Hash: hash, Range: []string{"day"},
			Ranges: []Range{{To: []any{100}}, {From: []any{100},
				Hash: []Hash{{Columns: []string{"day", "host"}, Buckets: 2}}}}}, features: []uint32{8},
			want: `hash_schema{columns{name:"host"} num_buckets:4 seed:7} range_schema{columns{name:"day"}}
				custom_hash_schema_ranges{range_bounds:"\x12\x0a\x06\x00\x00\x07\x02\x00\x64\x00\x00\x00"
					hash_schema{columns{name:"host"} num_buckets:4 seed:7}}
				custom_hash_schema_ranges{range_bounds:"\x12\x0a\x06\x02\x00\x64\x00\x00\x00\x07\x00\x00"
					hash_schema{columns{name:"day"} columns{name:"host"} num_buckets:2 seed:0}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeCluster(t, 1)
			c, _ := f.connect(Options{}, 0)
			table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "metrics", Schema: testSchema(t),
				Partitioning: test.by, Replicas: 3, Config: map[string]string{"kudu.table.history_max_age_sec": "60"}}))(t)
			got := f.tables["id1"].create
			must.Equal(t, got.GetNumReplicas(), 3)
			must.Equal(t, got.Owner, nil)
			for i, column := range got.Schema.Columns {
				if column.Id != nil || column.GetIsKey() != (i < 2) {
					t.Errorf("column %v", column)
				}
			}
			must.Equal(t, got.Schema.Columns[3].ReadDefaultValue, []byte{1, 0, 0, 0, 0, 0, 0, 0})
			var want kudupb.PartitionSchemaPB
			must.Do(t, prototext.Unmarshal([]byte(test.want), &want))
			if !proto.Equal(got.PartitionSchema, &want) {
				t.Errorf("got %v\nwant %v", got.PartitionSchema, &want)
			}
			must.Equal(t, got.SplitRowsRangeBounds.GetRows(), must.Hex(t, test.bounds))
			must.Equal(t, f.called("IsCreateTableDone"), 3)
			must.Equal(t, table.ID, "id1")
			must.Equal(t, table.Name, "metrics")
			must.Equal(t, table.Owner, "alice")
			must.Equal(t, table.Config, map[string]string{"kudu.table.history_max_age_sec": "60"})
			must.Equal(t, table.Schema.Columns[3].Precision, 15)
			must.Equal(t, table.Schema.Columns[0].ID, 10)
			must.Equal(t, table.Partitioning.Hash, test.by.Hash)
			must.Equal(t, table.Partitioning.Range, test.by.Range)
			if len(want.CustomHashSchemaRanges) > 0 {
				must.Equal(t, table.Partitioning.Ranges, []Range{{To: []any{int32(100)}, Hash: hash},
					{From: []any{int32(100)}, Hash: []Hash{{Columns: []string{"day", "host"}, Buckets: 2}}}})
			}
			request, features, err := (&TableSpec{Schema: testSchema(t), Partitioning: test.by}).message()
			must.Do(t, err)
			must.Equal(t, features, test.features, request.GetName())
		})
	}
}

// What a master would accept although no client could use it, and what it would refuse with less to
// say, is refused before any call, with the column named.
func TestCreateTableRefuses(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	with := func(column schema.Column) *schema.Schema {
		return must.Get(schema.New(append(testColumns(), column)))(t)
	}
	hash := []Hash{{Columns: []string{"host"}, Buckets: 4}}
	for _, test := range []struct {
		schema *schema.Schema
		by     Partitioning
		kind   error
		text   string
	}{
		{schema: with(schema.Column{Name: "u", Type: schema.Uint32}), kind: ErrUnsupported, text: `column "u"`},
		{schema: with(schema.Column{Name: "i", Type: schema.Int128}), kind: ErrUnsupported, text: `column "i"`},
		{schema: with(schema.Column{Name: "a", Type: schema.Array, Element: schema.Int32}), kind: ErrUnsupported,
			text: `column "a"`},
		{by: Partitioning{Hash: []Hash{{Columns: []string{"v"}, Buckets: 2}}}, kind: ErrSchema, text: `column "v"`},
		{by: Partitioning{Hash: []Hash{{Columns: []string{"hosts"}, Buckets: 2}}}, kind: ErrNoColumn, text: `"host"`},
		{by: Partitioning{Hash: []Hash{{Columns: []string{"host"}, Buckets: 1}}}, kind: ErrSchema, text: "1 buckets"},
		{by: Partitioning{Ranges: []Range{{}}}, kind: ErrSchema, text: "Partitioning.Range"},
		{by: Partitioning{Range: []string{"day"}, Ranges: []Range{{From: []any{1, 2}}}}, kind: ErrSchema,
			text: "a bound of 2 values"},
		{by: Partitioning{Range: []string{"day"}, Ranges: []Range{{From: []any{"x"}}}}, kind: ErrSchema,
			text: `column "day"`},
		{by: Partitioning{Range: []string{"day"}, Ranges: []Range{{Hash: hash}}}, kind: ErrSchema,
			text: "range 0 has 1 hashes, the table 0"},
	} {
		if test.schema == nil {
			test.schema = testSchema(t)
		}
		err := must.Err(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: test.schema, Partitioning: test.by}))
		must.Fail(t, err, test.kind, test.text)
		must.Contain(t, err.Error(), test.text)
		must.Contain(t, err.Error(), `table "m"`)
	}
	must.Equal(t, f.called("CreateTable"), 0)
}

// A creation whose answer was lost has succeeded if the table has the columns; another table of the
// name is ErrExists.
func TestCreateTableAgain(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	f.set(func() { f.hook = once("CreateTable", closes) })
	spec := &TableSpec{Name: "m", Schema: testSchema(t)}
	must.Equal(t, must.Get(c.CreateTable(t.Context(), spec))(t).ID, "id1")
	must.Equal(t, f.called("CreateTable"), 2)
	must.Fail(t, must.Err(c.CreateTable(t.Context(), spec)), ErrExists)

	f.set(func() { f.hook = once("CreateTable", closes) })
	spec.Schema = must.Get(schema.New(testColumns()[:3]))(t)
	err := must.Err(c.CreateTable(t.Context(), spec))
	must.Fail(t, err, ErrExists)
	must.Contain(t, err.Error(), "a table with other columns")
}

// An attempt that has not reached a master creates no table: a table of another client is ErrExists.
func TestCreateTableThatWasNotSent(t *testing.T) {
	f := newFakeCluster(t, 2)
	c, _ := f.connect(Options{}, 0, 1)
	spec := &TableSpec{Name: "m", Schema: testSchema(t)}
	must.Do(t, must.Err(c.CreateTable(t.Context(), spec)))
	f.masters[0].Stop()
	f.set(func() { f.leader = 1 })
	// After this failure, the pool knows that the connection has ended.
	must.Refuse(t, c.pool.DoPrimary(t.Context(), f.masters[0].Address, pingCall()))
	must.Fail(t, must.Err(c.CreateTable(t.Context(), spec)), ErrExists)
}

// A table is deleted by its ID; that it is gone is no error if an answer was lost.
func TestDeleteTable(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	for range 2 {
		must.Do(t, must.Err(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)})))
		must.Do(t, c.DeleteTable(t.Context(), "m"))
		must.Fail(t, c.DeleteTable(t.Context(), "m"), ErrNoTable)
		must.Fail(t, must.Err(c.OpenTable(t.Context(), "m")), ErrNoTable)
		f.set(func() { f.hook = once("DeleteTable", closes) })
	}
	must.Do(t, must.Err(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)})))
	gone := rpctest.Reply{Message: &pb.DeleteTableResponsePB{Error: masterError(pb.MasterErrorCode_TABLE_NOT_FOUND, 1)}}
	f.set(func() { f.hook = once("DeleteTable", &pbReply{Reply: gone}) })
	must.Fail(t, c.DeleteTable(t.Context(), "m"), ErrNoTable)
}

// The steps of an alteration are one request, with the schema and the flags that they need.
func TestAlterTable(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t),
		Partitioning: Partitioning{Hash: []Hash{{Columns: []string{"host"}, Buckets: 2}}, Range: []string{"day"}}}))(t)
	must.Equal(t, must.Get(table.SchemaVersion(t.Context()))(t), 0)
	f.set(func() { f.tables["id1"].pending = 3 })
	altered := must.Get(c.AlterTable(t.Context(), "m",
		AddColumn(schema.Column{Name: "w", Type: schema.Int8, Default: []byte{5}, Immutable: true}),
		DropColumn("v"), RenameColumn("price", "cost"), SetDefault("price", nil), SetDefault("v", 3),
		SetStorage("v", schema.Plain, schema.LZ4HC, 4096),
		AddRange(Range{From: []any{5}, To: []any{6}, Hash: []Hash{{Columns: []string{"day"}, Buckets: 3}}}),
		DropRange(Range{To: []any{5}}), RenameTable("n"), SetOwner("bob"), SetComment("text"),
		SetConfig(map[string]string{"a": "b"})))(t)
	must.Equal(t, altered.Name, "n")
	must.Equal(t, altered.ID, table.ID)
	must.Equal(t, must.Get(table.SchemaVersion(t.Context()))(t), 1)
	must.Equal(t, f.called("IsAlterTableDone"), 6) // by SchemaVersion, before, three times after, and by SchemaVersion
	var want pb.AlterTableRequestPB
	must.Do(t, prototext.Unmarshal([]byte(`table{table_id:"id1"}
		alter_schema_steps{type:1 add_column{schema{name:"w" type:1 is_key:false is_nullable:false
			read_default_value:"\x05" write_default_value:"\x05" encoding:0 compression:0 cfile_block_size:0 immutable:true}}}
		alter_schema_steps{type:2 drop_column{name:"v"}}
		alter_schema_steps{type:3 rename_column{old_name:"price" new_name:"cost"}}
		alter_schema_steps{type:4 alter_column{delta{name:"price" remove_default:true}}}
		alter_schema_steps{type:4 alter_column{delta{name:"v" default_value:"\x03\0\0\0\0\0\0\0"}}}
		alter_schema_steps{type:4 alter_column{delta{name:"v" encoding:1 compression:3 block_size:4096}}}
		alter_schema_steps{type:5 add_range_partition{
			range_bounds{rows:"\x06\x02\x00\x05\0\0\0\x07\x02\x00\x06\0\0\0"}
			custom_hash_schema{hash_schema{columns{name:"day"} num_buckets:3 seed:0}}}}
		alter_schema_steps{type:6 drop_range_partition{
			range_bounds{rows:"\x06\x00\x00\x07\x02\x00\x05\0\0\0"}}}
		new_table_name:"n" new_table_owner:"bob" new_table_comment:"text" new_extra_configs{key:"a" value:"b"}`), &want))
	got := f.tables["id1"].last
	want.Schema = kudurow.WireSchema(table.Schema)
	if !proto.Equal(got, &want) {
		t.Errorf("got\n%v\nwant\n%v", got, &want)
	}
}

func TestAlterTableRefuses(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	must.Do(t, must.Err(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)})))
	for text, step := range map[string]Alteration{
		"must be nullable or have a default": AddColumn(schema.Column{Name: "w", Type: schema.Int8}),
		"no client of Kudu reads uint8":      AddColumn(schema.Column{Name: "w", Type: schema.Uint8, Nullable: true}),
		`column "v": default`:                SetDefault("v", "x"),
		`no such column`:                     SetDefault("w", 1),
		"not divided by ranges":              AddRange(Range{From: []any{1}}),
	} {
		must.Contain(t, must.Err(c.AlterTable(t.Context(), "m", step)).Error(), text)
	}
	must.Fail(t, must.Err(c.AlterTable(t.Context(), "n", SetOwner("x"))), ErrNoTable)
	must.Fail(t, must.Err(c.AlterTable(t.Context(), "m", DropColumn("v"),
		AddColumn(schema.Column{Name: "v", Type: schema.Int8, Nullable: true}))), ErrUnsupported)
	must.Equal(t, f.called("AlterTable"), 0)
}

// An alteration whose answer was lost, and whose repetition fails, has an unknown outcome only if the
// table was altered.
func TestAlterTableAgain(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	must.Do(t, must.Err(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)})))
	present := &pbReply{Reply: rpctest.Reply{Message: &pb.AlterTableResponsePB{
		Error: masterError(pb.MasterErrorCode_MASTER_INVALID_SCHEMA, 6)}}}
	for _, altered := range []bool{true, false} {
		calls := 0
		f.set(func() {
			f.hook = func(_ int, method string) *pbReply {
				switch {
				case method != "AlterTable":
					return nil
				case calls > 0:
					return present
				}
				calls++
				return &pbReply{Reply: closes.Reply, after: altered}
			}
		})
		err := must.Err(c.AlterTable(t.Context(), "m", DropColumn("v")))
		must.Contain(t, err.Error(), "MASTER_INVALID_SCHEMA (ALREADY_PRESENT): says the master")
		if altered {
			must.Fail(t, err, ErrUnknownOutcome)
			must.Contain(t, err.Error(), "the schema has version 1, before it was 0")
		} else {
			must.Equal(t, errors.Is(err, ErrUnknownOutcome), false)
		}
	}
}

func TestStatistics(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)}))(t)
	must.Equal(t, must.Get(table.Statistics(t.Context()))(t), Statistics{Rows: 7, DiskBytes: 1000})
	must.Do(t, c.DeleteTable(t.Context(), "m"))
	err := must.Err(table.Statistics(t.Context()))
	must.Fail(t, err, ErrNoTable)
	must.Contain(t, err.Error(), `table "m": GetTableStatistics at `)
}

// The token for a table is renewed once for all calls that were refused with the same one.
func TestAuthzTokensAreRenewed(t *testing.T) {
	f := newFakeCluster(t, 1)
	c, _ := f.connect(Options{}, 0)
	table := must.Get(c.CreateTable(t.Context(), &TableSpec{Name: "m", Schema: testSchema(t)}))(t)
	old := table.authz.current()
	must.Equal(t, string(old.TokenData), "1")
	for range 3 {
		must.Do(t, table.renewAuthz(t.Context(), old))
		must.Equal(t, string(table.authz.current().TokenData), "2")
	}
	again := must.Get(table.again(t.Context()))(t)
	must.Equal(t, string(again.authz.current().TokenData), "2")
}

// Bounds are read as they were given, also bounds of some columns only. Without a list of columns, the
// ranges are of the primary key.
func TestBoundsAreReadBack(t *testing.T) {
	s := testSchema(t)
	want := Partitioning{Hash: []Hash{{Columns: []string{"host"}, Buckets: 2}}, Range: []string{"host", "day"},
		Ranges: []Range{{To: []any{nil, int32(5)}, Hash: []Hash{{Columns: []string{"day"}, Buckets: 3, Seed: 1}}},
			{From: []any{nil, int32(5)}, To: []any{"m"}, Hash: []Hash{{Columns: []string{"host"}, Buckets: 4}}},
			{From: []any{"m"}, To: []any{"m", int32(-3)}, Hash: []Hash{{Columns: []string{"host"}, Buckets: 2}}}}}
	m, _, err := want.message(s)
	must.Do(t, err)
	must.Equal(t, must.Get(partitioningOf(m, s))(t), want)
	m.RangeSchema = nil
	must.Equal(t, must.Get(partitioningOf(m, s))(t), want)
	for _, columns := range []string{"v", "w"} {
		m.HashSchema[0].Columns[0].Identifier = &kudupb.PartitionSchemaPB_ColumnIdentifierPB_Name{Name: columns}
		must.Fail(t, must.Err(partitioningOf(m, s)), ErrCorrupt)
	}
}
