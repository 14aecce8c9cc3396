package handover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kudutest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// openStore opens or makes a store in memory.
func openStore(t *testing.T, fsys vfs.FS) *oribi.Store {
	t.Helper()
	// With a clock of its own, a store takes timestamps that look like Unix times: some tests have
	// histories that begin with 1.
	s := must.Get(
		oribi.Open("/store", &oribi.Options{FS: fsys, MemoryLimit: 64 << 20, Clock: mvcc.NewHybridClock(nil)}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// openDirectory opens the directories of a case, which give no warnings.
func openDirectory(t *testing.T, fsys vfs.FS) *kudu.Directory {
	t.Helper()
	d := must.Get(
		kudu.Open("/fs", kudu.Options{FS: fsys, Warn: func(text string) { t.Errorf("warning: %s", text) }}))(t)
	t.Cleanup(func() { d.Close() })
	return d
}

// openKudu opens a table or tablet.
func openKudu(t *testing.T, d *kudu.Directory, what string) *kudu.Table {
	t.Helper()
	table := must.Get(d.Open(t.Context(), what))(t)
	t.Cleanup(func() { table.Close() })
	return table
}

// rowsAt returns the rows of a table as of ts, as the corpus prints them.
func rowsAt(t *testing.T, table *oribi.Table, o ...oribi.ScanOption) (out []string) {
	t.Helper()
	columns := table.Schema().Columns
	for b, err := range table.Scan(t.Context(), o...).Batches() {
		must.Do(t, err)
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			out = append(out, string(kudutest.AppendCells(nil, columns, func(c int) []byte {
				return b.Columns[c].Cell(i)
			})))
		}
	}
	return out
}

// importer imports the tables and tablets of a case when they are needed.
type importer struct {
	t     *testing.T
	d     *kudu.Directory
	store *oribi.Store
	from  map[string]*kudu.Table
}

func (m *importer) table(what string) *oribi.Table {
	m.t.Helper()
	if m.from[what] != nil {
		table := must.Get(m.store.Table(what))(m.t)
		return table
	}
	m.from[what] = openKudu(m.t, m.d, what)
	table := must.Get(Import(m.t.Context(), m.store, m.from[what], ImportOptions{Name: what}))(m.t)
	return table
}

// compare compares the answers of a case with reads of the imported tables.
func (m *importer) compare(c *kudutest.Case) {
	m.t.Helper()
	c.Compare(m.t, func(what string, a *kudutest.Answer) []string {
		table := m.table(what)
		if a.Kind == "scan" {
			return rowsAt(m.t, table, oribi.AsOf(mvcc.Timestamp(a.TS-1)))
		}
		return m.diff(what, table, a)
	})
	for what, from := range m.from {
		m.histories(what, from)
	}
}

// diff returns the changed rows as package kudu reads them. Like Kudu's, its diff includes rows
// that were changed and then changed back. Those that really differ must be the rows of the store's
// diff; otherwise the test fails.
func (m *importer) diff(what string, table *oribi.Table, a *kudutest.Answer) (out []string) {
	var differ []string
	d := must.Get(m.from[what].Diff(mvcc.Snapshot(a.Start), mvcc.Snapshot(a.End), columnsOf(m.from[what])))(m.t)
	for d.Next() {
		line := kudutest.DiffLine(m.from[what].Schema, d.Before(), d.After())
		out = append(out, line)
		if !slices.EqualFunc(d.Before(), d.After(), sameCell) {
			differ = append(differ, line)
		}
	}
	must.Do(m.t, d.Close())
	var got []string
	for d, err := range table.Diff(m.t.Context(), mvcc.Timestamp(a.Start-1), mvcc.Timestamp(a.End-1)) {
		must.Do(m.t, err)
		got = append(got, kudutest.DiffLine(table.Schema(), d.Key, d.After))
	}
	must.Equal(m.t, kudutest.FirstDifference(got, differ), "", a.Label, what)
	return out
}

func sameCell(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func columnsOf(table *kudu.Table) (cols []int) {
	for i := range table.Schema.Columns {
		cols = append(cols, i)
	}
	return cols
}

// histories compares the versions of some rows, and the number of rows.
func (m *importer) histories(what string, from *kudu.Table) {
	m.t.Helper()
	table := m.table(what)
	must.Equal(m.t, must.Get(from.LiveRows(m.t.Context()))(m.t), int64(len(rowsAt(m.t, table))), what)
	it := must.Get(from.Diff(mvcc.AsOf(from.KeptSince()), mvcc.Everything, columnsOf(from)))(m.t)
	encoder := keyenc.NewEncoder(from.Schema)
	for n := 0; n < 60 && it.Next(); n++ {
		var want, got []string
		version := func(ts mvcc.Timestamp, cells [][]byte) string {
			line, _ := json.Marshal(ts)
			if cells != nil {
				line = kudutest.AppendCells(line, from.Schema.Columns, func(c int) []byte { return cells[c] })
			}
			return string(line)
		}
		must.Do(m.t, from.History(it.Key(), func(v kudu.Version) bool {
			want = append(want, version(v.TS, v.Cells))
			return true
		}))
		cells := must.Get(encoder.Decode(it.Key()))(m.t)
		key := make(oribi.Key, len(cells))
		row := keyRow(table, cells)
		for i, c := range table.Schema().Columns[:table.Schema().Keys] {
			key[i] = row[c.Name]
		}
		for v, err := range table.History(m.t.Context(), key) {
			must.Do(m.t, err)
			got = append(got, version(v.Timestamp, v.Cells))
		}
		must.Equal(m.t, kudutest.FirstDifference(got, want), "", what, it.Key())
	}
	must.Do(m.t, it.Close())
}

// keyRow returns key cells as a row.
func keyRow(table *oribi.Table, cells [][]byte) oribi.Row {
	d := oribi.Difference{KeyColumns: table.Schema().Columns[:table.Schema().Keys], Key: cells}
	return d.KeyRow()
}

// All tables of the servers answer as the servers did: after the import, after the store was opened
// again, after everything was compacted, and after rows were written again.
func TestImportedTablesAnswerAsTheServers(t *testing.T) {
	for _, name := range kudutest.Names(t, "unflushed-deltas", "schema-change", "special-columns", "wal-only") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := kudutest.Read(t, name)
			stored := vfs.NewMem()
			m := &importer{t: t, d: openDirectory(t, c.Unpack(t)), store: openStore(t, stored),
				from: map[string]*kudu.Table{}}
			m.compare(c)
			m.verify()
			must.Do(t, m.store.Close())
			m.store = openStore(t, stored)
			m.compare(c)
			for what := range m.from {
				must.Do(t, m.table(what).Compact(t.Context()))
			}
			m.compare(c)
			m.verify()
			for what := range m.from {
				rewriteRow(t, m.store, m.table(what))
			}
			m.verify()
		})
	}
}

