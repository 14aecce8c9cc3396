package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/oribi-db/oribi/arrowio"
)

// arrowStream returns an Arrow stream of rows as JSON.
func arrowStream(t *testing.T, s *arrow.Schema, rows string) string {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	r, err := array.NewRecordReader(s, []arrow.RecordBatch{rec})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := arrowio.WriteStream(&out, r, arrowio.ArrowOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Columns that a table cannot have are left out, and times rounded, only if the command line says so;
// there is a note where it is not obvious what was loaded.
func TestLoadOfWhatATableCannotHave(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	file := filepath.Join(dir, "in.arrows")
	put(t, file, arrowStream(t, arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "t", Type: arrow.FixedWidthTypes.Timestamp_ns}, {Name: "d", Type: arrow.FixedWidthTypes.Duration_ms},
		{Name: "i", Type: arrow.FixedWidthTypes.MonthInterval}, {Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8})},
	}, nil), `[{"k":1,"t":"1969-12-31T23:59:59.999999999Z","d":5,"i":{"months":1},"s":{"x":1}}]`))
	load := func(code int, args ...string) string {
		t.Helper()
		_, errs, got := command(nil, append([]string{"table", "load", store, "t", file, "--create", "--key", "k"}, args...)...)
		if got != code {
			t.Fatalf("%v: exit code %d, want %d: %s", args, got, code, errs)
		}
		return errs
	}
	if errs := load(exitFailed); !strings.Contains(errs, `in.arrows: column "i": a column cannot have the type month_interval`) || !strings.Contains(errs, "--skip-unsupported, or --columns") {
		t.Error(errs)
	}
	if errs := load(exitFailed, "--columns", "k,s"); !strings.Contains(errs, `column "s": `) {
		t.Error(errs)
	}
	errs := load(exitFailed, "--skip-unsupported")
	if !strings.Contains(errs, `row 1: column "t": -1 nanoseconds since 1970 are no whole number of microseconds`) || !strings.Contains(errs, "--round") || strings.Contains(errs, "corrupt") {
		t.Error(errs)
	}
	errs = load(exitDone, "--skip-unsupported", "--round")
	for _, note := range []string{`note: column "i" is left out: a column cannot have the type month_interval`, `note: column "s" is left out: `, `note: column "d": a duration is read as its milliseconds`} {
		if strings.Count(errs, note) != 1 {
			t.Errorf("no %s in %s", note, errs)
		}
	}
	if got := succeed(t, "table", "scan", store, "t"); got != `{"k":1,"t":-1,"d":5}`+"\n" {
		t.Error(got)
	}
	put(t, filepath.Join(dir, "x.csv"), "k\n1\n")
	if _, errs, code := command(nil, "table", "load", store, "t", filepath.Join(dir, "x.csv"), "--round"); code != exitUsage || !strings.Contains(errs, "--round is for Parquet and Arrow, not for CSV") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	put(t, filepath.Join(dir, "old.feather"), "FEA1"+strings.Repeat("\x00", 100))
	if _, errs, code := command(nil, "table", "load", store, "t", filepath.Join(dir, "old.feather")); code != exitFailed || !strings.Contains(errs, "Feather version 1") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A file without rows creates the table, since it has the types; one of which no row is chosen does
// not.
func TestFilesWithoutRowsCreateTables(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	s := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	put(t, filepath.Join(dir, "empty.arrows"), arrowStream(t, s, `[]`))
	put(t, filepath.Join(dir, "one.arrows"), arrowStream(t, s, `[{"k":1}]`))
	loaded(t, nil, "0", store, "made", filepath.Join(dir, "empty.arrows"), "--create", "--key", "k")
	if text := definition(t, store, "made"); !strings.Contains(text, `"s"`) {
		t.Error(text)
	}
	if _, errs, code := command(nil, "table", "export", store, "made", filepath.Join(dir, "empty.parquet")); code != 0 {
		t.Fatal(errs)
	}
	loaded(t, nil, "0", store, "again", filepath.Join(dir, "empty.parquet"), "--create")
	same(t, "again", definition(t, store, "again"), definition(t, store, "made"))
	if _, errs, code := command(nil, "table", "load", store, "none", filepath.Join(dir, "one.arrows"), "--create", "--key", "k", "--where", "k > 1"); code != 0 || !strings.Contains(errs, "was not created: no rows match --where") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
