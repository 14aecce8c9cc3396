package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// goldenCarbon has the fields of a line in the manifest of CarbonData folders that tests use.
type goldenCarbon struct {
	Name     string
	Rows     int
	Columns  [][2]string
	Expected string
	Part     any `json:"expected_part"`
	Filters  int

	Blocklets, Pages    int
	Encodings, Features []string

	dir string
}

func eachGoldenCarbon(t *testing.T, test func(t *testing.T, g *goldenCarbon)) {
	root := filepath.Join(corpustest.Dir(t), "golden", "carbondata")
	for _, line := range corpustest.Lines(t, filepath.Join(root, "manifest.jsonl")) {
		g := new(goldenCarbon)
		must.Do(t, json.Unmarshal([]byte(line), g))
		g.dir = filepath.Join(root, g.Name)
		t.Run(g.Name, func(t *testing.T) { test(t, g) })
	}
}

// someGoldenCarbon is eachGoldenCarbon with a third of the folders, or all with $ORIBI_FULL. The
// tests of package carbondata read and write all of them.
func someGoldenCarbon(t *testing.T, test func(t *testing.T, g *goldenCarbon)) {
	n := 0
	eachGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		if n++; n%seedtest.Stride(3) != 0 {
			t.Skip("a third of the folders is enough here")
		}
		test(t, g)
	})
}

// expected returns the rows as dump prints them.
func (g *goldenCarbon) expected(t *testing.T) []string {
	t.Helper()
	types := make([]carbondata.Column, len(g.Columns))
	for i, c := range g.Columns {
		types[i] = must.Get(carbonlines.ParseType(c[1]))(t)
	}
	lines := corpustest.Lines(t, filepath.Join(g.dir, g.Expected))
	for n, line := range lines {
		text, i := []byte{'{'}, 0
		for w := jsonin.Walk([]byte(line)); w.Next(); i++ {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(strconv.AppendQuote(text, g.Columns[i][0]), ':')
			text = appendGolden(t, text, &types[i], w.Value)
		}
		lines[n] = string(append(text, '}'))
	}
	return lines
}

// carbonDate returns the date that the SDK prints for a stored day: a Julian one up to 1582-10-04.
func carbonDate(days int) time.Time {
	if days >= -141427 {
		return time.Date(1970, 1, 1+days, 0, 0, 0, 0, time.UTC)
	}
	// From a Julian day number to a date, by the rules of almanacs.
	e := 4*(days+2440588+1401) + 3
	h := 5*(e%1461/4) + 2
	month := (h/153+2)%12 + 1
	return time.Date(e/1461-4716+(14-month)/12, time.Month(month), h%153/5+1, 0, 0, 0, 0, time.UTC)
}

// appendGolden converts a value of the corpus to the form of dump: fields have names, decimals a
// point, and dates are year-month-day.
func appendGolden(t *testing.T, dst []byte, c *carbondata.Column, value []byte) []byte {
	if string(value) == "null" {
		return append(dst, value...)
	}
	switch c.Type {
	case carbondata.Decimal:
		digits, minus := strings.CutPrefix(string(value), "-")
		digits = strings.Repeat("0", max(c.Scale+1-len(digits), 0)) + digits
		if minus {
			digits = "-" + digits
		}
		if point := len(digits) - c.Scale; c.Scale > 0 {
			digits = digits[:point] + "." + digits[point:]
		}
		return append(dst, `"`+digits+`"`...)
	case carbondata.Date:
		days := must.Get(strconv.Atoi(string(value)))(t)
		return carbonDate(days).AppendFormat(dst, `"2006-01-02"`)
	case carbondata.Timestamp:
		micros := must.Get(strconv.ParseInt(string(value), 10, 64))(t)
		const day = 24 * 60 * 60 * 1e6
		of := (micros%day + day) % day
		return strconv.AppendInt(dst, carbonDate(int((micros-of)/day)).UnixMicro()+of, 10)
	case carbondata.Array, carbondata.Map, carbondata.Struct:
		opening, closing := byte('['), byte(']')
		child := c.Children
		switch c.Type {
		case carbondata.Struct:
			opening, closing = '{', '}'
		case carbondata.Map:
			child = child[0].Children
		}
		dst = append(dst, opening)
		i := 0
		for w := jsonin.Walk(value); w.Next(); i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			switch c.Type {
			case carbondata.Array:
				dst = appendGolden(t, dst, &child[0], w.Value)
			case carbondata.Struct:
				dst = append(strconv.AppendQuote(dst, child[i].Name), ':')
				dst = appendGolden(t, dst, &child[i], w.Value)
			case carbondata.Map:
				pair := jsonin.Walk(w.Value)
				for k := 0; pair.Next(); k++ {
					dst = append(dst, "[,"[k])
					dst = appendGolden(t, dst, &child[k], pair.Value)
				}
				dst = append(dst, ']')
			}
		}
		return append(dst, closing)
	}
	return append(dst, value...)
}

