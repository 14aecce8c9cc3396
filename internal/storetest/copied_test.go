package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

var copiedColumns = []schema.Column{
	{Name: "key", Type: schema.String},
	{Name: "n", Type: schema.Int64},
	{Name: "word", Type: schema.String},
	{Name: "text", Type: schema.String, Encoding: schema.Plain},
	{Name: "f", Type: schema.Double, Nullable: true},
}

func copiedRow(k, version int) oribi.Row {
	row := oribi.Row{"key": copiedKey(k), "n": int64(k*7919 + version), "word": fmt.Sprint("word ", (k/500+version)%5),
		"text": fmt.Sprint("text ", k*k), "f": float64(k) / 3}
	if k%11 < 3 {
		row["f"] = nil
	}
	return row
}

func copiedKey(k int) string { return fmt.Sprintf("key %06d", k) }

// copiedTable is a table of one rowset, which a merge has made of five, with most of their cblocks
// copied: the first two overlap at their ends, the fourth has few rows in the midst of the third,
// and some rows of the fifth have changes. It returns the newest version of each key that was
// inserted, −1 for deleted ones, and the timestamps of the commits.
func copiedTable(t *testing.T) (table *oribi.Table, versions map[int]int, commits []model.Commit) {
	store := must.Get(
		oribi.Open("/copied", &oribi.Options{FS: vfs.NewMem(), Manual: true, History: oribi.HistoryForever}))(t)
	t.Cleanup(func() { store.Close() })
	columns := must.Get(schema.New(copiedColumns, 1))(t)
	table = must.Get(store.CreateTable("t", columns))(t)
	versions = map[int]int{}
	commit := func(b *oribi.Batch) {
		ts := must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
		commits = append(commits, model.Commit{TS: ts})
	}
	for _, part := range []struct{ from, to, step int }{{0, 20_000, 2}, {19_001, 40_001, 2}, {40_002, 60_002, 2},
		{48_001, 48_021, 2}, {70_000, 80_000, 1}} {
		b := store.NewBatch()
		for k := part.from; k < part.to; k += part.step {
			b.Insert(table, copiedRow(k, 0))
			versions[k] = 0
		}
		commit(b)
		must.Do(t, table.Flush(t.Context()))
	}
	for _, range3 := range [3]int{78_000, 45_000, 10} {
		b := store.NewBatch()
		for k := range3; k < range3+60; k += 2 {
			if versions[k] = 1; k%3 == 0 {
				versions[k] = -1
				b.Delete(table, oribi.Row{"key": copiedKey(k)})
			} else {
				b.Update(table, copiedRow(k, 1))
			}
		}
		commit(b)
	}
	var all compaction.Choice
	for _, r := range table.Layout().RowSets {
		all.RowSets = append(all.RowSets, r.ID)
	}
	must.Do(t, table.Merge(t.Context(), all))
	must.Equal(t, len(table.Layout().RowSets), 1, "rowsets after the merge")
	return table, versions, commits
}

// After a merge that copied cblocks, a lookup finds each key, and no other, a range begins at its
// first key, and the rows are unchanged.
func TestCopiedBlocksAreFoundByKey(t *testing.T) {
	table, versions, _ := copiedTable(t)
	check := func(k int) {
		version, inserted := versions[k]
		live := inserted && version >= 0
		row, err := table.Get(t.Context(), oribi.Row{"key": copiedKey(k)})
		if live != (err == nil) {
			t.Fatalf("key %d: %v", k, err)
		}
		if live && fmt.Sprint(row) != fmt.Sprint(copiedRow(k, version)) {
			t.Fatalf("key %d: %v, want %v", k, row, copiedRow(k, version))
		}
	}
	stride := seedtest.Stride(20)
	for k := 0; k < 80_002; k += stride {
		check(k)
	}
	keys := make([]int, 0, len(versions))
	for k, version := range versions {
		if version >= 0 {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	rng := seedtest.Rand(t)
	for range 50 {
		from := rng.IntN(80_000)
		at, _ := slices.BinarySearch(keys, from)
		for row, err := range table.Scan(t.Context(), oribi.From(copiedKey(from)), oribi.Limit(3)).Rows() {
			if err != nil || row["key"] != copiedKey(keys[at]) {
				t.Fatalf("from key %d: %v, %v, want key %d", from, row["key"], err, keys[at])
			}
			at++
		}
	}
}

// Kudu reads the rows of such a merge, and finds each key through bloom file and key index.
func TestKuduServesCopiedBlocks(t *testing.T) {
	scan := kuduScan(t)
	table, _, commits := copiedTable(t)
	kuduServes(t, scan, rand.New(rand.NewPCG(seedtest.Seed(t), 1)), table, commits)
}
