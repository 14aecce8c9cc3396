package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// ownWords matches the parts of describe's output that differ between any two tables.
var ownWords = regexp.MustCompile(`"name":"[a-z0-9]*","id":"\w*",|"history_floor":\d+`)

// definition returns what two tables have in common if one was created as the other.
func definition(t *testing.T, store, table string) string {
	t.Helper()
	return ownWords.ReplaceAllString(succeed(t, "table", "describe", store, table, "--format", "json"), "")
}

// loaded runs a load, which must succeed, and returns the columns that it created.
func loaded(t *testing.T, stdin *bytes.Reader, rows string, args ...string) (types string) {
	t.Helper()
	a := append([]string{"table", "load"}, args...)
	var out, errs string
	var code int
	if stdin == nil {
		out, errs, code = command(nil, a...)
	} else {
		out, errs, code = command(stdin, a...)
	}
	types, ok := strings.CutSuffix(errs, "loaded "+rows+" rows\n")
	if code != 0 || out != "" || !ok {
		t.Fatalf("load %v: exit code %d: %s%s", args, code, errs, out)
	}
	return strings.TrimSuffix(strings.TrimPrefix(types, "types: "), "\n")
}

// A table that is exported as Parquet or Arrow comes back with all that describes it.
func TestExportedColumnsComeBack(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	randomExport(t, seedtest.Rand(t), store, 3000)
	want, wantRows := definition(t, store, "t"), succeed(t, "table", "scan", store, "t")
	for i, c := range []struct{ name, args string }{{"out.parquet", ""}, {"snappy.parquet", "--compression snappy"},
		{"gzip.parquet", "--compression gzip"},
		{"none.parquet", "--compression none"}, {"out.arrow", ""}} {
		out, table := filepath.Join(dir, c.name), fmt.Sprint("back", i)
		stdout, errs, code := command(nil,
			append([]string{"table", "export", store, "t", out}, strings.Fields(c.args)...)...)
		if code != 0 || stdout != "" || errs != "exported 3000 rows\n" {
			t.Fatalf("%s: exit code %d: %s", c.name, code, errs)
		}
		loaded(t, nil, "3000", store, table, out, "--create")
		same(t, c.name+": description", definition(t, store, table), want)
		same(t, c.name+": rows", succeed(t, "table", "scan", store, table), wantRows)
	}
	stream, errs, code := command(nil, "table", "export", store, "t", "-", "--format", "arrow")
	must.Equal(t, code, 0)
	must.Equal(t, errs, "exported 3000 rows\n")
	loaded(t, bytes.NewReader([]byte(stream)), "3000", store, "stream", "-", "--create", "--input-format", "arrow")
	same(t, "stream: description", definition(t, store, "stream"), want)
	same(t, "stream: rows", succeed(t, "table", "scan", store, "stream"), wantRows)

	// A stream in a file, whose name says nothing.
	put(t, filepath.Join(dir, "file"), stream)
	loaded(t, nil, "3000", store, "file", filepath.Join(dir, "file"), "--create")
	same(t, "a stream in a file", succeed(t, "table", "scan", store, "file"), wantRows)

	// Into a table that exists.
	succeed(t, "table", "create", store, "again", "--schema", filepath.Join(dir, "schema.json"))
	loaded(t, nil, "3000", store, "again", filepath.Join(dir, "out.parquet"), "--batch", "77")
	same(t, "rows in a table that exists", succeed(t, "table", "scan", store, "again"), wantRows)
}