func TestCarbonDumpPrintsGoldenRows(t *testing.T) {
	someGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		if g.Part == nil {
			want := g.expected(t)
			same(t, "dump", succeed(t, "carbondata", "dump", g.dir), strings.Join(append(want, ""), "\n"))
			for _, format := range []string{"json", "csv", "table"} {
				if n := strings.Count(succeed(t, "carbondata", "dump", g.dir, "--format", format), "\n"); n < g.Rows {
					t.Errorf("%d lines as %s, want at least %d", n, format, g.Rows)
				}
			}
			return
		}
		// The corpus has the first 1000 and the last 300 rows of large folders.
		if testing.Short() {
			t.Skip("prints a large folder")
		}
		want, got := g.expected(t), strings.Split(succeed(t, "carbondata", "dump", g.dir), "\n")
		must.Equal(t, len(got), g.Rows+1)
		must.Equal(t, len(want), 1300)
		same(t, "first rows", strings.Join(got[:1000], "\n"), strings.Join(want[:1000], "\n"))
		same(t, "last rows", strings.Join(got[g.Rows-300:g.Rows], "\n"), strings.Join(want[1000:], "\n"))
	})
}

func TestCarbonSchemaPrintsGoldenColumns(t *testing.T) {
	sorted := 0
	eachGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		lines := strings.Split(succeed(t, "carbondata", "schema", g.dir), "\n")
		must.Equal(t, len(lines), len(g.Columns)+1)
		for i, c := range g.Columns {
			before := `{"name":` + strconv.Quote(c[0]) + `,"type":` + strconv.Quote(c[1]) + `,"sort":`
			if lines[i] == before+"true}" {
				sorted++
			} else if lines[i] != before+"false}" {
				t.Errorf("column %d: %s, want %s…", i, lines[i], before)
			}
		}
	})
	if sorted == 0 {
		t.Error("no column is a sort column: this test sees nothing")
	}
}

func TestCarbonInfoAgreesWithManifest(t *testing.T) {
	eachGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		text := succeed(t, "carbondata", "info", g.dir)
		var info carbondata.Info
		must.Do(t, json.Unmarshal([]byte(text), &info))
		must.Equal(t, strings.Count(text, "\n"), 1)
		if g.Name == "table" { // the manifest counts the segment that is marked for delete
			g.Blocklets, g.Pages = info.Blocklets, info.Pages
		}
		if int(info.Rows) != g.Rows || info.Blocklets != g.Blocklets || info.Pages != g.Pages {
			t.Errorf("%d rows, %d blocklets, %d pages, want %d, %d, %d", info.Rows, info.Blocklets,
				info.Pages, g.Rows, g.Blocklets, g.Pages)
		}
		must.Equal(t, strings.Join(info.Encodings, " "), strings.Join(g.Encodings, " "))
		must.Equal(t, strings.Join(info.Features, " "), strings.Join(g.Features, " "))
		for _, format := range []string{"table", "csv"} {
			text := succeed(t, "carbondata", "info", g.dir, "--format", format)
			for _, f := range info.Files {
				must.Contain(t, text, f.File, format)
			}
		}
	})
}

