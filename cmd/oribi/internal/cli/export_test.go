package cli

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// exportTypes are the types of a table that is exported, and the types of the table that is loaded
// from the export.
var exportTypes = [][2]string{{"bool", "bool"}, {"int8", "int8"}, {"int16", "int16"},
	{"int32", "int32"}, {"int64", "int64"},
	{"uint8", "int16"}, {"uint16", "int32"}, {"uint32", "int64"}, {"uint64", "int64"},
	{"float", "float"}, {"double", "double"},
	{"decimal(9,2)", "decimal(9,2)"}, {"decimal(18,18)", "decimal(18,18)"},
	{"decimal(38,10)", "decimal(38,10)"}, {"date", "date"},
	{"timestamp", "timestamp"}, {"string", "string"}, {"varchar(20)", "string"}, {"binary", "binary"}}

// exportValues are JSON values of a type, the least and the greatest among them.
func exportValues(r *rand.Rand, typ string) []string {
	name, _, _ := strings.Cut(typ, "(")
	switch name {
	case "bool":
		return []string{"true", "false"}
	case "float", "double":
		bits := map[string]int{"float": 32, "double": 64}[name]
		list := []string{`"NaN"`, `"+Inf"`, `"-Inf"`, "-0", "0", "1.5", "-2.25", "100", "0.1", "1e-40", "3e38"}
		for range 5 {
			f := strconv.FormatFloat((r.Float64()-0.5)*1e6, 'g', -1, bits)
			list = append(list, f)
		}
		return list
	case "date":
		return []string{`"0001-01-01"`, `"9999-12-31"`, `"1970-01-01"`, `"1500-03-01"`, `"1582-10-04"`,
			fmt.Sprintf(`"20%02d-03-04"`, r.IntN(100))}
	case "timestamp":
		return []string{"-62135596800000000", "253402300799999000", "-12219292800000000", "-14825808000001000", "0",
			"-1000", strconv.Itoa(r.IntN(253402300800000) * 1000)}
	case "string", "varchar":
		return []string{`""`, `"a"`, `"\"é\u0000\\"`, `"@NU#LL$"`, fmt.Sprintf(`"%d"`, r.IntN(1e6)),
			`"` + strings.Repeat("ö", r.IntN(20)) + `"`}
	case "binary":
		return []string{`"0x00"`, `"0xff00ff"`, fmt.Sprintf(`"0x%02x"`, r.IntN(256))}
	case "decimal":
		return map[string][]string{
			"decimal(9,2)":   {`"-9999999.99"`, `"9999999.99"`, `"0.00"`, `"1.50"`},
			"decimal(18,18)": {`"-0.999999999999999999"`, `"0.999999999999999999"`, `"0.000000000000000001"`},
			"decimal(38,10)": {`"-9999999999999999999999999999.9999999999"`,
				`"9999999999999999999999999999.9999999999"`, `"0.0000000001"`},
		}[typ]
	}
	bits, err := strconv.Atoi(strings.TrimLeft(name, "uint"))
	if err != nil {
		panic(err)
	}
	if name == "uint64" {
		return []string{"0", "9223372036854775807", strconv.Itoa(r.IntN(1e9))}
	}
	if strings.HasPrefix(name, "u") {
		return []string{"0", strconv.FormatUint(1<<bits-1, 10), strconv.Itoa(r.IntN(200))}
	}
	return []string{strconv.FormatInt(-1<<(bits-1), 10), strconv.FormatInt(1<<(bits-1)-1, 10), "0",
		"-1", strconv.Itoa(r.IntN(100))}
}

