package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// workersRows is the number of rows of workersTable, k from 0 on, of which the first are ingested.
const (
	workersRows   = 159_000
	ingestedOfAll = 150_000
)

// workersTable returns a table with several parts of one rowset, and of rows in memory.
func workersTable(t *testing.T) *oribi.Table {
	t.Helper()
	store := must.Get(
		oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), History: oribi.HistoryForever, Manual: true}))(t)
	t.Cleanup(func() { store.Close() })
	table := numbersTable(t, store, "numbers")
	keys := make([]int64, ingestedOfAll)
	for i := range keys {
		keys[i] = int64(i)
	}
	must.Get2(table.Ingest(t.Context(), steps(nil, numbers(keys...))))(t)
	b := store.NewBatch()
	for k := len(keys); k < workersRows; k++ {
		b.Insert(table, oribi.Row{"k": k, "v": 10 * k})
	}
	must.Get(b.Commit(t.Context()))(t)
	return table
}

func TestWorkersReadEachRowOnce(t *testing.T) {
	table := workersTable(t)
	for _, workers := range []int{-1, 0, 1, 2, 3, 100} {
		seen := make([]int, workersRows)
		for b := range must.All(t, table.Scan(t.Context(), oribi.Workers(workers)).Batches()) {
			keys := batch.Values[int64](b.Columns[0])
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				seen[keys[i]]++
				must.Equal(t, batch.Values[int64](b.Columns[1])[i], 10*keys[i], workers, "workers: row", keys[i])
			}
		}
		for k, n := range seen {
			must.Equal(t, n, 1, workers, "workers: row", k, "times")
		}
		n, err := table.Count(t.Context(), oribi.Workers(workers), oribi.From(1000), oribi.Where(oribi.Ne("v", 20_000)))
		must.Do(t, err)
		must.Equal(t, n, workersRows-1001, workers, "workers: rows")
	}
}

func TestWorkersStop(t *testing.T) {
	table := workersTable(t)
	n := 0
	for b := range must.All(t, table.Scan(t.Context(), oribi.Workers(3), oribi.Limit(70_000)).Batches()) {
		n += b.Selected()
	}
	must.Equal(t, n, 70_000, "rows with a limit")
	for range table.Scan(t.Context(), oribi.Workers(3)).Batches() {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	for _, err = range table.Scan(ctx, oribi.Workers(3)).Batches() {
		cancel()
	}
	must.Fail(t, err, context.Canceled, "canceled")
	must.Fail(t, must.Err(table.Count(ctx, oribi.Workers(3), oribi.From(1))), context.Canceled, "canceled count")
	for _, err = range table.Scan(t.Context(), oribi.Workers(3), oribi.Desc()).Batches() {
	}
	must.Refuse(t, err, "Workers with Desc")
	must.Contain(t, err.Error(), "Workers", "Workers with Desc")
}

// Groups that need more memory than the share of one goroutine, but less than the whole limit, are
// computed again by a single goroutine.
func TestWorkersBeginAgainIfGroupsTakeTooMuchMemory(t *testing.T) {
	const rows = 6000 // in memory: two windows
	store, table := aggregateTable(t, &oribi.Options{MemoryLimit: 16 << 20})
	b := store.NewBatch()
	for i := range rows {
		b.Insert(table, oribi.Row{"k": i, "s": fmt.Sprintf("%0500d", i)})
		if b.Len() == 1000 {
			must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
		}
	}
	r, err := table.Aggregate(t.Context(), []oribi.Aggregate{oribi.CountRows()}, oribi.GroupBy("s"), oribi.Workers(2))
	must.Do(t, err)
	must.Equal(t, len(r.Groups), rows, "groups")
}