func TestCarbonVerifyAcceptsGoldenFolders(t *testing.T) {
	someGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		if g.Part != nil && testing.Short() {
			t.Skip("reads a large folder")
		}
		must.Equal(t, succeed(t, "carbondata", "verify", g.dir), "ok\n")
	})
}

// What write makes of the columns and rows of a folder has these rows, whatever its form.
func TestCarbonWriteKeepsGoldenRows(t *testing.T) {
	forms := [][]string{{"--compressor", "zstd"}, {"--local-dictionary", "off", "--page-rows", "7"},
		{"--compressor", "gzip", "--blocklet-size", "1000", "--page-rows", "100"}}
	n := 0
	someGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		if g.Part != nil || testing.Short() && g.Rows > 1000 {
			return
		}
		n++
		dir := t.TempDir()
		columns, rows, out := filepath.Join(dir, "columns"), filepath.Join(dir, "rows.gz"), filepath.Join(dir, "out")
		want := strings.Join(append(g.expected(t), ""), "\n")
		put(t, columns, succeed(t, "carbondata", "schema", g.dir))
		put(t, rows, pack(t, want))
		args := append([]string{"carbondata", "write", "--schema", columns, "--values", rows, out},
			forms[n%len(forms)]...)
		if g.Name == "string-null-word" { // its VARCHAR that reads as NULL cannot be written
			must.Contain(t, exits(t, exit.Failed, args...), `rows.gz:1: column "t": NULL`)
			return
		}
		must.Equal(t, succeed(t, args...), "")
		same(t, "dump of the output", succeed(t, "carbondata", "dump", out), want)
		must.Equal(t, succeed(t, "carbondata", "verify", out), "ok\n")
	})
}

// Rows are written in the order of the sort columns.
func TestCarbonWriteSortsRows(t *testing.T) {
	dir := t.TempDir()
	columns, rows, out := filepath.Join(dir, "columns"), filepath.Join(dir, "rows"), filepath.Join(dir, "out")
	put(t, columns, `{"name":"k","type":"STRING"}`+"\n"+`{"name":"n","type":"INT"}`)
	const most = 5000
	var text strings.Builder
	for i := range most {
		n := i * 7919 % most
		text.WriteString(fmt.Sprintf(`{"k":"k%d","n":%d}`+"\n", n%10, n))
	}
	put(t, rows, text.String())
	succeed(t, "carbondata", "write", "--schema", columns, "--values", rows, "--sort-columns", "k,n",
		"--inverted-index", "k", "--page-rows", "100", out)
	var want strings.Builder
	for k := range 10 {
		for n := k; n < most; n += 10 {
			want.WriteString(fmt.Sprintf(`{"k":"k%d","n":%d}`+"\n", k, n))
		}
	}
	same(t, "sorted rows", succeed(t, "carbondata", "dump", out), want.String())
	printed, errs, code := command(nil, "carbondata", "dump", out, "--where", "k = 'k3' and n < 13", "--explain")
	if code != 0 || printed != `{"k":"k3","n":3}`+"\n" ||
		!regexp.MustCompile(`, [1-3] of 50 pages\n$`).MatchString(errs) {
		t.Errorf("exit code %d: %s%s", code, printed, errs)
	}
}

// Interrupted at any check, also while it sorts, write leaves no folder.
func TestCarbonWriteIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	columns, rows, out := filepath.Join(dir, "columns"), filepath.Join(dir, "rows"), filepath.Join(dir, "out")
	put(t, columns, `{"name":"n","type":"INT"}`)
	const most = 20_000
	var text strings.Builder
	for i := range most {
		text.WriteString(fmt.Sprintf(`{"n":%d}`+"\n", most-i))
	}
	put(t, rows, text.String())
	// There is a check for each row that is read, and after that one for each 1024 that are sorted.
	for _, asked := range []int{0, 1, most / 2, most, most + 10} {
		var errs bytes.Buffer
		a := &console.Console{Stdout: &console.Stdout{Out: io.Discard}, Stderr: &errs}
		code := run(newCountdown(asked), a,
			[]string{"carbondata", "write", "--schema", columns, "--values", rows, "--sort-columns", "n", out})
		must.Equal(t, code, exit.Interrupted, asked)
		must.Equal(t, errs.String(), "oribi: interrupted\n", asked)
		if left, _ := os.ReadDir(dir); len(left) != 2 {
			t.Errorf("canceled at check %d: it leaves %v", asked, left)
		}
	}
}