// Defaults, encodings, and the properties of the whole table are restored too, unless --key asks
// for another table.
func TestExportedDefinitionComesBack(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	put(t, filepath.Join(dir, "schema.json"),
		`{"comment":"as it was","history":"2h","expires":{"column":"until","age":"7d"},"row_file":true,"columns":[`+
			`{"name":"b","type":"string","key":true,"encoding":"prefix"},{"name":"a","type":"int64","key":true,"compression":"zlib"},`+
			`{"name":"n","type":"int64","default":7},{"name":"until","type":"timestamp","nullable":true},{"name":"s","type":"varchar(5)","nullable":true,"comment":"short","default":"x"}]}`)
	succeed(t, "table", "create", store, "t", "--schema", filepath.Join(dir, "schema.json"))
	put(t, filepath.Join(dir, "rows.jsonl"), `{"b":"x","a":1,"until":null}`+"\n"+`{"b":"x","a":2,"n":8,"s":null}`+"\n")
	loaded(t, nil, "2", store, "t", filepath.Join(dir, "rows.jsonl"))
	for _, name := range []string{"out.parquet", "out.arrow"} {
		out := filepath.Join(dir, name)
		exits(t, 0, "table", "export", store, "t", out)
		file, errs, code := command(nil, "table", "load", store, "same", out, "--create", "--dry-run")
		must.Equal(t, code, 0, errs)
		put(t, filepath.Join(dir, "dry.json"), file)
		succeed(t, "table", "create", store, "dry", "--schema", filepath.Join(dir, "dry.json"))
		same(t, name+": dry run", definition(t, store, "dry"), definition(t, store, "t"))
		loaded(t, nil, "2", store, "same", out, "--create")
		same(t, name+": description", definition(t, store, "same"), definition(t, store, "t"))
		same(t, name+": rows", succeed(t, "table", "scan", store, "same"), succeed(t, "table", "scan", store, "t"))
		if types := loaded(t, nil, "2", store, "other", out, "--create", "--key",
			"a,b"); types != "a int64, b string, n int64, until timestamp, s varchar(5)" {
			t.Errorf("%s: types %s", name, types)
		}
		if text := definition(t, store, "other"); strings.Contains(text, "as it was") ||
			strings.Count(text, `"nullable":true`) != 3 {
			t.Errorf("%s with --key: %s", name, text)
		}
		if types := loaded(t, nil, "2", store, "part", out, "--create", "--columns", "s,a,b", "--type",
			"a=int32"); types != "b string, a int32, s varchar(5)" {
			t.Errorf("%s with --columns: types %s", name, types)
		}
		errs = exits(t, exit.Misused, "table", "load", store, "none", out, "--create", "--columns", "a,n")
		must.Contain(t, errs, `names "b" as a key column, which is not loaded`, name)
		for _, table := range []string{"dry", "same", "other", "part"} {
			succeed(t, "table", "drop", store, table, "--yes")
		}
	}
}

func TestExportAndLoadOfSelectedColumns(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	randomExport(t, seedtest.Rand(t), store, 500)
	for i, c := range []struct{ format, args string }{{"parquet", "--columns id,c4,name,a16"},
		{"arrow", "--columns c16,id"},
		{"parquet", "--where n<0 --where name!=''"}, {"arrow", "--where n>=0 --limit 7"}} {
		out, args := filepath.Join(dir, fmt.Sprint(i, ".", c.format)), strings.Fields(c.args)
		exits(t, 0, append([]string{"table", "export", store, "t", out}, args...)...)
		want := succeed(t, append([]string{"table", "scan", store, "t"}, args...)...)
		table := fmt.Sprint("back", i)
		rows := strconv.Itoa(strings.Count(want, "\n"))
		columns := []string{"--key", "id"}
		if !strings.Contains(c.args, "--columns") {
			columns = nil
		}
		loaded(t, nil, rows, append([]string{store, table, out, "--create"}, columns...)...)
		if columns == nil { // in the order of the same key
			same(t, c.args, succeed(t, "table", "scan", store, table), want)
		} else if got := succeed(t, "table", "count", store, table); got != rows+"\n" {
			t.Errorf("%s: %s rows", c.args, got)
		}
	}
	for i, name := range []string{"all.parquet", "all.arrow"} {
		out, table := filepath.Join(dir, name), fmt.Sprint("part", i)
		exits(t, 0, "table", "export", store, "t", out)
		select_ := []string{"--columns", "id,name,day,at,n,u,c4", "--where",
			"n < 0 or c16 is null", "--where", "id >= 100"}
		want := succeed(t, append([]string{"table", "scan", store, "t"}, select_...)...)
		loaded(t, nil, strconv.Itoa(strings.Count(want, "\n")),
			append([]string{store, table, out, "--create"}, select_...)...)
		same(t, name, succeed(t, append([]string{"table", "scan", store, table}, select_[:2]...)...), want)
	}
}

