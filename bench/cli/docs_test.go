package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readRoot reads a file of the engine's module.
func readRoot(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPerformancePageHasTheStoredTables compares docs/performance.md with the tables in testdata.
func TestPerformancePageHasTheStoredTables(t *testing.T) {
	page := readRoot(t, figuresPage)
	want, err := withTable(page, readRoot(t, keptTable))
	if err != nil {
		t.Fatal(err)
	}
	if page != want {
		t.Errorf("%s does not have the figures of %s: run go run -C bench . page", figuresPage, keptTable)
	}
}

// TestTableRowsMatchTheirHeaders finds rows of one table inside another.
func TestTableRowsMatchTheirHeaders(t *testing.T) {
	columns, rows, tables := 0, 0, 0
	for i, line := range strings.Split(readRoot(t, keptTable), "\n") {
		switch n := strings.Count(line, "|"); {
		case n == 0:
			columns = 0
		case columns == 0:
			columns, tables = n, tables+1
		case n != columns:
			t.Errorf("%s: line %d has %d columns, want %d", keptTable, i+1, n-1, columns-1)
		default:
			rows++
		}
	}
	if tables < 2 || rows < 20 {
		t.Errorf("%d tables with %d rows: the test does not recognize them", tables, rows)
	}
}

func TestTableReplacesTextBetweenMarks(t *testing.T) {
	got, err := withTable("a\n"+beginMark+"old\n"+endMark+"z\n", "| new |\n")
	if want := "a\n" + beginMark + "\n| new |\n\n" + endMark + "z\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, page := range []string{"", beginMark, endMark} {
		if got, err := withTable(page, "| new |"); err == nil {
			t.Errorf("page %q without marks became %q", page, got)
		}
	}
}

func TestPageCommandCopiesTables(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{figuresPage: "a\n" + beginMark + endMark, "run/table.md": "| new |\n", keptTable: "| old |"} {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range [][]string{{keptTable, "run/table.md"}, nil} {
		for i, name := range from {
			from[i] = filepath.Join(root, filepath.FromSlash(name))
		}
		if err := writePage(root, from...); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(figuresPage)))
		if want := "a\n" + beginMark + "\n| old |\n\n| new |\n\n" + endMark; err != nil || string(page) != want {
			t.Errorf("from %q: %q, %v, want %q", from, page, err, want)
		}
	}
}