// Some columns, in another order, are those columns of all rows.
func TestCarbonDumpChoosesColumns(t *testing.T) {
	someGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		if g.Part != nil || len(g.Columns) < 2 {
			return
		}
		first, last := g.Columns[0][0], g.Columns[len(g.Columns)-1][0]
		var want strings.Builder
		for _, line := range g.expected(t) {
			values := map[string]string{}
			for w := jsonin.Walk([]byte(line)); w.Next(); {
				values[string(w.Name)] = string(w.Value)
			}
			want.WriteString("{" + strconv.Quote(last) + ":" + values[last] + "," +
				strconv.Quote(first) + ":" + values[first] + "}\n")
		}
		same(t, "two columns", succeed(t, "carbondata", "dump", g.dir, "--columns", last+","+first), want.String())
	})
}

// Every malformed folder is damage to the verb of the stage at which the manifest wants the error.
func TestMalformedCarbonDataIsDamage(t *testing.T) {
	dir := filepath.Join(corpustest.Dir(t), "golden", "carbondata", "malformed")
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "manifest.jsonl")) {
		var m struct {
			Name, Required, Trigger string
			Filter                  json.RawMessage
		}
		must.Do(t, json.Unmarshal([]byte(line), &m))
		t.Run(m.Name, func(t *testing.T) {
			folder := filepath.Join(dir, m.Name)
			verbs := carbonVerbs(folder)
			stages := map[string][]int{"open": {0, 1, 2, 3}, "scan": {2, 3}, "filter": {3}}
			if m.Filter != nil {
				verbs = append(verbs, []string{"carbondata", "dump", folder, "--filter-json", string(m.Filter)})
				stages["filter"] = append(stages["filter"], len(verbs)-1)
			}
			for _, i := range stages[m.Trigger] {
				_, errs, code := command(nil, verbs[i]...)
				if code == 0 && m.Required != "error" {
					continue
				}
				if code != exit.Damage || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, m.Name) {
					t.Errorf("oribi %s: exit code %d: %s", strings.Join(verbs[i], " "), code, errs)
				}
			}
		})
	}
}

// carbonFolder returns a folder of the corpus.
func carbonFolder(t *testing.T, name string) string {
	return filepath.Join(corpustest.Dir(t), "golden", "carbondata", name)
}

// carbonVerbs returns the verbs that read a folder, each with its arguments.
func carbonVerbs(folder string) [][]string {
	return [][]string{{"carbondata", "info", folder}, {"carbondata", "schema", folder}, {"carbondata", "dump", folder},
		{"carbondata", "verify", folder}}
}

