package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
)

// crew runs goroutines that work on a store until they are stopped or one of them finds an error.
type crew struct {
	t    *testing.T
	done chan struct{}
	once sync.Once
	wg   sync.WaitGroup
	seed uint64
	n    uint64
}

func newCrew(t *testing.T) *crew {
	return &crew{t: t, done: make(chan struct{}), seed: seedtest.Seed(t)}
}

// each starts goroutines that call work repeatedly until the crew stops.
func (c *crew) each(goroutines int, work func(r *rand.Rand) error) {
	for range goroutines {
		c.n++
		r := rand.New(rand.NewPCG(c.seed, c.n))
		c.wg.Go(func() {
			for {
				select {
				case <-c.done:
					return
				default:
				}
				if err := work(r); err != nil {
					c.t.Error(err)
					c.stop()
				}
			}
		})
	}
}

// stop ends the work of all goroutines.
func (c *crew) stop() { c.once.Do(func() { close(c.done) }) }

// work lets the goroutines run for a while, or until stop, and waits for them.
func (c *crew) work(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.done:
	}
	c.stop()
	c.wg.Wait()
}

// busyStore opens a store with frequent flushes and compactions, and its table numbers.
func busyStore(t *testing.T, fsys vfs.FS) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: fsys, History: oribi.HistoryForever, FlushBytes: 1 << 15, RowSetBytes: 1 << 14}))(t)
	return store, numbersTable(t, store, "numbers")
}

const pairs = 60

// writePair sets rows 2p and 2p+1 to numbers whose sum is 0, or deletes both.
func writePair(store *oribi.Store, table *oribi.Table, r *rand.Rand, opts ...oribi.CommitOption) error {
	b := store.NewBatch()
	for range 1 + r.IntN(3) {
		p, v := 2*r.IntN(pairs), r.Int64N(1000)
		if r.IntN(4) == 0 {
			b.DeleteIgnore(table, oribi.Row{"k": p})
			b.DeleteIgnore(table, oribi.Row{"k": p + 1})
			continue
		}
		b.Upsert(table, oribi.Row{"k": p, "v": v})
		b.Upsert(table, oribi.Row{"k": p + 1, "v": -v})
	}
	_, err := b.Commit(context.Background(), opts...)
	return err
}

// readPairs scans, checks that both rows of each pair are present or absent, and returns the rows.
func readPairs(table *oribi.Table, opts ...oribi.ScanOption) (map[int64]int64, error) {
	rows := map[int64]int64{}
	for row, err := range table.Scan(context.Background(), opts...).Rows() {
		if err != nil {
			return nil, err
		}
		k := row["k"].(int64)
		if _, twice := rows[k]; twice {
			return nil, fmt.Errorf("row %d occurs twice", k)
		}
		rows[k] = row["v"].(int64)
	}
	for k, v := range rows {
		if other, ok := rows[k^1]; !ok || other != -v {
			return nil, fmt.Errorf("row %d is %d, row %d is %d (there: %v)", k, v, k^1, other, ok)
		}
	}
	return rows, nil
}

// Writers on the same rows, flushes, merges and compactions run concurrently. Each scan, at the
// newest or at a given timestamp, sees all or nothing of each batch; repeated reads at one
// timestamp return the same rows.
func TestSnapshotsShowWholeBatches(t *testing.T) {
	store, table := busyStore(t, vfs.NewMem())
	ctx := context.Background()
	c := newCrew(t)
	var commits, scans, works atomic.Int64
	c.each(3, func(r *rand.Rand) error {
		commits.Add(1)
		return writePair(store, table, r, oribi.NoSync)
	})
	c.each(1, func(r *rand.Rand) error { commits.Add(1); return writePair(store, table, r) })
	c.each(2, func(r *rand.Rand) error {
		scans.Add(1)
		opts := []oribi.ScanOption{}
		if r.IntN(2) == 0 {
			opts = append(opts, oribi.AnyOrder())
		}
		if _, err := readPairs(table, opts...); err != nil {
			return fmt.Errorf("a scan: %w", err)
		}
		ts := store.Visible()
		first, err := readPairs(table, oribi.AsOf(ts))
		if err != nil {
			return fmt.Errorf("a scan as of %v: %w", ts, err)
		}
		p := int64(2 * r.IntN(pairs))
		row, err := table.Get(ctx, p, oribi.AsOf(ts))
		if v, ok := first[p]; ok != (err == nil) || ok && row["v"] != v {
			return fmt.Errorf("row %d as of %v: the scan says %d, %v, Get says %v, %v", p, ts, v, ok, row, err)
		}
		again, err := readPairs(table, oribi.AsOf(ts))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(first) {
			return fmt.Errorf("as of %v: first %v, then %v (%v)", ts, first, again, err)
		}
		return nil
	})
	c.each(1, func(r *rand.Rand) error {
		works.Add(1)
		return moveRows(table, r)
	})
	c.work(proofTime(200 * time.Millisecond))
	t.Logf("%d commits, %d scans, %d flushes and compactions", commits.Load(), scans.Load(), works.Load())
	must.Do(t, store.Verify(ctx, func(f oribi.Finding) { t.Errorf("verify: %+v", f) }))
	must.Do(t, store.Close())
}