// randomExport creates a table with a column and an array of each type. It returns the column
// definitions of the table that comes back.
func randomExport(t *testing.T, r *rand.Rand, store string, rows int) (back []string) {
	t.Helper()
	keys := []string{"name string", "day date", "at timestamp", "n int32", "u uint32", "id int64"}
	column := func(name, typ string, key bool) string {
		return fmt.Sprintf(`{"name":%q,"type":%q,"key":%t,"nullable":%t}`, name, typ, key, !key)
	}
	var columns, names, types []string
	add := func(name, typ, of string, key bool) {
		columns, back = append(columns, column(name, typ, key)), append(back, name+" "+of)
		names, types = append(names, name), append(types, typ)
	}
	for _, key := range keys {
		name, typ, _ := strings.Cut(key, " ")
		add(name, typ, strings.Replace(typ, "uint32", "int64", 1), true)
	}
	for i, typ := range exportTypes {
		add(fmt.Sprintf("c%d", i), typ[0], typ[1], false)
		if typ[0] != "decimal(38,10)" {
			add(fmt.Sprintf("a%d", i), "array("+typ[0]+")", "array("+typ[1]+")", false)
		}
	}
	put(t, filepath.Join(store, "..", "schema.json"), `{"columns":[`+strings.Join(columns, ",")+`]}`)
	succeed(t, "table", "create", store, "t", "--schema", filepath.Join(store, "..", "schema.json"))
	value := func(typ string) string {
		list := exportValues(r, typ)
		return list[r.IntN(len(list))]
	}
	var text bytes.Buffer
	for row := range rows {
		for i, typ := range types {
			text.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + strconv.Quote(names[i]) + ":")
			element, array := strings.CutPrefix(typ, "array(")
			switch {
			case names[i] == "id":
				text.WriteString(strconv.Itoa(row))
			case i >= len(keys) && r.IntN(5) == 0:
				text.WriteString("null")
			case !array:
				text.WriteString(value(typ))
			default:
				element = strings.TrimSuffix(element, ")")
				list := make([]string, r.IntN(4))
				for k := range list {
					if list[k] = value(element); len(list) > 1 && r.IntN(4) == 0 {
						list[k] = "null"
					}
				}
				text.WriteString("[" + strings.Join(list, ",") + "]")
			}
		}
		text.WriteString("}\n")
	}
	put(t, filepath.Join(store, "..", "rows.jsonl"), text.String())
	exits(t, 0, "table", "load", store, "t", filepath.Join(store, "..", "rows.jsonl"))
	return back
}

// exported runs an export, which must succeed, and returns how many rows there are.
func exported(t *testing.T, store, table, out string, args ...string) string {
	t.Helper()
	stdout, errs, code := command(nil,
		append([]string{"table", "export", store, table, out, "--format", "carbondata"}, args...)...)
	rows, ok := strings.CutPrefix(strings.TrimSuffix(errs, " rows\n"), "exported ")
	if code != 0 || stdout != "" || !ok {
		t.Fatalf("export %v: exit code %d: %s%s", args, code, errs, stdout)
	}
	succeed(t, "carbondata", "verify", out)
	return rows
}

