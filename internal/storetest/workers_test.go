package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/vfs"
)

// workersTable returns a table of 150,000 ingested rows, several parts of one rowset, and one row
// in memory.
func workersTable(t *testing.T) *oribi.Table {
	t.Helper()
	store, err := oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), History: oribi.HistoryForever, Manual: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	table := numbersTable(t, store, "numbers")
	keys := make([]int64, 150_000)
	for i := range keys {
		keys[i] = int64(i)
	}
	if _, _, err := table.Ingest(t.Context(), steps(nil, numbers(keys...))); err != nil {
		t.Fatal(err)
	}
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": len(keys), "v": 10 * len(keys)})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestWorkersReadEachRowOnce(t *testing.T) {
	table := workersTable(t)
	for _, workers := range []int{-1, 0, 1, 2, 3, 100} {
		seen := make([]int, 150_001)
		for b, err := range table.Scan(t.Context(), oribi.Workers(workers)).Batches() {
			if err != nil {
				t.Fatal(err)
			}
			keys := batch.Values[int64](b.Columns[0])
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				if seen[keys[i]]++; batch.Values[int64](b.Columns[1])[i] != 10*keys[i] {
					t.Fatalf("%d workers: row %d", workers, keys[i])
				}
			}
		}
		for k, n := range seen {
			if n != 1 {
				t.Fatalf("%d workers: row %d %d times", workers, k, n)
			}
		}
		n, err := table.Count(t.Context(), oribi.Workers(workers), oribi.From(1000), oribi.Where(oribi.Ne("v", 20_000)))
		if err != nil || n != 149_000 {
			t.Fatalf("%d workers: %d rows, %v", workers, n, err)
		}
	}
}

func TestWorkersStop(t *testing.T) {
	table := workersTable(t)
	n := 0
	for b, err := range table.Scan(t.Context(), oribi.Workers(3), oribi.Limit(70_000)).Batches() {
		if err != nil {
			t.Fatal(err)
		}
		n += b.Selected()
	}
	if n != 70_000 {
		t.Errorf("Limit: %d rows", n)
	}
	for range table.Scan(t.Context(), oribi.Workers(3)).Batches() {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	for _, err = range table.Scan(ctx, oribi.Workers(3)).Batches() {
		cancel()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := table.Count(ctx, oribi.Workers(3), oribi.From(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled count: %v", err)
	}
	for _, err = range table.Scan(t.Context(), oribi.Workers(3), oribi.Desc()).Batches() {
	}
	if err == nil || !strings.Contains(err.Error(), "Workers") {
		t.Errorf("Workers with Desc: %v", err)
	}
}