// verify checks the whole store.
func (m *importer) verify() {
	m.t.Helper()
	must.Do(m.t, m.store.Verify(m.t.Context(), func(f oribi.Finding) { m.t.Errorf("finding: %+v", f) }))
}

// rewriteRow deletes the first row, and inserts it again after a flush.
func rewriteRow(t *testing.T, s *oribi.Store, table *oribi.Table) {
	t.Helper()
	want := rowsAt(t, table)
	for row, err := range table.Scan(t.Context(), oribi.Limit(1)).Rows() {
		must.Do(t, err)
		key := oribi.Row{}
		for _, c := range table.Schema().Columns[:table.Schema().Keys] {
			key[c.Name] = row[c.Name]
		}
		for _, change := range []func(b *oribi.Batch){
			func(b *oribi.Batch) { b.Delete(table, key) },
			func(b *oribi.Batch) { b.Upsert(table, row) },
		} {
			b := s.NewBatch()
			change(b)
			must.Get(b.Commit(t.Context()))(t)
			must.Do(t, table.Flush(t.Context()))
		}
	}
	must.Equal(t, kudutest.FirstDifference(rowsAt(t, table), want), "", table.Name())
}

// Only the rows as of a time are imported, and earlier times are refused.
// The rows are older than the history that the store keeps by default, today and in any year.
func TestImportOfRowsOnly(t *testing.T) {
	for _, later := range []time.Duration{0, 30 * day, 4000 * day} {
		t.Run(fmt.Sprintf("days=%d", later/day), func(t *testing.T) { testImportOfRowsOnly(t, later) })
	}
}