// A scan that started before a compaction, or before its table was dropped, returns the rows of its
// snapshot.
func TestScanOutlivesCompactionAndDrop(t *testing.T) {
	ctx := context.Background()
	store, table := busyStore(t, vfs.NewMem())
	defer store.Close()
	for from := 0; from < 30000; from += 6000 {
		fillNumbers(t, store, table, from, from+6000)
		must.Do(t, table.Flush(ctx))
	}
	scanAcross(t, table, "compaction", func() error { return table.Compact(ctx) })
	scanAcross(t, table, "drop", func() error { return store.DropTable("numbers") })
}

// scanAcross calls do after the first row of a scan.
func scanAcross(t *testing.T, table *oribi.Table, what string, do func() error) {
	t.Helper()
	var n int64
	for row, err := range table.Scan(context.Background()).Rows() {
		must.Do(t, err, what, "row", n)
		if row["k"] != n || row["v"] != -n {
			t.Fatalf("%s: row %d is %v", what, n, row)
		}
		if n == 0 {
			must.Do(t, do())
		}
		n++
	}
	must.Equal(t, n, 30000, what, "rows")
}

func TestConcurrentInsertsOfAKeyHaveOneWinner(t *testing.T) {
	store, table := busyStore(t, vfs.NewMem())
	defer store.Close()
	const writers, keys = 6, 400
	won := make([]atomic.Int64, keys)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for _, k := range rand.New(rand.NewPCG(uint64(w), 1)).Perm(keys) {
				b := store.NewBatch()
				b.Insert(table, oribi.Row{"k": k, "v": w})
				switch _, err := b.Commit(context.Background(), oribi.NoSync); {
				case err == nil && !won[k].CompareAndSwap(0, int64(w)+1):
					t.Errorf("key %d was inserted twice", k)
				case err != nil && !errors.Is(err, oribi.ErrKeyExists):
					t.Errorf("key %d: %v", k, err)
				}
			}
		})
	}
	wg.Wait()
	for k := range won {
		row, err := table.Get(context.Background(), k)
		if err != nil || row["v"] != won[k].Load()-1 {
			t.Errorf("key %d: %v, %v, won by %d", k, row, err, won[k].Load()-1)
		}
	}
}

// Close is called during reads, writes and compactions. Every call returns, with ErrClosed or its
// usual result; every acknowledged batch is in the reopened store.
func TestCloseWithConcurrentReadersWritersAndCompactions(t *testing.T) {
	rounds := seedtest.Rounds(4, 2)
	for round := range rounds {
		closeWhileRunning(t, 1+100*round)
	}
}

// closeWhileRunning closes a store once a number of batches have been acknowledged.
func closeWhileRunning(t *testing.T, after int) {
	ctx := context.Background()
	mem := vfs.NewMem()
	store, table := busyStore(t, mem)
	var next atomic.Int64
	var mu sync.Mutex
	var acknowledged []int64
	acknowledgements := make(chan struct{}, after)
	c := newCrew(t)
	closed := func(err error) error {
		if errors.Is(err, oribi.ErrClosed) || errors.Is(err, oribi.ErrNoTable) || errors.Is(err, oribi.ErrNotFound) {
			return nil
		}
		return err
	}
	for _, opts := range [][]oribi.CommitOption{nil, {oribi.NoSync}} {
		c.each(2, func(r *rand.Rand) error {
			k := next.Add(1)
			b := store.NewBatch()
			b.Insert(table, oribi.Row{"k": k, "v": -k})
			_, err := b.Commit(ctx, opts...)
			if err == nil {
				mu.Lock()
				acknowledged = append(acknowledged, k)
				mu.Unlock()
				select {
				case acknowledgements <- struct{}{}:
				default:
				}
			}
			return closed(err)
		})
	}
	c.each(1, func(r *rand.Rand) error {
		for _, err := range table.Scan(ctx).Rows() {
			if err != nil {
				return closed(err)
			}
		}
		_, err := table.Get(ctx, 1)
		return closed(err)
	})
	c.each(1, func(r *rand.Rand) error { return closed(table.Flush(ctx)) })
	c.each(1, func(r *rand.Rand) error { return closed(table.Compact(ctx)) })
	for acks := 0; acks < after; acks++ {
		select {
		case <-acknowledgements:
		case <-c.done:
			acks = after
		}
	}
	within(t, minute, func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	c.stop()
	c.wg.Wait()
	must.Do(t, store.Close(), "a second Close")
	store, table = busyStore(t, mem)
	defer store.Close()
	for _, k := range acknowledged {
		if row, err := table.Get(ctx, k); err != nil || row["v"] != -k {
			t.Fatalf("row %d: %v, %v", k, row, err)
		}
	}
}

// registerInput is an operation on one row, registerOutput its result.
type registerInput struct {
	kind  string // read, upsert, insert, update, delete; swap: an update if the value is old
	key   int
	value int64
	old   int64
}

type registerOutput struct {
	value int64 // read: absent if there is no row
	ok    bool
}

const absent = int64(-1)

// register is the sequential specification of one row, for a linearizability checker.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(registerInput).key
			byKey[key] = append(byKey[key], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range byKey {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return absent },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(int64), input.(registerInput), output.(registerOutput)
		switch in.kind {
		case "read":
			return out.value == s, s
		case "upsert":
			return out.ok, in.value
		case "insert":
			if s != absent {
				return !out.ok, s
			}
			return out.ok, in.value
		case "update":
			if s == absent {
				return !out.ok, s
			}
			return out.ok, in.value
		case "swap":
			if s != in.old || s == absent {
				return !out.ok, s
			}
			return out.ok, in.value
		}
		return out.ok == (s != absent), absent
	},
}

