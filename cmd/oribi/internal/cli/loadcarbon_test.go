package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/must"
)

func newStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	succeed(t, "store", "init", dir)
	return dir
}

// cells returns the values in the lines of rows: a list for each column.
func cells(t *testing.T, columns int, lines []string) [][]string {
	t.Helper()
	list := make([][]string, columns)
	for _, line := range lines {
		i := 0
		for w := jsonin.Walk([]byte(line)); w.Next(); i++ {
			list[i] = append(list[i], string(w.Value))
		}
	}
	return list
}

// Folders of the corpus in which some column can be a key: the first with each list of column
// types, since the tests of package carbondata read all of them.
func TestLoadOfGoldenCarbonData(t *testing.T) {
	store := newStore(t)
	seen, loaded := map[string]bool{}, 0
	someGoldenCarbon(t, func(t *testing.T, g *goldenCarbon) {
		types := ""
		for _, c := range g.Columns {
			types += c[1] + " "
		}
		known := seen[types]
		seen[types] = true
		if known || testing.Short() && g.Part != nil {
			t.Skip("loads few folders")
		}
		lines := g.expected(t)
		var columns []string
		var values [][]string
		key := -1
		for i, list := range cells(t, len(g.Columns), lines) {
			c := must.Get(carbonlines.ParseType(g.Columns[i][1]))(t)
			table, ok := c.TableType()
			if !ok {
				out, errs, code := command(nil, "table", "load", store, "x", g.dir, "--create",
					"--key", g.Columns[0][0], "--dry-run")
				if code != exit.Failed || !strings.Contains(errs, `column "`) ||
					!strings.Contains(errs, "--columns") || out != "" {
					t.Errorf("a column %s: exit code %d: %s", g.Columns[i][1], code, errs)
				}
				continue
			}
			if key < 0 && table.Type.Keyable() && !slices.Contains(list, "null") {
				distinct := slices.Compact(slices.Sorted(slices.Values(list)))
				if len(distinct) == len(list) && c.Type != carbondata.Varchar {
					key = len(columns)
				}
			}
			if slices.ContainsFunc(list, func(value string) bool { return len(value) > 64<<10 }) {
				continue // larger than a cell may be
			}
			columns, values = append(columns, g.Columns[i][0]), append(values, list)
		}
		if key < 0 {
			return
		}
		loaded++
		var want []string
		for row := range lines {
			text := ""
			for i, name := range columns {
				text += "," + strconv.Quote(name) + ":" + values[i][row]
			}
			want = append(want, "{"+text[1:]+"}")
		}
		names, keys := strings.Join(columns, ","), columns[key]
		if g.Name == "lineitem" {
			keys = "l_orderkey,l_linenumber" // no column is distinct in all rows
		}
		_, errs, code := command(nil, "table", "load", store, g.Name, g.dir, "--create",
			"--key", keys, "--columns", names)
		if code != 0 || !strings.HasSuffix(errs, "\nloaded "+strconv.Itoa(g.Rows)+" rows\n") {
			t.Fatalf("exit code %d: %s", code, errs)
		}
		got := strings.Split(strings.TrimSuffix(succeed(t, "table", "scan", store, g.Name, "--columns", names), "\n"),
			"\n")
		// Otherwise the next commands would replay its rows.
		succeed(t, "table", "drop", store, g.Name, "--yes")
		if g.Part != nil { // of which want is a part
			part := map[string]bool{}
			for _, line := range want {
				part[line] = true
			}
			got = slices.DeleteFunc(got, func(line string) bool { return !part[line] })
		}
		slices.Sort(got)
		slices.Sort(want)
		same(t, "rows", strings.Join(got, "\n"), strings.Join(want, "\n"))
	})
	if loaded < 5 {
		t.Errorf("%d folders were loaded", loaded)
	}
}

func TestLoadOfMalformedCarbonDataLeavesNoTable(t *testing.T) {
	store := newStore(t)
	dir := filepath.Join(corpustest.Dir(t), "golden", "carbondata", "malformed")
	for _, name := range []string{"array-count-negative", "number-short", "lv-missing-row",
		"snappy-cut", "dict-count", "rle-huge"} {
		folder := filepath.Join(dir, name)
		key, _, _ := strings.Cut(strings.TrimPrefix(succeed(t, "carbondata", "schema", folder), `{"name":"`), `"`)
		_, errs, code := command(nil, "table", "load", store, "t", folder, "--create", "--key", key)
		if code != exit.Damage || !strings.Contains(errs, name) || !strings.HasSuffix(errs, "\nloaded 0 rows\n") {
			t.Errorf("%s: exit code %d: %s", name, code, errs)
		}
		must.Equal(t, succeed(t, "table", "list", store), "", name)
	}
}