func TestArrowRefusesWrongFlagsAndFiles(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	oneRow(t, store, "t", "int64", "1000")
	oneRow(t, store, "wide", "int128", "1")
	for _, name := range []string{"t.parquet", "t.arrow"} {
		exits(t, 0, "table", "export", store, "t", filepath.Join(dir, name))
	}
	whole := must.Get(os.ReadFile(filepath.Join(dir, "t.parquet")))(t)
	put(t, filepath.Join(dir, "cut.parquet"), string(whole[:len(whole)/2]))
	put(t, filepath.Join(dir, "text.parquet"), "a,b\n1,2\n")
	put(t, filepath.Join(dir, "empty.parquet"), "")
	put(t, filepath.Join(dir, "text.arrow"), "a,b\n1,2\n")
	put(t, filepath.Join(dir, "empty.arrow"), "")
	put(t, filepath.Join(dir, "t.parquet.csv"), string(whole))
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"export STORE wide DIR/x.parquet", `oribi: column "c": `, exit.Failed},
		{"export STORE wide DIR/x.arrow", `oribi: column "c": `, exit.Failed},
		{"export STORE wide - --format arrow", `oribi: column "c": `, exit.Failed},
		{"export STORE t - --format parquet", "cannot be written to stdout", exit.Misused},
		{"export STORE t -", "stdout requires --format arrow, csv, or jsonl", exit.Misused},
		{"export STORE t DIR/x.parquet.gz", "not compressed as a whole", exit.Misused},
		{"export STORE t DIR/x.parquet --compression lz4", "--compression: ", exit.Misused},
		{"export STORE t DIR/x.arrow --compression zstd", "--compression is for --format parquet", exit.Misused},
		{"export STORE t DIR/t.parquet", "file already exists", exit.Failed},
		{"load STORE t DIR/cut.parquet", "cut.parquet: ", exit.Damage},
		{"load STORE t DIR/text.parquet", "text.parquet: ", exit.Damage},
		{"load STORE t DIR/empty.parquet", "empty.parquet: ", exit.Damage},
		{"load STORE t DIR/text.arrow", "text.arrow: ", exit.Damage},
		{"load STORE t DIR/empty.arrow", "empty.arrow: ", exit.Damage},
		{"load STORE t DIR/none.parquet", "no such file", exit.Failed},
		{"load STORE t DIR/t.parquet.csv",
			"the file is a Parquet file, not CSV or JSON: add --input-format parquet", exit.Failed},
		{"load STORE t DIR/t.parquet --columns a,x", `--columns: column "x": no such column`, exit.Misused},
		{"load STORE t DIR/t.arrow --where x=1", `--where: column "x": no such column`, exit.Misused},
		{"load STORE t DIR/t.arrow --where a=1", `--where: column "a"`, exit.Misused},
		{"load STORE t DIR/x.csv --where nope=1", "no such file", exit.Failed},
		{"load STORE t DIR/t.arrow --no-header", "--no-header is for CSV, not for Arrow", exit.Misused},
		{"load STORE t - --input-format parquet", "Parquet is loaded from a file", exit.Misused},
		{"load STORE t DIR/t.parquet.gz", "compressed inside", exit.Misused},
		{"load STORE t DIR/t.parquet", `row 1: column "a", "b": key KEY: key exists`, exit.Failed},
		{"load STORE none DIR/t.parquet", "to create the table from the file: --create", exit.Missing},
		{"load STORE t DIR/t.parquet --create", "exists already", exit.Failed},
		{"load STORE t DIR --input-format parquet", "not a regular file", exit.Failed},
	} {
		args := strings.Fields(strings.NewReplacer("STORE", store, "DIR", dir).Replace(c.args))
		out, errs, code := command(strings.NewReader(""), append([]string{"table"}, args...)...)
		errs = strings.ReplaceAll(errs, `{"a":"x","b":1}`, "KEY")
		if code != c.code || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, want %d: %s, want %s", c.args, code, c.code, errs, c.want)
		}
		if lines := strings.Split(errs, "\n"); code == exit.Damage &&
			(len(lines) > 3 || len(lines) == 3 && lines[1] != "loaded 0 rows") {
			t.Errorf("%s: %s", c.args, errs)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*x.*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestInterruptedLoadOfArrow(t *testing.T) {
	store := newStore(t)
	randomExport(t, seedtest.Rand(t), store, 1000)
	for _, format := range []string{"parquet", "arrow"} {
		out, other := filepath.Join(store, "..", "out."+format), newStore(t)
		exits(t, 0, "table", "export", store, "t", out)
		interruptLoad(t, other, out)
	}
}

// A changed bit in a file is found, or makes another name of a column, or another possible value of
// Arrow, which has no checksums. The pages that are compressed in a Parquet file have some. A file
// that was cut off is damaged.
func TestLoadOfDamagedArrow(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	r := seedtest.Rand(t)
	randomExport(t, r, store, 50)
	want := succeed(t, "table", "scan", store, "t", "--columns", "id,name,c4,c16")
	for _, format := range []string{"parquet", "arrow", "arrows"} {
		out := filepath.Join(dir, "out."+format)
		if format == "arrows" {
			stream, _, _ := command(nil, "table", "export", store, "t", "-", "--format", "arrow",
				"--columns", "id,name,c4,c16")
			put(t, out, stream)
		} else {
			exits(t, 0, "table", "export", store, "t", out, "--columns", "id,name,c4,c16")
		}
		whole := read(t, out)
		codes := map[int]int{}
		for i := range seedtest.Rounds(60, 20) {
			bad := []byte(whole)
			at := r.IntN(len(bad))
			if cut := i%3 == 0; cut {
				bad = bad[:at]
			} else {
				bad[at] ^= 1 << r.IntN(8)
			}
			put(t, out, string(bad))
			_, errs, code := command(nil, "table", "load", store, "bad", out, "--create", "--key", "id")
			codes[code]++
			switch {
			case i%3 == 0 && code != exit.Damage && at > 0 && (format != "arrows" || at > 8),
				code != 0 && code != exit.Failed && code != exit.Damage && code != exit.Misused,
				code == exit.Failed && format == "parquet" && !strings.Contains(errs, "column"):
				t.Errorf("%s of %d bytes, change %d at %d: exit code %d: %s", format, len(whole), i%3, at, code, errs)
			}
			if code == 0 {
				rows, errs, code := command(nil, "table", "scan", store, "bad", "--columns", "id,name,c4,c16")
				switch {
				case code == exit.Misused && strings.Contains(errs, "no such column"): // the bit was in a name
				case code != 0:
					t.Errorf("%s of %d bytes, a bit at %d: scan: %s", format, len(whole), at, errs)
				case format == "parquet" && !sameLines(rows, want):
					t.Errorf("%s of %d bytes, a bit at %d: other rows", format, len(whole), at)
				}
				succeed(t, "table", "drop", store, "bad", "--yes")
			} else if list := succeed(t, "table", "list", store); strings.Contains(list, `"bad"`) &&
				!strings.HasSuffix(errs, "loaded 0 rows\n") {
				succeed(t, "table", "drop", store, "bad", "--yes")
			}
		}
		if codes[exit.Damage] == 0 {
			t.Errorf("%s: exit codes %v", format, codes)
		}
	}
}

// sameLines reports whether two texts have the same lines in any order.
func sameLines(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.Lines(a)), slices.Sorted(strings.Lines(b)))
}
