package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
)

// While batches delete and reinsert rows, and flushes and compactions of all kinds move them, a
// diff equals the difference between the scans of its two ends, and a history does not change.
func TestReadsOfVersionsDuringCompaction(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	const keys, rounds = 40, 150
	stop := make(chan struct{})
	var mover sync.WaitGroup
	mover.Go(func() {
		work := []func(context.Context) error{table.Flush, table.Compact}
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := work[i%len(work)](ctx); err != nil {
				t.Error(err)
				return
			}
		}
	})
	seed := seedtest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	b := store.NewBatch()
	var at []mvcc.Timestamp
	var first map[int]string // histories as of the first half
	for round := range rounds {
		for range 1 + r.IntN(6) {
			k := r.IntN(keys)
			b.Upsert(table, oribi.Row{"k": k, "v": round})
			if r.IntN(2) == 0 {
				b.Delete(table, oribi.Row{"k": k})
			}
			if r.IntN(3) == 0 {
				b.Upsert(table, oribi.Row{"k": k, "v": -round})
			}
		}
		ts := must.Get(b.Commit(ctx, oribi.NoSync))(t)
		at = append(at, ts)
		from, to := at[r.IntN(len(at))], at[r.IntN(len(at))]
		from, to = min(from, to), max(from, to)
		rows := rowsAt(t, table, from)
		for d := range must.All(t, table.Diff(ctx, from, to)) {
			k := d.KeyRow()["k"]
			if was, there := rows[k]; there != (d.Before != nil) || there && was != d.BeforeRow()["v"] {
				t.Fatalf("key %v was %v, the diff says %v", k, was, d.BeforeRow())
			}
			if delete(rows, k); d.After != nil {
				rows[k] = d.AfterRow()["v"]
			}
		}
		must.Equal(t, fmt.Sprint(rows), fmt.Sprint(rowsAt(t, table, to)), "round", round, from, "and the diff")
		if round < rounds/2 {
			continue
		}
		histories := map[int]string{}
		for k := range keys {
			for v, err := range table.History(ctx, k, oribi.AsOf(at[rounds/2])) {
				if err != nil {
					break // no version so far
				}
				histories[k] += fmt.Sprint(v.Timestamp, v.Kind, v.Row(), ";")
			}
		}
		if first == nil {
			first = histories
		} else if fmt.Sprint(first) != fmt.Sprint(histories) {
			t.Fatalf("round %d: histories changed from\n%v to\n%v", round, first, histories)
		}
	}
	close(stop)
	mover.Wait()
}

// rowsAt returns v by k as of a timestamp.
func rowsAt(t *testing.T, table *oribi.Table, ts mvcc.Timestamp) map[any]any {
	t.Helper()
	rows := map[any]any{}
	for row := range must.All(t, table.Scan(context.Background(), oribi.AsOf(ts)).Rows()) {
		rows[row["k"]] = row["v"]
	}
	return rows
}
