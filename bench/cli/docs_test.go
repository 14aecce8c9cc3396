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

// TestPagesHaveTheStoredFigures compares docs/performance.md and README.md with the tables in
// testdata.
func TestPagesHaveTheStoredFigures(t *testing.T) {
	tables := readRoot(t, keptTable)
	rows, err := readmeTable(tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct{ name, begin, text string }{{figuresPage, beginMark, tables},
		{readmePage, readmeMark, rows}} {
		page := readRoot(t, p.name)
		want, err := between(page, p.begin, p.text)
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		if page != want {
			t.Errorf("%s does not have the figures of %s: run go run -C bench . page", p.name, keptTable)
		}
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
	got, err := between("a\n"+beginMark+"old\n"+endMark+"z\n", beginMark, "| new |\n")
	if want := "a\n" + beginMark + "\n| new |\n\n" + endMark + "z\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, page := range []string{"", beginMark, endMark} {
		if got, err := between(page, beginMark, "| new |"); err == nil {
			t.Errorf("page %q without marks became %q", page, got)
		}
	}
}

// runTable returns a table of a run with the rows of README.md.
func runTable() string {
	var b strings.Builder
	b.WriteString("| workload | unit | ours | figure | best peer | figure | ratio " +
		"|\n|---|---|---|---:|---|---:|---:|\n")
	for _, r := range readmeRows {
		b.WriteString("| " + r.workload + " | µs | oribi | 0.66 | bbolt | 1.47 | 2.22 (1.62–2.27) |\n")
	}
	return b.String()
}

func TestPageCommandWritesPages(t *testing.T) {
	root := t.TempDir()
	old, added := runTable(), "| new |\n"
	for name, text := range map[string]string{figuresPage: "a\n" + beginMark + endMark,
		readmePage: readmeMark + endMark, "run/table.md": added, keptTable: old} {
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
		if err := writePages(root, from...); err != nil {
			t.Fatal(err)
		}
		page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(figuresPage)))
		if want := "a\n" + beginMark + "\n" + old + "\n" + added + "\n" + endMark; err != nil || string(page) != want {
			t.Errorf("from %q: %q, %v, want %q", from, page, err, want)
		}
		page, err = os.ReadFile(filepath.Join(root, readmePage))
		if want := "| " + readmeRows[0].about + " | 0.66 µs | bbolt: 1.47 µs | 2.22 |\n"; err != nil ||
			!strings.Contains(string(page), want) {
			t.Errorf("from %q: %q, %v, want %q in it", from, page, err, want)
		}
	}
}
