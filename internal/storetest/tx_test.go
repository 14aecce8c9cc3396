package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// txStore opens a store in memory with a table of two int64 columns, key k and value v.
func txStore(t *testing.T) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(oribi.Open("/tx", &oribi.Options{FS: vfs.NewMem(), Manual: true, RowSetBytes: 1 << 12}))(t)
	t.Cleanup(func() { store.Close() })
	return store, numbersTable(t, store, "numbers")
}

func number(k, v int64) oribi.Row { return oribi.Row{"k": k, "v": v} }

// put commits rows of the given values.
func put(t testing.TB, store *oribi.Store, table *oribi.Table, rows map[int64]int64) mvcc.Timestamp {
	t.Helper()
	b := store.NewBatch()
	for k, v := range rows {
		b.Upsert(table, number(k, v))
	}
	return must.Get(b.Commit(context.Background(), oribi.NoSync))(t)
}

func begin(t testing.TB, store *oribi.Store) *oribi.Tx {
	t.Helper()
	tx := must.Get(store.Begin(context.Background()))(t)
	t.Cleanup(tx.Rollback)
	return tx
}

// numbersOf collects rows of key k and value v.
func numbersOf(rows iter.Seq2[oribi.Row, error]) (map[int64]int64, error) {
	out := map[int64]int64{}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		out[row["k"].(int64)] = row["v"].(int64)
	}
	return out, nil
}

// The caller may compact and change each batch of a scan, also where the transaction has written
// rows between the rows of the table.
func TestBatchesOfATransactionMayBeChanged(t *testing.T) {
	store, table := txStore(t)
	rows := map[int64]int64{}
	for k := range int64(100) {
		if k%3 != 0 {
			rows[k] = k
		}
	}
	put(t, store, table, rows)
	must.Do(t, table.Flush(context.Background()))
	tx := begin(t, store)
	for k := int64(0); k < 100; k += 5 {
		must.Do(t, tx.Upsert(table, number(k, -k)))
		rows[k] = -k
	}
	for _, options := range [][]oribi.RowsOption{nil, {oribi.Desc()}} {
		var got []int64
		for b := range must.All(t, tx.Scan(table, options...).Batches()) {
			b.Compact()
			keys, values := batch.Values[int64](b.Columns[0]), batch.Values[int64](b.Columns[1])
			for i, k := range keys[:b.Len] {
				must.Equal(t, values[i], rows[k], "key", k, "value")
			}
			got = append(got, keys[:b.Len]...)
			clear(keys)
		}
		want := slices.Sorted(maps.Keys(rows))
		if options != nil {
			slices.Reverse(want)
		}
		must.Equal(t, got, want, "keys")
	}
}

// A transaction has read the rows of a batch, also if its reader has changed the batch.
func TestTransactionHasReadBatchesThatItsReaderChanged(t *testing.T) {
	for change, conflict := range map[int64]bool{30: true, 31: false} {
		store, table := txStore(t)
		put(t, store, table, map[int64]int64{10: 1, 20: 2, 30: 3, 40: 4})
		tx := begin(t, store)
		for b := range must.All(t, tx.Scan(table, oribi.From(10), oribi.Limit(3)).Batches()) {
			b.Selection.Clear(b.Selection.Next(0))
			b.Compact()
			break
		}
		must.Do(t, tx.Upsert(table, number(500_000, 0)))
		put(t, store, table, map[int64]int64{change: -1})
		if _, err := tx.Commit(oribi.NoSync); errors.Is(err, oribi.ErrConflict) != conflict || (err == nil) == conflict {
			t.Errorf("change of %d: %v", change, err)
		}
	}
}

// More changes follow than the store remembers, so it finds the changes to the transaction's reads
// in the table.
func TestTransactionConflictsWithChangesThatTheStoreHasForgotten(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{10: 1, 20: 2, 30: 3, 40: 4})
	cases := []struct {
		name     string
		from, to int64 // the keys that the transaction reads
		conflict bool
	}{
		{"phantom", 20, 30, true},
		{"changed row", 30, 31, true},
		{"unchanged row", 20, 21, false},
		{"unchanged range", 10, 25, false},
	}
	var txs []*oribi.Tx
	for i, c := range cases {
		tx := begin(t, store)
		must.Get(numbersOf(tx.Scan(table, oribi.From(c.from), oribi.To(c.to)).Rows()))(t)
		must.Do(t, tx.Upsert(table, number(500_000+int64(i), 0)))
		txs = append(txs, tx)
	}
	put(t, store, table, map[int64]int64{25: -1, 30: -1})
	b := store.NewBatch()
	for i := range int64(300_000) {
		b.Upsert(table, number(1_000_000+i%10, i))
	}
	must.Get(b.Commit(ctx, oribi.NoSync))(t)
	for i, c := range cases {
		_, err := txs[i].Commit(oribi.NoSync)
		if c.conflict && !errors.Is(err, oribi.ErrConflict) || !c.conflict && err != nil {
			t.Errorf("%s: commit: %v, want conflict: %v", c.name, err, c.conflict)
		}
		n, err := table.Count(ctx, oribi.From(500_000+i), oribi.To(500_001+i))
		must.Do(t, err)
		must.Equal(t, n, map[bool]int64{false: 1}[c.conflict], c.name, "rows of the transaction")
	}
}