const day = 24 * time.Hour

// testImportOfRowsOnly has a clock that is ahead of the machine's.
func testImportOfRowsOnly(t *testing.T, ahead time.Duration) {
	c := kudutest.Read(t, "unflushed-deltas")
	clock := mvcc.NewHybridClock(func() time.Time { return time.Now().Add(ahead) })
	s := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), MemoryLimit: 64 << 20, Clock: clock}))(t)
	defer s.Close()
	d := openDirectory(t, c.Unpack(t))
	from := openKudu(t, d, c.Tablets[0].Table)
	for _, a := range c.Answers {
		if a.Kind != "scan" {
			continue
		}
		at := mvcc.Timestamp(a.TS - 1)
		table := must.Get(Import(t.Context(), s, from, ImportOptions{Name: a.Label, RowsOnly: true, AsOf: at}))(t)
		var want []string
		it := must.Get(from.Scan(scan.Options{Columns: columnsOf(from), Snapshot: mvcc.AsOf(at)}, true))(t)
		for it.Next() {
			b := it.Batch()
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				want = append(want, string(kudutest.AppendCells(nil, from.Schema.Columns, func(c int) []byte {
					return b.Columns[c].Cell(i)
				})))
			}
		}
		must.Do(t, it.Close())
		for _, o := range [][]oribi.ScanOption{nil, {oribi.AsOf(at)}} {
			if diff := kudutest.FirstDifference(rowsAt(t, table, o...), want); diff != "" || len(want) == 0 {
				t.Errorf("%s: %s, %d rows", a.Label, diff, len(want))
			}
		}
		must.Fail(t, must.Err(table.Count(t.Context(), oribi.AsOf(at-1))),
			oribi.ErrTooOld, "a read of an earlier time")
	}
}

// A column that is added later gets an ID that no column had, so that no change of a dropped column
// appears in it.
func TestIDsOfDroppedColumnsAreNotReused(t *testing.T) {
	c := kudutest.Read(t, "schema-change")
	d, s := openDirectory(t, c.Unpack(t)), openStore(t, vfs.NewMem())
	from := openKudu(t, d, c.Tablets[0].Table)
	kept := len(from.Schema.Columns) - 1
	dropped := from.Schema.Columns[kept]
	without := must.Get(schema.New(from.Schema.Columns[:kept], from.Schema.Keys))(t)
	table, err := s.Adopt(t.Context(), oribi.Adoption{Name: "t", Schema: without, RowSets: from.RowSets(t.Context())})
	if err == nil {
		err = table.Alter(t.Context(), oribi.AddColumn(schema.Column{Name: "new", Type: dropped.Type, Nullable: true}))
	}
	must.Do(t, err)
	if id := table.Schema().Columns[kept].ID; id <= dropped.ID {
		t.Errorf("the new column has ID %d, the dropped one %d", id, dropped.ID)
	}
	must.Equal(t, must.Get(table.Count(t.Context(), oribi.Where(oribi.NotNull("new"))))(t),
		0, "cells of the new column")
}

// A name that is taken is refused.
func TestImportUnderATakenName(t *testing.T) {
	c := kudutest.Read(t, "unflushed-deltas")
	d, s := openDirectory(t, c.Unpack(t)), openStore(t, vfs.NewMem())
	from := openKudu(t, d, c.Tablets[0].Table)
	must.Equal(t, must.Get(Import(t.Context(), s, from, ImportOptions{}))(t).Name(), c.Tablets[0].Table)
	if _, err := Import(t.Context(), s, from, ImportOptions{}); !errors.Is(err, oribi.ErrExists) ||
		!strings.Contains(err.Error(), from.Name) {
		t.Errorf("got %v, want ErrExists", err)
	}
}
