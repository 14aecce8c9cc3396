package kudu

import (
	"testing"

	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/vfs"
)

// goldenCase is one directory of golden/kudu.
type goldenCase struct{ *kudutest.Case }

func readCase(t testing.TB, name string) *goldenCase {
	t.Helper()
	return &goldenCase{kudutest.Read(t, name)}
}

// unpack returns the case's directories in memory, below "/fs".
func (c *goldenCase) unpack(t testing.TB) *vfs.Mem {
	t.Helper()
	return c.Unpack(t)
}

// open opens the case's directories.
func (c *goldenCase) open(t *testing.T) *Directory {
	t.Helper()
	d := must.Get(Open("/fs", Options{FS: c.unpack(t), Warn: func(text string) { t.Errorf("warning: %s", text) }}))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// openTable opens a table or tablet.
func openTable(t *testing.T, d *Directory, what string) *Table {
	t.Helper()
	table := must.Get(d.Open(t.Context(), what))(t)
	t.Cleanup(func() { table.Close() })
	return table
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
	it := must.Get(table.Scan(scan.Options{Columns: allColumns(table), Snapshot: mvcc.Snapshot(ts)}, true))(t)
	for it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			out = append(out, string(kudutest.AppendCells(nil, table.Schema.Columns, func(c int) []byte {
				return b.Columns[c].Cell(i)
			})))
		}
	}
	must.Do(t, it.Close())
	return out
}

// diffLines returns the rows with changes from start until just before end.
func diffLines(t *testing.T, table *Table, start, end uint64) (out []string) {
	t.Helper()
	d := must.Get(table.Diff(mvcc.Snapshot(start), mvcc.Snapshot(end), allColumns(table)))(t)
	for d.Next() {
		out = append(out, kudutest.DiffLine(table.Schema, d.Before(), d.After()))
	}
	must.Do(t, d.Close())
	return out
}

// compare compares all answers of a case.
func (c *goldenCase) compare(t *testing.T) { c.compareWith(t, c.open(t)) }

// compareWith compares all answers of a case with reads of d.
func (c *goldenCase) compareWith(t *testing.T, d *Directory) {
	t.Helper()
	tables := map[string]*Table{}
	c.Compare(t, func(what string, a *kudutest.Answer) []string {
		if tables[what] == nil {
			tables[what] = openTable(t, d, what)
		}
		if a.Kind == "scan" {
			return scanLines(t, tables[what], a.TS)
		}
		return diffLines(t, tables[what], a.Start, a.End)
	})
}

// goldenCases returns the names of all cases that can be read with $ORIBI_FULL, otherwise few.
func goldenCases(t *testing.T, few ...string) []string {
	t.Helper()
	return kudutest.Names(t, few...)
}

// The rows, and those that differ between two times, are those that real servers returned, without
// any warning.
func TestReadsOfServersDirectoriesMatchKudu(t *testing.T) {
	for _, name := range goldenCases(t, "file-blocks", "history-gc", "pending-commit", "recovery-dir", "schema-change",
		"special-columns", "unflushed-deltas") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readCase(t, name).compare(t)
		})
	}
}