func TestScanOfATransactionThatEndsReturnsAnError(t *testing.T) {
	store, table := txStore(t)
	put(t, store, table, map[int64]int64{1: 1, 3: 3})
	tx := begin(t, store)
	for _, k := range []int64{2, 4} {
		must.Do(t, tx.Upsert(table, number(k, k)))
	}
	var last error
	for _, last = range tx.Scan(table).Rows() {
		tx.Rollback()
	}
	must.Fail(t, last, oribi.ErrTxEnded, "the error of the scan")
}

func TestEndedTransactionsReturnErrors(t *testing.T) {
	store, table := txStore(t)
	ctx := context.Background()
	tx := begin(t, store)
	must.Do(t, tx.Upsert(table, number(1, 1)))
	must.Get(tx.Commit())(t)
	_, getErr := tx.Get(table, 1)
	_, scanErr := numbersOf(tx.Scan(table).Rows())
	_, commitErr := tx.Commit()
	for _, err := range []error{getErr, scanErr, commitErr, tx.Upsert(table, number(2, 2))} {
		must.Fail(t, err, oribi.ErrTxEnded)
	}
	tx.Rollback()

	boom := errors.New("boom")
	err := store.Update(ctx, func(tx *oribi.Tx) error {
		if err := tx.Upsert(table, number(3, 3)); err != nil {
			return err
		}
		return boom
	})
	if n, _ := table.Count(ctx); err != boom || n != 1 {
		t.Errorf("update: %v, %d rows, want %v and 1 row", err, n, boom)
	}
	if info, err := store.Info(); err != nil || len(info.Snapshots) > 0 {
		t.Errorf("snapshots %v, %v, want none", info.Snapshots, err)
	}
}

// txRead is a read of a transaction: the rows of a range.
type txRead struct {
	from, to int64
	rows     map[int64]int64
}

