package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/arrowio"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
)

// arrowStream returns an Arrow stream of rows as JSON.
func arrowStream(t *testing.T, s *arrow.Schema, rows string) string {
	t.Helper()
	rec, _ := must.Get2(array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(rows)))(t)
	r := must.Get(array.NewRecordReader(s, []arrow.RecordBatch{rec}))(t)
	var out bytes.Buffer
	must.Get(arrowio.WriteStream(&out, r, arrowio.ArrowOptions{}))(t)
	return out.String()
}

// Columns that a table cannot have are left out, and times rounded, only if the command line says
// so; there is a note where it is not obvious what was loaded.
func TestLoadOfWhatATableCannotHave(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	file := filepath.Join(dir, "in.arrows")
	put(t, file, arrowStream(t, arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "t", Type: arrow.FixedWidthTypes.Timestamp_ns},
		{Name: "d", Type: arrow.FixedWidthTypes.Duration_ms},
		{Name: "i", Type: arrow.FixedWidthTypes.MonthInterval},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8})},
	}, nil), `[{"k":1,"t":"1969-12-31T23:59:59.999999999Z","d":5,"i":{"months":1},"s":{"x":1}}]`))
	load := func(code int, args ...string) string {
		t.Helper()
		_, errs, got := command(nil,
			append([]string{"table", "load", store, "t", file, "--create", "--key", "k"}, args...)...)
		must.Equal(t, got, code, args, errs)
		return errs
	}
	if errs := load(exit.Failed); !strings.Contains(errs,
		`in.arrows: column "i": a column cannot have the type month_interval`) ||
		!strings.Contains(errs, "--skip-unsupported, or --columns") {
		t.Error(errs)
	}
	must.Contain(t, load(exit.Failed, "--columns", "k,s"), `column "s": `)
	errs := load(exit.Failed, "--skip-unsupported")
	if !strings.Contains(errs, `row 1: column "t": -1 nanoseconds since 1970 are no whole number of microseconds`) ||
		!strings.Contains(errs, "--round") || strings.Contains(errs, "corrupt") {
		t.Error(errs)
	}
	errs = load(exit.Done, "--skip-unsupported", "--round")
	for _, note := range []string{`note: column "i" is left out: a column cannot have the type month_interval`,
		`note: column "s" is left out: `, `note: column "d": a duration is read as its milliseconds`} {
		must.Equal(t, strings.Count(errs, note), 1, note, errs)
	}
	must.Equal(t, succeed(t, "table", "scan", store, "t"), `{"k":1,"t":-1,"d":5}`+"\n")
	put(t, filepath.Join(dir, "x.csv"), "k\n1\n")
	must.Contain(t, exits(t, exit.Misused, "table", "load", store, "t", filepath.Join(dir, "x.csv"), "--round"),
		"--round is for Parquet and Arrow, not for CSV")
	// a frame of pandas that has only an index
	put(t, filepath.Join(dir, "rows.arrows"), arrowStream(t, arrow.NewSchema(nil, nil), `[{},{}]`))
	if _, errs, code := command(nil, "table", "load", store, "none", filepath.Join(dir, "rows.arrows"), "--create",
		"--key", "auto"); code != exit.Failed || !strings.HasSuffix(errs, "rows.arrows: the file has no columns\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	put(t, filepath.Join(dir, "old.feather"), "FEA1"+strings.Repeat("\x00", 100))
	must.Contain(t, exits(t, exit.Failed, "table", "load", store, "t", filepath.Join(dir, "old.feather")),
		"Feather version 1")
}

// A file without rows creates the table, since it has the types; one of which no row is chosen does
// not.
func TestFilesWithoutRowsCreateTables(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	s := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	put(t, filepath.Join(dir, "empty.arrows"), arrowStream(t, s, `[]`))
	put(t, filepath.Join(dir, "one.arrows"), arrowStream(t, s, `[{"k":1}]`))
	loaded(t, nil, "0", store, "made", filepath.Join(dir, "empty.arrows"), "--create", "--key", "k")
	must.Contain(t, definition(t, store, "made"), `"s"`)
	exits(t, 0, "table", "export", store, "made", filepath.Join(dir, "empty.parquet"))
	loaded(t, nil, "0", store, "again", filepath.Join(dir, "empty.parquet"), "--create")
	same(t, "again", definition(t, store, "again"), definition(t, store, "made"))
	must.Contain(t, exits(t, 0, "table", "load", store, "none", filepath.Join(dir, "one.arrows"), "--create",
		"--key", "k", "--where", "k > 1"), "was not created: no rows match --where")
}

// A NULL in a column of the key is an error with its row and column in each format, and nothing is
// loaded. An empty string is a key.
func TestLoadsRefuseKeysOfNULL(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	s := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	const rows = `{"k":1,"s":"a","v":1},{"k":2,"s":"","v":2}`
	for name, bad := range map[string]struct{ row, key, column string }{
		"integer": {`{"k":null,"s":"c","v":3}`, "k", "k"},
		"string":  {`{"k":3,"s":null,"v":3}`, "s", "s"},
		"second":  {`{"k":null,"s":"c","v":3}`, "s,k", "k"},
	} {
		stream := arrowStream(t, s, "["+rows+","+bad.row+"]")
		put(t, filepath.Join(dir, "in.arrows"), stream)
		put(t, filepath.Join(dir, "in.parquet"), parquetOf(t, stream))
		carbon := filepath.Join(dir, "carbon-"+name)
		put(t, filepath.Join(dir, "schema.jsonl"), `{"name":"k","type":"LONG","sort":false}`+"\n"+
			`{"name":"s","type":"STRING","sort":false}`+"\n"+`{"name":"v","type":"LONG","sort":false}`+"\n")
		put(t, filepath.Join(dir, "rows.jsonl"), strings.ReplaceAll(rows, "},{", "}\n{")+"\n"+bad.row+"\n")
		succeed(t, "carbondata", "write", "--schema", filepath.Join(dir, "schema.jsonl"), "--values",
			filepath.Join(dir, "rows.jsonl"), carbon)
		for _, file := range []string{filepath.Join(dir, "in.arrows"), filepath.Join(dir, "in.parquet"), carbon} {
			for _, mode := range []string{"insert", "upsert", "insert_ignore"} {
				_, errs, code := command(nil, "table", "load", store, "t", file, "--create",
					"--key", bad.key, "--mode", mode)
				want := file + `: row 3: column "` + bad.column + `": NULL in a column that is not nullable`
				if code != exit.Failed || !strings.Contains(errs, want) || !strings.Contains(errs, "\nloaded 0 rows") {
					t.Errorf("%s, %s, %s: exit code %d: %s, want %s", name, filepath.Base(file), mode, code, errs, want)
				}
				must.Equal(t, succeed(t, "table", "list", store), "", file)
			}
		}
	}
	put(t, filepath.Join(dir, "empty.arrows"), arrowStream(t, s, "["+rows+"]"))
	loaded(t, nil, "2", store, "t", filepath.Join(dir, "empty.arrows"), "--create", "--key", "s")
	same(t, "rows", succeed(t, "table", "scan", store, "t", "--columns", "s,v"),
		`{"s":"","v":2}`+"\n"+`{"s":"a","v":1}`+"\n")
}

// parquetOf returns the rows of an Arrow stream as Parquet.
func parquetOf(t *testing.T, stream string) string {
	t.Helper()
	r := must.Get(ipc.NewReader(strings.NewReader(stream)))(t)
	defer r.Release()
	var out bytes.Buffer
	must.Get(arrowio.WriteParquet(&out, r, arrowio.ParquetOptions{}))(t)
	return out.String()
}
