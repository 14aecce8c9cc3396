package handover

import (
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// Tables that random histories wrote, with updates, deletes, reinserts, alterations, flushes, and
// compactions, are read from their exports as from the store: at any timestamp, each row's history,
// and every check of a server's directory finds them intact.
func TestExportsAreReadAsTheirTables(t *testing.T) {
	tables := 2
	for seed := seedtest.Seed(t); tables > 0; seed++ {
		r := randomHistory(t, seed, 120)
		for _, table := range r.Store.Tables() {
			if tables > 0 && transferable(table) {
				exportEquals(t, rand.New(rand.NewPCG(seed, 1)), table, r.Model.Commits)
				tables--
			}
		}
		r.Close()
		if t.Failed() {
			t.Fatalf("-seed=%d", seed)
		}
	}
}

// randomHistory runs some steps of the history of a seed.
func randomHistory(t *testing.T, seed uint64, steps int) *history.Runner {
	t.Helper()
	o := history.RandomSettings(seed)
	r := history.NewRunner(o)
	for g := history.NewGenerator(o); r.Err == nil && r.Counts.Steps < int64(steps); {
		r.Do(g.Next(r))
	}
	if r.Err != nil {
		t.Fatalf("-seed=%d: %v", seed, r.Err)
	}
	return r
}

// transferable reports whether a table has rows, which do not expire, and types that Kudu knows.
func transferable(table *oribi.Table) bool {
	p := table.Properties()
	return checkTypes(table.Schema()) == nil && len(table.Layout().RowSets) > 0 && p.Expiry == (oribi.Expiry{})
}

func exportEquals(t *testing.T, r *rand.Rand, table *oribi.Table, commits []model.Commit) {
	t.Helper()
	fsys, d, result := exported(t, table)
	if result.RowSets == 0 || len(d.Tablets()) != 1 || d.Tablets()[0].Table != table.Name() {
		t.Errorf("result %+v, tablets %+v", result, d.Tablets())
	}
	if s, err := d.Sizes(t.Context(), &d.Tablets()[0]); err != nil || s.Rows != result.Rows ||
		s.Bytes != result.Bytes || s.RowSets != result.RowSets {
		t.Errorf("sizes %+v, result %+v, %v", s, result, err)
	}
	about, err := d.Describe(result.Tablet)
	if err != nil || about.HistorySec == nil || *about.HistorySec != seconds(table.Properties().History) {
		t.Errorf("%+v, %v", about, err)
	}
	equal(t, r, table, commits, d, result.Tablet)
	must.Fail(t, must.Err(Export(t.Context(), table, "/ts", ExportOptions{FS: fsys})),
		fs.ErrExist, "into an existing directory")
}

// exported exports a table to "/ts" of a new file system, and checks the directory.
func exported(t *testing.T, table *oribi.Table) (vfs.FS, *kudu.Directory, Result) {
	t.Helper()
	fsys := vfs.NewMem()
	result := must.Get(Export(t.Context(), table, "/ts", ExportOptions{FS: fsys}))(t)
	d := must.Get(kudu.Open("/ts", kudu.Options{FS: fsys}))(t)
	verified(t, d)
	return fsys, d, result
}

// verified checks that a directory has no defect.
func verified(t *testing.T, d *kudu.Directory) {
	t.Helper()
	must.Do(t, d.Verify(t.Context(), func(f kudu.Finding) { t.Errorf("finding %+v", f) }))
}

// equal compares a tablet with a table, at the timestamps of some commits.
func equal(t *testing.T, r *rand.Rand, table *oribi.Table, commits []model.Commit, d *kudu.Directory, tablet string) {
	t.Helper()
	from := must.Get(d.Open(t.Context(), tablet))(t)
	defer from.Close()
	times := []mvcc.Timestamp{commits[len(commits)-1].TS}
	for range 3 {
		times = append(times, commits[r.IntN(len(commits))].TS-mvcc.Timestamp(r.IntN(2)))
	}
	floor := table.Properties().HistoryFloor
	for _, ts := range times {
		if ts < floor {
			continue
		}
		want, got := tableRows(t, table, oribi.AsOf(ts)), kuduRows(t, from, ts)
		must.Equal(t, got, want, uint64(ts))
	}
}

func tableRows(t *testing.T, table *oribi.Table, o ...oribi.ScanOption) (rows []string) {
	t.Helper()
	for b, err := range table.Scan(t.Context(), o...).Batches() {
		must.Do(t, err)
		rows = appendRows(rows, table.Schema().Columns, b)
	}
	return rows
}

func kuduRows(t *testing.T, table *kudu.Table, ts mvcc.Timestamp) (rows []string) {
	t.Helper()
	var cols []int
	for i := range table.Schema.Columns {
		cols = append(cols, i)
	}
	it := must.Get(table.Scan(scan.Options{Columns: cols, Snapshot: mvcc.AsOf(ts)}, true))(t)
	for it.Next() {
		rows = appendRows(rows, table.Schema.Columns, it.Batch())
	}
	must.Do(t, it.Close())
	return rows
}

func appendRows(rows []string, columns []schema.Column, b *batch.RecordBatch) []string {
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		var cells [][]byte
		for _, v := range b.Columns {
			cells = append(cells, v.Cell(i))
		}
		rows = append(rows, string(celltext.AppendObject(nil, columns, cells)))
	}
	return rows
}