func TestLoadOfSelectedCarbonData(t *testing.T) {
	store := newStore(t)
	folder := filepath.Join(corpustest.Dir(t), "golden", "carbondata", "map")
	want := succeed(t, "carbondata", "dump", folder, "--columns", "id", "--where", "id < 7 and n is not null")
	exits(t, 0, "table", "load", store, "t", folder, "--create", "--key", "id", "--columns", "id", "--where",
		"id < 7", "--where", "n is not null", "--type", "id=uint8")
	if want == "" {
		t.Error("no row is selected: this test sees nothing")
	}
	same(t, "rows", succeed(t, "table", "scan", store, "t"), want)
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--columns id --create --dry-run", "--create requires --key", exit.Misused},
		{"--create --key id", `column "m": tables have no type for MAP<STRING,INT>`, exit.Failed},
		{"--create --key id --round", "--round is for Parquet and Arrow, not for CarbonData", exit.Misused},
		{"--create --key auto --columns m --skip-unsupported",
			`column "m": tables have no type for MAP<STRING,INT>`, exit.Failed},
		{"--columns id,x", `--columns: column "x": no such column`, exit.Misused},
		{"--columns id --where x=1", `--where: column "x": no such column`, exit.Misused},
		{"--columns id --where m=1", `--where: column "m"`, exit.Misused},
		{"--delimiter ;", "--delimiter is for CSV, not for CarbonData", exit.Misused},
		{"--no-header", "--no-header is for CSV, not for CarbonData", exit.Misused},
		{"--columns id --input-format csv", "is a directory", exit.Failed},
		{"--columns id --batch 0", "--batch: want at least 1", exit.Misused},
		{"--columns id", `row 1: column "id": key 0: key exists`, exit.Failed},
		{"--columns id --create --key id", "exists already", exit.Failed},
	} {
		args := append([]string{"table", "load", store, "t", folder}, strings.Fields(c.args)...)
		out, errs, code := command(nil, args...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: exit code %d: %s, want %s", c.args, code, errs, c.want)
		}
	}
	_, errs, code := command(nil, "table", "load", store, "some", folder, "--create",
		"--key", "id", "--skip-unsupported")
	if code != 0 || strings.Count(errs, " is left out: tables have no type for MAP<") != 3 ||
		!strings.Contains(errs, `note: column "m" is left out: tables have no type for MAP<STRING,INT>`+"\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	same(t, "columns", succeed(t, "table", "scan", store, "some"),
		succeed(t, "carbondata", "dump", folder, "--columns", "id"))
	_, errs, code = command(nil, "table", "load", store, "t", folder, "--columns", "id", "--mode",
		"insert_ignore", "--where", "id < 9")
	if code != 0 || !strings.HasPrefix(errs, "loaded ") || !strings.HasSuffix(errs, " were there\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestInterruptedLoadOfCarbonData(t *testing.T) {
	store := newStore(t)
	folder := filepath.Join(corpustest.Dir(t), "golden", "carbondata", "pages-many")
	key, _, _ := strings.Cut(strings.TrimPrefix(succeed(t, "carbondata", "schema", folder), `{"name":"`), `"`)
	interruptLoad(t, store, folder, "--key", key)
}

// interruptLoad interrupts loads of a file later and later, until one succeeds.
func interruptLoad(t *testing.T, store, file string, args ...string) {
	t.Helper()
	for asked := 1; ; asked += 1 + asked/4 {
		table := fmt.Sprint("t", asked)
		var stderr bytes.Buffer
		a := &console.Console{Stdout: &console.Stdout{Out: &bytes.Buffer{}}, Stderr: &stderr}
		code := run(newCountdown(asked), a,
			append([]string{"table", "load", store, table, file, "--create", "--batch", "50"}, args...))
		lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
		loaded, ok := strings.CutSuffix(strings.TrimPrefix(lines[len(lines)-1], "loaded "), " rows")
		if ok && loaded != "0" {
			same(t, "rows", succeed(t, "table", "count", store, table), loaded+"\n")
		} else if strings.Contains(succeed(t, "table", "list", store), `"`+table+`"`) {
			t.Errorf("canceled at check %d: a table without rows is left: %s", asked, stderr.String())
		}
		if code == 0 {
			if asked < 5 {
				t.Errorf("load checks only %d times", asked)
			}
			return
		}
		must.Equal(t, code, exit.Interrupted, asked)
		must.Contain(t, stderr.String(), "oribi: interrupted\n", asked)
	}
}