func TestExportedTableComesBack(t *testing.T) {
	store := newStore(t)
	r := seedtest.Rand(t)
	back := randomExport(t, r, store, 3000)
	want := succeed(t, "table", "scan", store, "t")
	for i, args := range [][]string{nil, {"--compressor", "zstd", "--page-rows", "100", "--blocklet-size", "100000"},
		{"--local-dictionary", "off", "--inverted-index", "name"}} {
		out := filepath.Join(store, "..", fmt.Sprint("out", i))
		must.Equal(t, exported(t, store, "t", out, args...), "3000", args)
		table := fmt.Sprint("back", i)
		_, errs, code := command(nil, "table", "load", store, table, out, "--create")
		if code != 0 || !strings.HasPrefix(errs, "types: "+strings.Join(back, ", ")+"\n") ||
			!strings.HasSuffix(errs, "\nloaded 3000 rows\n") {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		same(t, "rows", succeed(t, "table", "scan", store, table), want)
	}
	// Into a table of the first types.
	succeed(t, "table", "create", store, "again", "--schema", filepath.Join(store, "..", "schema.json"))
	exits(t, 0, "table", "load", store, "again", filepath.Join(store, "..", "out0"))
	same(t, "rows of the same types", succeed(t, "table", "scan", store, "again"), want)
}

// Exports as text print what a scan prints, and are loaded back.
func TestExportedTextComesBack(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	randomExport(t, seedtest.Rand(t), store, 2000)
	for i, name := range []string{"out.csv", "out.jsonl", "out.csv.gz", "out.jsonl.gz"} {
		form, out := strings.Split(name, ".")[1], filepath.Join(dir, name)
		want := succeed(t, "table", "scan", store, "t", "--format", form)
		if stdout, errs, code := command(nil, "table", "export", store, "t", out); code != 0 || stdout != "" ||
			errs != "exported 2000 rows\n" {
			t.Fatalf("%s: exit code %d: %s%s", name, code, errs, stdout)
		}
		in := must.Get((&console.Console{}).OpenInput(out))(t)
		text := must.Get(io.ReadAll(in))(t)
		in.Close()
		same(t, name, string(text), want)
		stdout, _, _ := command(nil, "table", "export", store, "t", "-", "--format", form)
		same(t, form+" on stdout", stdout, want)
		table := fmt.Sprint("back", i)
		succeed(t, "table", "create", store, table, "--schema", filepath.Join(dir, "schema.json"))
		must.Equal(t, exits(t, 0, "table", "load", store, table, out), "loaded 2000 rows\n", name)
		same(t, name, succeed(t, "table", "scan", store, table, "--format", form), want)
	}
}

func TestExportOfSelectedRows(t *testing.T) {
	store := newStore(t)
	randomExport(t, seedtest.Rand(t), store, 300)
	dir := filepath.Join(store, "..")
	for i, c := range []struct {
		args    []string
		sort    string // columns
		resorts bool
	}{
		{[]string{"--columns", "id,c4,name"}, "name", false},
		{[]string{"--columns", "id,c4"}, "", false},
		{[]string{"--where", "n < 0", "--where", "name != ''"}, "name day at n u id", false},
		{[]string{"--where", "n >= 0 or c4 is null", "--limit", "7"}, "name day at n u id", false},
		{[]string{"--columns", "name,id,day,at", "--long-string-columns", "name"}, "", false},
		{[]string{"--columns", "name,day,id", "--sort-columns", "id"}, "id", true},
		{[]string{"--sort-columns", ""}, "", false},
	} {
		out := filepath.Join(dir, fmt.Sprint("out", i))
		rows := exported(t, store, "t", out, c.args...)
		var scan []string
		for k, arg := range c.args {
			if arg == "--long-string-columns" || arg == "--sort-columns" {
				scan = c.args[:k]
				break
			}
			scan = c.args[:k+1]
		}
		want := succeed(t, append([]string{"table", "scan", store, "t"}, scan...)...)
		if n := strconv.Itoa(strings.Count(want, "\n")); rows != n || n == "0" {
			t.Errorf("%v: exported %s rows, want %s", c.args, rows, n)
		}
		if got := succeed(t, "carbondata", "dump", out); !c.resorts {
			same(t, fmt.Sprint(c.args), got, want)
		}
		var sort []string
		for line := range strings.Lines(succeed(t, "carbondata", "schema", out)) {
			if name, _, ok := strings.Cut(strings.TrimPrefix(line, `{"name":"`), `"`); ok &&
				strings.Contains(line, `"sort":true`) {
				sort = append(sort, name)
			}
		}
		must.Equal(t, len(sort), len(strings.Fields(c.sort)), c.args, sort, c.sort)
	}
}

func TestExportOfThePast(t *testing.T) {
	store := newStore(t)
	randomExport(t, seedtest.Rand(t), store, 10)
	ts := strings.TrimPrefix(succeed(t, "table", "put", store, "t",
		`{"name":"new","day":"2026-01-01","at":0,"n":1,"u":1,"id":99}`), `{"ts":`)
	ts, _, _ = strings.Cut(strings.TrimRight(ts, "}\n"), ",")
	before := must.Get(strconv.ParseInt(ts, 10, 64))(t)
	for at, want := range map[string]string{"latest": "11", strconv.FormatInt(before-1, 10): "10"} {
		must.Equal(t, exported(t, store, "t", filepath.Join(store, "..", "out"+want), "--as-of", at), want, at)
	}
}

// oneRow creates a table with key columns a and b, a column c of a type, and one row.
func oneRow(t *testing.T, store, name, typ, value string) {
	t.Helper()
	put(t, filepath.Join(store, "..", "schema.json"),
		`{"columns":[{"name":"a","type":"string","key":true},{"name":"b","type":"int32","key":true},{"name":"c","type":"`+typ+`","nullable":true}]}`)
	succeed(t, "table", "create", store, name, "--schema", filepath.Join(store, "..", "schema.json"))
	put(t, filepath.Join(store, "..", "row.jsonl"), `{"a":"x","b":1,"c":`+value+`}`)
	exits(t, 0, "table", "load", store, name, filepath.Join(store, "..", "row.jsonl"))
}

func TestExportRefusesWhatCarbonDataReadsAsAnotherValue(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	long := `"` + strings.Repeat("x", 32001) + `"`
	for i, c := range []struct{ typ, value, args, want string }{
		{"int128", "1", "", `column "c": CarbonData has no type for int128`},
		{"uint64", "9223372036854775808", "", `out of the range of LONG`},
		{"array(uint64)", "[1,9223372036854775808]", "", `element 1: 9223372036854775808 is out of the range of LONG`},
		{"timestamp", "1001", "", `1001 microseconds`},
		{"timestamp", "-9223372036854775808", "--round-timestamps", `microseconds`},
		{"timestamp", "-9223372036854775000", "--round-timestamps",
			`-290308-12-21T19:59:05.225Z: CarbonData has the dates from 0001-01-01 to 9999-12-31`},
		{"timestamp", "253402300800000000", "", `10000-01-01T00:00:00Z: CarbonData has the dates`},
		{"timestamp", "\"1582-10-05T00:00:00Z\"", "",
			`1582-10-05T00:00:00Z: CarbonData does not have this date: in its calendar 1582-10-15 follows 1582-10-04`},
		{"date", "\"1582-10-14\"", "", `1582-10-14: CarbonData does not have this date`},
		{"array(date)", "[null,\"1582-10-10\"]", "", `element 1: 1582-10-10: CarbonData does not have this date`},
		{"array(timestamp)", "[1001]", "", `element 0: a time of 1001 microseconds`},
		{"string", long, "", `32001 characters`},
		{"string", `"@NU#LL$!"`, "", `NULL`},
		{"varchar(10)", `"@NU#LL$!"`, "", `NULL`},
		{"string", "null", "--long-string-columns c", `NULL`},
		{"binary", `"0x"`, "", `NULL`},
		{"array(int32)", "[null]", "", `exactly one NULL`},
		{"array(string)", `["@NU#LL$!"]`, "", `element 0`},
	} {
		table := fmt.Sprint("t", i)
		oneRow(t, store, table, c.typ, c.value)
		for _, columns := range []string{"", "c", "c,b"} {
			args := []string{"table", "export", store, table, filepath.Join(dir, "out"), "--format", "carbondata"}
			if columns != "" {
				args = append(args, "--columns", columns)
			}
			out, errs, code := command(nil, append(args, strings.Fields(c.args)...)...)
			place := `column "c": key {"a":"x","b":1}: `
			if strings.Contains(c.typ, "int128") {
				place = `column "c": `
			}
			hint := ""
			switch {
			case strings.Contains(c.want, "1001 microseconds"):
				hint = "--round-timestamps"
			case strings.Contains(c.want, "32001 characters"):
				hint = "--long-string-columns c"
			}
			if code != exit.Failed || out != "" || !strings.HasPrefix(errs, "oribi: "+place) ||
				!strings.Contains(errs, c.want) || !strings.HasSuffix(errs, hint+"\n") {
				t.Errorf("%s %.20s %s: exit code %d: %s, want %s", c.typ, c.value, c.args, code, errs, c.want)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*out*")); len(left) > 0 {
			t.Errorf("%s: %v is left", c.typ, left)
		}
	}
}

func TestExportOfLongStringsAndTimes(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	oneRow(t, store, "long", "string", `"`+strings.Repeat("x", 60000)+`"`)
	exported(t, store, "long", filepath.Join(dir, "long"), "--long-string-columns", "c")
	same(t, "a long string", succeed(t, "carbondata", "dump", filepath.Join(dir, "long")),
		succeed(t, "table", "scan", store, "long"))

	for i, value := range []string{"null", "-1001"} {
		table := fmt.Sprint("scalar", i)
		oneRow(t, store, table, "timestamp", value)
		exported(t, store, table, filepath.Join(dir, table), "--round-timestamps")
		same(t, "rounded "+value, succeed(t, "carbondata", "dump", filepath.Join(dir, table)),
			`{"a":"x","b":1,"c":`+strings.Replace(value, "-1001", "-2000", 1)+"}\n")
	}
	for i, c := range [][2]string{{"1001", "1000"}, {"-1", "-1000"}, {"-1001", "-2000"}, {"-2000", "-2000"},
		{"253402300799999999", "253402300799999000"}, {"-62135596799999999", "-62135596800000000"}} {
		table := fmt.Sprint("t", i)
		oneRow(t, store, table, "array(timestamp)", "[null,"+c[0]+"]")
		exported(t, store, table, filepath.Join(dir, table), "--round-timestamps")
		same(t, "rounded "+c[0], succeed(t, "carbondata", "dump", filepath.Join(dir, table)),
			`{"a":"x","b":1,"c":[null,`+c[1]+`]}`+"\n")
	}
}

// Rounding can make keys equal that were not: the columns after them are then in no order.
func TestExportSortsAfterRounding(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	put(t, filepath.Join(dir, "rows.jsonl"),
		"{\"at\":1001,\"n\":9}\n{\"at\":1002,\"n\":5}\n{\"at\":1003,\"n\":7}\n{\"at\":2000,\"n\":1}\n")
	exits(t, 0, "table", "load", store, "t", filepath.Join(dir, "rows.jsonl"), "--create", "--key", "at,n",
		"--type", "at=timestamp")
	exits(t, 0, "table", "load", store, "one", filepath.Join(dir, "rows.jsonl"), "--create", "--key", "n",
		"--type", "at=timestamp")
	_, errs, code := command(nil, "table", "export", store, "one", filepath.Join(dir, "out"), "--format", "carbondata")
	if code != exit.Failed || !strings.HasPrefix(errs, `oribi: column "at": key 5: a time of 1002 microseconds`) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	exported(t, store, "t", filepath.Join(dir, "out"), "--round-timestamps")
	want := "{\"at\":1000,\"n\":5}\n{\"at\":1000,\"n\":7}\n{\"at\":1000,\"n\":9}\n{\"at\":2000,\"n\":1}\n"
	same(t, "rows", succeed(t, "carbondata", "dump", filepath.Join(dir, "out")), want)
}

func TestExportRefusesWrongFlags(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	oneRow(t, store, "t", "timestamp", "1000")
	put(t, filepath.Join(dir, "there"), "")
	for _, c := range []struct {
		out, args, want string
		code            int
	}{
		{"out", "", "add --format", exit.Misused},
		{"out.carbondata", "", "add --format", exit.Misused},
		{"out", "--format carbon", `unknown format "carbon"; did you mean "carbondata"?`, exit.Misused},
		{"-", "--format carbondata", "cannot be written to stdout", exit.Misused},
		{"there", "--format carbondata", "file already exists", exit.Failed},
		{filepath.Join("no", "out"), "--format carbondata", "no such file", exit.Failed},
		{"out", "--format carbondata --limit 0", "--limit: want at least 1", exit.Misused},
		{"out", "--format carbondata --columns nope", `--columns: column "nope"`, exit.Misused},
		{"out", "--format carbondata --where nope=1", `--where: column "nope"`, exit.Misused},
		{"out", "--format carbondata --where b>1", "no rows to export", exit.Failed},
		{"out", "--format carbondata --as-of yesterday", "--as-of", exit.Misused},
		{"out", "--format carbondata --sort-columns nope", `--sort-columns: column "nope"`, exit.Misused},
		{"out", "--format carbondata --columns a,b --sort-columns c", `--sort-columns: column "c"`, exit.Misused},
		{"out", "--format carbondata --sort-columns a,a", `--sort-columns: column "a" appears twice`, exit.Misused},
		{"out", "--format carbondata --inverted-index b", `--inverted-index: column "b"`, exit.Misused},
		{"out", "--format carbondata --inverted-index c", `--inverted-index: column "c"`, exit.Misused},
		{"out", "--format carbondata --compressor lz4", `--compressor: unknown "lz4"`, exit.Misused},
		{"out", "--format carbondata --page-rows 32001", "--page-rows: want 1 to 32000", exit.Misused},
		{"out", "--format carbondata --blocklet-size 0", "--blocklet-size: want 1", exit.Misused},
		{"out", "--format carbondata --local-dictionary yes", `--local-dictionary: unknown "yes"`, exit.Misused},
		{"out", "--format carbondata --long-string-columns b",
			`--long-string-columns: column "b": int32 is not a string`, exit.Misused},
		{"out", "--format carbondata --long-string-columns nope", `--long-string-columns: column "nope"`, exit.Misused},
	} {
		out := c.out
		if out != "-" {
			out = filepath.Join(dir, out)
		}
		stdout, errs, code := command(nil,
			append([]string{"table", "export", store, "t", out}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.want) || stdout != "" {
			t.Errorf("%s %s: exit code %d: %s, want %s", c.out, c.args, code, errs, c.want)
		}
	}
	exits(t, exit.Missing, "table", "export", store, "nope", filepath.Join(dir, "out"), "--format", "carbondata")
	put(t, filepath.Join(dir, "rows.csv"), "k,A,a\n1,2,3\n")
	exits(t, 0, "table", "load", store, "case", filepath.Join(dir, "rows.csv"), "--create", "--key", "k")
	must.Contain(t, exits(t, exit.Failed, "table", "export", store, "case", filepath.Join(dir, "out"),
		"--format", "carbondata"), `"A" and "a"`)
	if left, _ := filepath.Glob(filepath.Join(dir, "*out*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestInterruptedExportLeavesNothing(t *testing.T) {
	store := newStore(t)
	randomExport(t, seedtest.Rand(t), store, 3000)
	interruptExport(t, store, "--format", "carbondata")
	interruptExport(t, store, "--format", "carbondata", "--sort-columns", "id") // ends the sorting, too
	interruptExport(t, store, "--format", "csv")
	interruptExport(t, store, "--format", "jsonl")
}

// interruptExport interrupts exports later and later, until one succeeds.
func interruptExport(t *testing.T, store string, args ...string) {
	t.Helper()
	dir := filepath.Dir(store)
	out := filepath.Join(dir, "out")
	for asked := 1; ; asked += 1 + asked/4 {
		var stderr bytes.Buffer
		a := &console.Console{Stdout: &console.Stdout{Out: &bytes.Buffer{}}, Stderr: &stderr}
		code := run(newCountdown(asked), a, append([]string{"table", "export", store, "t", out}, args...))
		if code == 0 {
			if asked < 3 {
				t.Errorf("%v: export checks only %d times", args, asked)
			}
			must.Do(t, os.RemoveAll(out))
			return
		}
		must.Equal(t, code, exit.Interrupted, args, asked)
		must.Equal(t, stderr.String(), "oribi: interrupted\n", args, asked)
		left, _ := os.ReadDir(dir)
		if len(left) != 3 { // the store, the schema, and the rows
			t.Fatalf("%v: canceled at check %d: %v", args, asked, left)
		}
	}
}

// CarbonData stores names in lower case.
func TestExportOfNamesInUpperCase(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	put(t, filepath.Join(dir, "rows.csv"), "Id,ÄName\n1,x\n2,y\n")
	exits(t, 0, "table", "load", store, "t", filepath.Join(dir, "rows.csv"), "--create", "--key", "Id")
	out := filepath.Join(dir, "out")
	exported(t, store, "t", out, "--sort-columns", "Id", "--long-string-columns", "ÄName")
	if _, errs, code := command(nil, "table", "load", store, "new", out, "--create"); code != 0 ||
		!strings.HasPrefix(errs, "types: id int64, äname string\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	must.Equal(t, exits(t, 0, "table", "load", store, "t", out, "--mode", "upsert"), "loaded 2 rows\n")
	same(t, "rows", succeed(t, "table", "scan", store, "t"), "{\"Id\":1,\"ÄName\":\"x\"}\n{\"Id\":2,\"ÄName\":\"y\"}\n")
}

func TestExportRefusesNamesThatCarbonDataDoesNotHave(t *testing.T) {
	store := newStore(t)
	dir := filepath.Dir(store)
	put(t, filepath.Join(dir, "rows.csv"), "id,a.b,n,N\n1,2,3,4\n")
	exits(t, 0, "table", "load", store, "t", filepath.Join(dir, "rows.csv"), "--create", "--key", "id")
	out := filepath.Join(dir, "out")
	const next = "to export the other columns, name them with --columns\n"
	for columns, want := range map[string]string{
		"id,a.b": "oribi: column \"a.b\": the name must be 1 to 1023 bytes of UTF-8 without a point or U+0000\n" + next,
		"id,n,N": "oribi: columns \"n\" and \"N\": the names differ only in case, and CarbonData's are in lower " +
			"case\n" + next,
	} {
		errs := exits(t, exit.Failed, "table", "export", store, "t", out, "--format",
			"carbondata", "--columns", columns)
		must.Equal(t, errs, want)
	}
	exported(t, store, "t", out, "--columns", "id,n")
}