func TestCarbonVerbsExitQuietlyWhenReaderCloses(t *testing.T) {
	folder := carbonFolder(t, "struct-types")
	for _, verb := range carbonVerbs(folder) {
		for _, format := range []string{"table", "csv", "jsonl", "json"} {
			var errs bytes.Buffer
			a := &console.Console{Stdout: &console.Stdout{Out: goneReader{}}, Stderr: &errs}
			args := slices.Clone(verb)
			if verb[1] != "verify" {
				args = append(args, "--format", format)
			}
			if code := run(context.Background(), a, args); code != 0 || errs.Len() > 0 {
				t.Errorf("oribi %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
			}
		}
	}
}

// Interrupted at any check, dump and verify print whole lines, say so, and exit with code 130.
func TestCarbonVerbsAreInterrupted(t *testing.T) {
	folder := carbonFolder(t, "pages-many")
	interrupt(t, "carbondata", "dump", folder)
	interrupt(t, "carbondata", "verify", folder)
}

func interrupt(t *testing.T, args ...string) {
	for asked := 0; ; asked++ {
		var out, errs bytes.Buffer
		a := &console.Console{Stdout: &console.Stdout{Out: &out}, Stderr: &errs}
		code := run(newCountdown(asked), a, args)
		if n := out.Len(); n > 0 && out.Bytes()[n-1] != '\n' {
			t.Fatalf("%s, canceled at check %d: part of a line", args[1], asked)
		}
		if code == 0 {
			if asked < 3 {
				t.Errorf("%s checks only %d times", args[1], asked)
			}
			return
		}
		must.Equal(t, code, exit.Interrupted, asked)
		must.Equal(t, errs.String(), "oribi: interrupted\n", asked)
	}
}

func TestCarbonPathsWithoutDataAreNoDamage(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "notes.txt"), "no data")
	for _, c := range []struct{ path, want string }{
		{filepath.Join(dir, "missing"), "no such file"}, {dir, "no files *.carbondata"}} {
		for _, verb := range carbonVerbs(c.path) {
			out, errs, code := command(nil, verb...)
			if code != exit.Failed || out != "" || !strings.Contains(errs, c.want) {
				t.Errorf("oribi %s: exit code %d: %s", strings.Join(verb, " "), code, errs)
			}
		}
	}
	for _, verb := range carbonVerbs(filepath.Join(dir, "notes.txt")) {
		damaged(t, filepath.Join(dir, "notes.txt"), verb...)
	}
}

func TestCarbonDumpRefusesWrongFlags(t *testing.T) {
	folder := carbonFolder(t, "one-row")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--columns", "idd"}, `--columns: column "idd": no such column; did you mean "id"?`},
		{[]string{"--columns", "id,id"}, `--columns: column "id" appears twice`},
		{[]string{"--columns", ""}, "--columns names no column"},
		{[]string{"--limit", "0"}, "--limit: want at least 1, not 0"},
		{[]string{"--filter-json", `["iid","=",1]`}, `--filter-json: column "iid": no such column; did you mean "id"?`},
		{[]string{"--filter-json", `["id","=","x"]`},
			`--filter-json: column "id": "x" (a string) is not a value of a column of type INT`},
		{[]string{"--filter-json", `["day",">","2020-01-01"]`},
			`--filter-json: column "day": "2020-01-01" (a string) is not a value`},
		{[]string{"--filter-json", `["id","="]`}, `--filter-json: column "id"`},
		{[]string{"--filter-json", `{"id":1}`}, `--filter-json: {"id":1} is not a filter`},
		{[]string{"--filter-json", `["id","=",1`}, `--filter-json: byte 12: not JSON: unexpected EOF`},
		{[]string{"--filter-json", `["id","=",1]]`}, `--filter-json: byte 13: not JSON: text after the value`},
		{[]string{"--filter-json", ""}, `--filter-json: byte 1: not JSON: no value`},
		{[]string{"--filter-json", `["s","=","\ud800"]`}, `--filter-json: byte 11: not JSON: invalid surrogate pair`},
		{[]string{"--filter-json", `["id","startswith","1"]`},
			`--filter-json: column "id": INT has no prefixes, only STRING, VARCHAR, and BINARY`},
		{[]string{"--where", "iid = 1"}, `--where: column "iid": no such column; did you mean "id"?`},
		{[]string{"--where", "day > '2020-01-01'"}, `--where: column "day": a date is written date '2020-01-01'`},
		{[]string{"--where", "id = 1", "--where", "id is"}, `--where: byte 6: want "null", not the end`},
		{[]string{"--format", "xml"}, `--format: unknown format "xml"`},
	} {
		out, errs, code := command(nil, append([]string{"carbondata", "dump", folder}, c.args...)...)
		if code != exit.Misused || out != "" || !strings.HasPrefix(errs, "oribi: "+c.want) {
			t.Errorf("%s: exit code %d: %s", strings.Join(c.args, " "), code, errs)
		}
	}
}

