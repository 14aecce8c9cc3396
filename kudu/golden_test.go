package kudu

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// goldenCase is one directory of golden/kudu.
type goldenCase struct {
	dir     string
	Note    string
	Stopped string
	Tablets []struct {
		ID, Table, State string
		RowSets          int `json:"rowsets"`
	}
	Answers []goldenAnswer
}

// goldenAnswer is what the server answered to one scan or diff.
type goldenAnswer struct {
	Kind, Table, Label, File string
	From                     string `json:"from_label"`
	TS, Start, End           uint64 // exclusive
	SHA256                   string
	Rows                     int
	PerTablet                map[string]json.RawMessage `json:"per_tablet"`
}

// readCase reads the manifest of a case.
func readCase(t testing.TB, name string) *goldenCase {
	t.Helper()
	c := &goldenCase{dir: filepath.Join(corpustest.Dir(t), "golden", "kudu", name)}
	text, err := os.ReadFile(filepath.Join(c.dir, "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// unpack returns the case's directories in memory, below "/fs".
func (c *goldenCase) unpack(t testing.TB) *vfs.Mem {
	t.Helper()
	fsys := vfs.NewMem()
	if err := fsys.Mkdir("/fs"); err != nil {
		t.Fatal(err)
	}
	for _, file := range corpustest.Archive(t, filepath.Join(c.dir, "fs.tar.gz")) {
		name := filepath.Join("/fs", file.Name)
		if file.Content == nil {
			if err := fsys.Mkdir(name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f, err := fsys.Create(name)
		if err == nil {
			_, err = f.WriteAt(file.Content, 0)
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return fsys
}

// open opens the case's directories.
func (c *goldenCase) open(t *testing.T) *Directory {
	t.Helper()
	d, err := Open("/fs", Options{FS: c.unpack(t), Warn: func(text string) { t.Errorf("warning: %s", text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// openTable opens a table or tablet.
func openTable(t *testing.T, d *Directory, what string) *Table {
	t.Helper()
	table, err := d.Open(t.Context(), what)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// appendCells appends cells as golden/kudu prints them.
func appendCells(line []byte, columns []schema.Column, cell func(i int) []byte) []byte {
	line = append(line, '[')
	for i, c := range columns {
		if i > 0 {
			line = append(line, ',')
		}
		if !c.Type.Variable() {
			c.Type, c.Scale = c.Type.Physical(), 0
		}
		line = celltext.AppendJSON(line, &c, cell(i))
	}
	return append(line, ']')
}

// allColumns returns the indexes of a table's columns.
func allColumns(table *Table) (cols []int) {
	for i := range table.Schema.Columns {
		cols = append(cols, i)
	}
	return cols
}

// scanLines returns the rows as of just before ts.
func scanLines(t *testing.T, table *Table, ts uint64) (out []string) {
	t.Helper()
	it, err := table.Scan(scan.Options{Columns: allColumns(table), Snapshot: mvcc.Snapshot(ts)}, true)
	if err != nil {
		t.Fatal(err)
	}
	for it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			out = append(out, string(appendCells(nil, table.Schema.Columns, func(c int) []byte { return b.Columns[c].Cell(i) })))
		}
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
	return out
}

// diffLines returns the rows with changes from start until just before end.
func diffLines(t *testing.T, table *Table, start, end uint64) (out []string) {
	t.Helper()
	d, err := table.Diff(mvcc.Snapshot(start), mvcc.Snapshot(end), allColumns(table))
	if err != nil {
		t.Fatal(err)
	}
	for d.Next() {
		line := []byte(`{"deleted":true,"key":`)
		columns, cells := table.Schema.Columns[:table.Schema.Keys], d.Before()
		if d.After() != nil {
			line = []byte(`{"deleted":false,"row":`)
			columns, cells = table.Schema.Columns, d.After()
		}
		out = append(out, string(append(appendCells(line, columns, func(c int) []byte { return cells[c] }), '}')))
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return out
}

// firstDifference describes how two texts differ; "" if they do not.
func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%d rows, want %d; row %d is %s, want %s", len(got), len(want), i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got), len(want))
	}
	return ""
}

// compare compares all answers of a case.
func (c *goldenCase) compare(t *testing.T) { c.compareWith(t, c.open(t)) }

// compareWith compares all answers of a case with reads of d.
func (c *goldenCase) compareWith(t *testing.T, d *Directory) {
	t.Helper()
	tables := map[string]*Table{}
	for _, a := range c.Answers {
		files := map[string]string{a.Table: a.File}
		for tablet, raw := range a.PerTablet {
			var file string
			if json.Unmarshal(raw, &file) == nil {
				files[tablet] = file
			}
		}
		for what, file := range files {
			if !strings.Contains(file, ".jsonl") && a.SHA256 == "" {
				continue
			}
			if tables[what] == nil {
				tables[what] = openTable(t, d, what)
			}
			var got []string
			if a.Kind == "scan" {
				got = scanLines(t, tables[what], a.TS)
			} else {
				got = diffLines(t, tables[what], a.Start, a.End)
			}
			if a.SHA256 != "" {
				if sum := sha256.Sum256([]byte(strings.Join(got, "\n") + "\n")); hex.EncodeToString(sum[:]) != a.SHA256 {
					t.Errorf("%s %s of %s: %d rows, want %d others", a.Kind, a.Label, what, len(got), a.Rows)
				}
				continue
			}
			if diff := firstDifference(got, corpustest.Lines(t, filepath.Join(c.dir, file))); diff != "" {
				t.Errorf("%s %s of %s: %s", a.Kind, a.Label, what, diff)
			}
		}
	}
}

// goldenCases returns the names of all cases that can be read with $ORIBI_FULL, otherwise few.
func goldenCases(t *testing.T, few ...string) (names []string) {
	t.Helper()
	dir := filepath.Join(corpustest.Dir(t), "golden", "kudu")
	if os.Getenv("ORIBI_FULL") == "" {
		return few
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "encrypted" && e.Name() != "rocksdb-blocks" {
			names = append(names, e.Name())
		}
	}
	return names
}

// The rows, and those that differ between two times, are those that real servers returned, without
// any warning.
func TestReadsOfServersDirectoriesMatchKudu(t *testing.T) {
	for _, name := range goldenCases(t, "file-blocks", "history-gc", "pending-commit", "recovery-dir", "schema-change", "special-columns", "unflushed-deltas") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readCase(t, name).compare(t)
		})
	}
}