// TestCommittedTransactionsReadTheStateBeforeTheirCommit runs transactions that read keys and
// ranges and write some keys, among write batches, ingests, flushes, and merges. Serializability in
// the order of timestamps means that all that a transaction has read was still so when it
// committed: as of one before its timestamp.
func TestCommittedTransactionsReadTheStateBeforeTheirCommit(t *testing.T) {
	store, table := txStore(t)
	seed := seedtest.Seed(t)
	ctx := context.Background()
	const keys = 40
	put(t, store, table, map[int64]int64{1: 1, 5: 5, 30: 30})
	type outcome struct {
		ts    mvcc.Timestamp
		reads []txRead
	}
	var mu sync.Mutex
	var outcomes []outcome
	conflicts := 0
	run := func(rng *rand.Rand) error {
		tx, err := store.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		var reads []txRead
		for range 1 + rng.IntN(3) {
			from := rng.Int64N(keys)
			r := txRead{from: from, to: from + 1, rows: map[int64]int64{}}
			if rng.IntN(2) == 0 {
				row, err := tx.Get(table, from)
				if err != nil && !errors.Is(err, oribi.ErrNotFound) {
					return err
				}
				if err == nil {
					r.rows[from] = row["v"].(int64)
				}
			} else {
				r.to = from + rng.Int64N(10)
				if r.rows, err = numbersOf(tx.Scan(table, oribi.From(r.from), oribi.To(r.to)).Rows()); err != nil {
					return err
				}
			}
			reads = append(reads, r)
		}
		if rng.IntN(8) == 0 { // however the goroutines are scheduled, some transactions conflict
			b := store.NewBatch()
			b.Upsert(table, number(reads[0].from, rng.Int64N(1000)))
			if _, err := b.Commit(ctx, oribi.NoSync); err != nil {
				return err
			}
		}
		for range 1 + rng.IntN(3) {
			k := rng.Int64N(keys)
			if rng.IntN(4) == 0 {
				err = tx.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": k})
			} else {
				err = tx.Upsert(table, number(k, rng.Int64N(1000)))
			}
			if err != nil {
				return err
			}
		}
		ts, err := tx.Commit(oribi.NoSync)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, oribi.ErrConflict):
			conflicts++
		case err != nil:
			return err
		default:
			outcomes = append(outcomes, outcome{ts, reads})
		}
		return nil
	}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, g))
			for i := range 300 {
				var err error
				switch n := rng.IntN(40); {
				case n == 0 && g == 0:
					err = table.Flush(ctx)
				case n == 1 && g == 0:
					err = table.Compact(ctx)
				case n == 2:
					_, err = table.DeleteRange(ctx, int64(i%keys), int64(i%keys+5))
				default:
					err = run(rng)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, o := range outcomes {
		for _, r := range o.reads {
			got, err := numbersOf(table.Scan(ctx, oribi.From(r.from), oribi.To(r.to), oribi.AsOf(o.ts-1)).Rows())
			must.Do(t, err)
			must.Equal(t, got, r.rows, "transaction at", o.ts, "read", r.from, r.to, "as", r.rows, "it was")
		}
	}
	if len(outcomes) < 100 || conflicts == 0 {
		t.Errorf("%d transactions committed, %d conflicted", len(outcomes), conflicts)
	}
}

// TestScansOfATransactionMatchAMap compares scans in a transaction with a map, with rows of the
// table and of the transaction in every order.
func TestScansOfATransactionMatchAMap(t *testing.T) {
	store, table := txStore(t)
	rng := seedtest.Rand(t)
	for range 40 {
		model := map[int64]int64{}
		must.Get(table.Truncate(context.Background()))(t)
		for range rng.IntN(30) {
			model[rng.Int64N(60)] = rng.Int64N(10)
		}
		put(t, store, table, model)
		if rng.IntN(2) == 0 {
			must.Do(t, table.Flush(context.Background()))
		}
		tx := begin(t, store)
		for range rng.IntN(30) {
			k, v := rng.Int64N(60), rng.Int64N(10)
			var err error
			if rng.IntN(3) == 0 {
				err = tx.Row(oribi.OpDeleteIgnore, table, oribi.Row{"k": k})
				delete(model, k)
			} else {
				err = tx.Upsert(table, number(k, v))
				model[k] = v
			}
			must.Do(t, err)
			if rng.IntN(4) == 0 {
				checkScan(t, rng, tx, table, model)
			}
		}
		checkScan(t, rng, tx, table, model)
		tx.Rollback()
	}
}

func checkScan(t *testing.T, rng *rand.Rand, tx *oribi.Tx, table *oribi.Table, model map[int64]int64) {
	t.Helper()
	from, to, least, limit, desc := rng.Int64N(60), rng.Int64N(70), rng.Int64N(10), rng.IntN(20), rng.IntN(2) == 0
	opts := []oribi.RowsOption{oribi.From(from), oribi.To(to),
		oribi.Where(oribi.Ge("v", least)), oribi.Limit(int64(limit))}
	if desc {
		opts = append(opts, oribi.Desc())
	}
	var want, got []string
	keys := slices.Sorted(maps.Keys(model))
	if desc {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if k >= from && k < to && model[k] >= least && len(want) < limit {
			want = append(want, fmt.Sprint(k, model[k]))
		}
	}
	for row := range must.All(t, tx.Scan(table, opts...).Rows()) {
		got = append(got, fmt.Sprint(row["k"], row["v"]))
	}
	must.Equal(t, got, want, from, to, "v >", least, "limit", limit, "descending", desc)
}

// A transaction pops rows at both ends of a queue and pushes others anywhere. Each scan finds the
// first row of a map.
func TestPopsInATransactionMatchAMap(t *testing.T) {
	store, table := txStore(t)
	rng := seedtest.Rand(t)
	for range 30 {
		must.Get(table.Truncate(context.Background()))(t)
		model := map[int64]int64{}
		for k := range 100 + rng.Int64N(300) {
			model[k] = k
		}
		put(t, store, table, model)
		if rng.IntN(2) == 0 {
			must.Do(t, table.Flush(context.Background()))
		}
		tx := begin(t, store)
		for step := range int64(400) {
			desc, from := rng.IntN(4) == 0, int64(0)
			var opts []oribi.RowsOption
			if desc {
				opts = append(opts, oribi.Desc())
			} else if rng.IntN(4) == 0 {
				from = rng.Int64N(400)
				opts = append(opts, oribi.From(from))
			}
			if rng.IntN(2) == 0 {
				opts = append(opts, oribi.Limit(1))
			}
			want, ok := int64(-1), false
			for k := range model {
				if k >= from && (!ok || k < want != desc) {
					want, ok = k, true
				}
			}
			found := false
			for row := range must.All(t, tx.Scan(table, opts...).Rows()) {
				must.Equal(t, row["k"].(int64), want, "step", step, "first row, descending", desc, "from", from)
				found = true
				break
			}
			must.Equal(t, found, ok, "there is a row")
			if found {
				must.Do(t, tx.Delete(table, oribi.Row{"k": want}))
				delete(model, want)
			}
			if rng.IntN(3) == 0 {
				k := rng.Int64N(500)
				must.Do(t, tx.Upsert(table, number(k, step)))
				model[k] = step
			}
		}
		got := must.Get(numbersOf(tx.Scan(table).Rows()))(t)
		must.Equal(t, len(got), len(model), "rows at the end")
		tx.Rollback()
	}
}