// Reads and writes of single rows by many goroutines, with concurrent flushes and compactions, are
// linearizable: each appears to take effect at one point between its call and its return.
func TestRowsAreLinearizable(t *testing.T) {
	store, table := busyStore(t, vfs.NewMem())
	defer store.Close()
	c := newCrew(t)
	var clock atomic.Int64
	var mu sync.Mutex
	var history []porcupine.Operation
	var client, swaps atomic.Int64
	var newest [8]atomic.Int64 // by key, approximate
	c.each(5, func(r *rand.Rand) error {
		id := int(client.Add(1))
		in := registerInput{key: r.IntN(8),
			kind:  []string{"read", "read", "upsert", "insert", "update", "swap", "swap", "delete"}[r.IntN(8)],
			value: r.Int64N(1 << 40)}
		in.old = newest[in.key].Load()
		op := porcupine.Operation{ClientId: id, Input: in, Call: clock.Add(1)}
		out, err := applyToRow(store, table, in, r.IntN(2) == 0)
		op.Output, op.Return = out, clock.Add(1)
		if in.kind == "read" {
			newest[in.key].Store(out.value)
		} else if out.ok {
			newest[in.key].Store(in.value)
			if in.kind == "swap" {
				swaps.Add(1)
			}
		}
		mu.Lock()
		history = append(history, op)
		full := len(history) >= 6000
		mu.Unlock()
		if full {
			c.stop()
		}
		return err
	})
	c.each(1, func(r *rand.Rand) error { return moveRows(table, r) })
	c.work(proofTime(200 * time.Millisecond))
	must.Equal(t, porcupine.CheckOperationsTimeout(register, history, minute), porcupine.Ok,
		len(history), "operations")
	t.Logf("%d operations, %d swaps", len(history), swaps.Load())
}

// applyToRow executes one operation.
func applyToRow(store *oribi.Store, table *oribi.Table, in registerInput, sync bool) (registerOutput, error) {
	ctx := context.Background()
	if in.kind == "read" {
		row, err := table.Get(ctx, in.key)
		if errors.Is(err, oribi.ErrNotFound) {
			return registerOutput{value: absent}, nil
		}
		if err != nil {
			return registerOutput{}, err
		}
		return registerOutput{value: row["v"].(int64)}, nil
	}
	b := store.NewBatch()
	row := oribi.Row{"k": in.key, "v": in.value}
	switch in.kind {
	case "upsert":
		b.Upsert(table, row)
	case "insert":
		b.Insert(table, row)
	case "update":
		b.Update(table, row)
	case "swap":
		b.If(table, oribi.Row{"k": in.key}, oribi.Eq("v", in.old))
		b.Update(table, row)
	case "delete":
		b.Delete(table, oribi.Row{"k": in.key})
	}
	opts := []oribi.CommitOption{oribi.NoSync}
	if sync {
		opts = nil
	}
	_, err := b.Commit(ctx, opts...)
	if errors.Is(err, oribi.ErrKeyExists) || errors.Is(err, oribi.ErrNotFound) || errors.Is(err, oribi.ErrConflict) {
		return registerOutput{}, nil
	}
	return registerOutput{ok: err == nil}, err
}