// All filters must hold, and limit counts the rows that they select.
func TestCarbonFiltersAndLimit(t *testing.T) {
	folder := carbonFolder(t, "sort-three")
	rows := func(args ...string) []string {
		return strings.SplitAfter(strings.TrimSuffix(succeed(t,
			append([]string{"carbondata", "dump", folder, "--columns", "id"}, args...)...), "\n"), "\n")
	}
	all := rows()
	var want []string
	for _, line := range all {
		var row struct{ ID int }
		must.Do(t, json.Unmarshal([]byte(line), &row))
		if row.ID >= 10 && row.ID < 500 && row.ID != 77 && row.ID != 78 {
			want = append(want, line)
		}
	}
	args := []string{"--where", "id between 10 and 600", "--filter-json", `["id","<",500]`, "--where", "id <> 77",
		"--filter-json", `["id","!=",78]`}
	if got := rows(args...); !slices.Equal(got, want) || len(want) < 100 {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	if got := rows(append(args, "--limit", "7")...); strings.TrimSuffix(strings.Join(got, ""),
		"\n") != strings.TrimSuffix(strings.Join(want[:7], ""), "\n") {
		t.Errorf("the first seven are %v", got)
	}
	must.Equal(t, len(rows("--where", "id not between 10 and 499")),
		len(all)-len(want)-2, "rows outside of the range")
	must.Equal(t, succeed(t, "carbondata", "dump", folder, "--where", "id < 0", "--format", "json"),
		"[]\n", "no rows")
}

// Columns without a type in tables are tested for NULL.
func TestCarbonFiltersOfNestedColumns(t *testing.T) {
	folder := carbonFolder(t, "avro-nested")
	want := 0
	for line := range strings.Lines(succeed(t, "carbondata", "dump", folder, "--columns", "tail")) {
		if line == `{"tail":null}`+"\n" {
			want++
		}
	}
	for _, flags := range [][]string{{"--where", "tail is null"}, {"--filter-json", `["tail","isnull"]`},
		{"--where", "not tail is not null"}} {
		if got := strings.Count(succeed(t, append([]string{"carbondata", "dump", folder}, flags...)...),
			"\n"); got != want || want == 0 {
			t.Errorf("%v: %d rows, want %d", flags, got, want)
		}
	}
	for flag, filter := range map[string]string{"--where": "tail = 1", "--filter-json": `["tail","=",1]`} {
		if _, errs, code := command(nil, "carbondata", "dump", folder, flag, filter); code != exit.Misused ||
			!strings.HasPrefix(errs, "oribi: "+flag+`: column "tail": `) {
			t.Errorf("%s: exit code %d: %s", filter, code, errs)
		}
	}
}

func TestCarbonDumpExplains(t *testing.T) {
	out, errs, code := command(nil, "carbondata", "dump",
		carbonFolder(t, "sort-blocklets"), "--explain", "--limit", "1")
	if code != 0 || strings.Count(out, "\n") != 1 ||
		!regexp.MustCompile(`^read 1 of 1 files, [1-8] of 8 blocklets, [1-8] of 8 pages\n$`).MatchString(errs) {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestCarbonColumnsComplete(t *testing.T) {
	folder := carbonFolder(t, "one-row")
	for typed, want := range map[string]string{"": "id", "id,": "id,s"} {
		if out, _, _ := command(nil, "__completeNoDesc", "carbondata", "dump", folder, "--columns",
			typed); !strings.Contains(out, want+"\n") {
			t.Errorf("%q is completed to %s", typed, out)
		}
	}
	if out, _, _ := command(nil, "__completeNoDesc", "carbondata", "dump", folder, "--where",
		"id > 5 and d"); !strings.Contains(out, "\nid > 5 and day\n") {
		t.Errorf("--where is completed to %s", out)
	}
}
