package storetest

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// A column that a major compaction has rewritten is stale in the row file, which remains. Rows are read
// from both, again from the cache, and after the column was rewritten once more.
func TestRowsWithAStaleColumn(t *testing.T) {
	r := seedtest.Rand(t)
	store := must.Get(oribi.Open("/stale", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := tableOf(t, store, "t", "k*:int64 a:int64? b:int64 c:int64 s:string")
	const rows = 66_000 // enough for a row file
	values := make([]any, rows)
	row := func(k int) oribi.Row {
		x := uint64(k+1) * 0x9E3779B97F4A7C15
		return oribi.Row{"k": int64(k), "a": values[k], "b": int64(x >> 40), "c": int64(x >> 20 & 0xfffff), "s": fmt.Sprintf("%016x%016x%08x", x, x*x, x>>32*x)}
	}
	b := store.NewBatch()
	for k := range rows {
		values[k] = r.Int64N(1000)
		b.Insert(table, row(k))
	}
	must.Get(b.Commit(t.Context()))(t)
	must.Do(t, table.Flush(t.Context()))
	file := table.RowSets()[0].RowFile
	if file == 0 {
		t.Fatal("there is no row file")
	}
	for round := range 3 {
		b := store.NewBatch()
		var changed []int
		for range 50 {
			k := r.IntN(rows)
			if values[k] = r.Int64(); r.IntN(5) == 0 {
				values[k] = nil
			}
			b.Update(table, oribi.Row{"k": k, "a": values[k]})
			changed = append(changed, k, r.IntN(rows))
		}
		must.Get(b.Commit(t.Context()))(t)
		must.Get(table.FlushDeltas(t.Context()))(t)
		must.Get(table.CompactMajor(t.Context(), "a"))(t)
		must.Equal(t, table.RowSets()[0].RowFile, file, "round", round, "row file")
		for range 3 {
			for _, k := range changed {
				must.Equal(t, must.Get(table.Get(t.Context(), k))(t), row(k), "round", round)
			}
		}
	}
}
