package storetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Plan: random histories in which every tenth step makes a checkpoint, opens it, compares it with
// the model as of many timestamps, verifies it and writes to it.
func TestCheckpointsOfHistoriesAgreeWithModel(t *testing.T) {
	end := time.Now().Add(proofTime(6 * time.Second))
	var total history.Counts
	for seed := seedtest.Seed(t); time.Now().Before(end); seed++ {
		settings := history.SmallSettings(seed)
		r, g := history.NewRunner(settings), history.NewCopies(settings)
		for r.Err == nil && r.Counts.Steps < 300 && time.Now().Before(end) {
			r.Do(g.Next(r))
		}
		r.Close()
		total.Add(r.Counts)
		if r.Err != nil {
			t.Fatal(failure(seed, r.Err, history.Shrink(r.Script, 20*time.Second)))
		}
	}
	t.Logf("%+v", total)
	if total.Copies == 0 {
		t.Error("no checkpoint was made")
	}
}

// sameAsOf returns an error unless two stores have the same tables with the same rows as of some
// timestamps.
func sameAsOf(a, b *oribi.Store, times ...mvcc.Timestamp) error {
	for _, t := range a.Tables() {
		other, err := b.Table(t.Name())
		if err != nil {
			return err
		}
		for _, ts := range times {
			want, _, err := model.StoreDigest(context.Background(), t, ts)
			if err != nil {
				return err
			}
			if got, rows, err := model.StoreDigest(context.Background(), other, ts); err != nil || got != want {
				return fmt.Errorf("table %s as of %v: %d other rows, %v", t.Name(), ts, rows, err)
			}
		}
	}
	if n, m := len(a.Tables()), len(b.Tables()); n != m {
		return fmt.Errorf("%d tables, want %d", m, n)
	}
	return nil
}

// openCopy opens a checkpoint, checks that it was closed, and verifies it.
func openCopy(fsys vfs.FS, dir string) (*oribi.Store, error) {
	s, err := oribi.Open(dir, &oribi.Options{FS: fsys, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	err = model.Verified(s)
	if err == nil && !s.Recovery().Clean {
		err = fmt.Errorf("the copy was not closed: %+v", s.Recovery())
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Plan: writers commit to two tables in one batch, another ingests ever higher keys into a third, a
// fourth alters tables, while flushes and compactions run in the background. Meanwhile checkpoints
// are made. Each is verified, and shows as of its timestamp, and as of earlier ones, what the store
// shows as of them, in all tables. A write batch is in both tables or in none.
func TestCheckpointsWithConcurrentWriters(t *testing.T) {
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: mem, History: oribi.HistoryForever, FlushBytes: 1 << 14,
			RowSetBytes: 1 << 13, LogSegmentBytes: 1 << 13}))(t)
	defer store.Close()
	left, right, ingested := numbersTable(t, store, "left"), numbersTable(t, store, "right"),
		numbersTable(t, store, "ingested")
	var mu sync.Mutex
	var times []mvcc.Timestamp
	seen := func(ts mvcc.Timestamp) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, ts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var wg sync.WaitGroup
	work := func(seed uint64, do func(r *rand.Rand, n int) error) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for n := 0; ctx.Err() == nil; n++ {
				if err := do(r, n); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 2 {
		work(uint64(i), func(r *rand.Rand, n int) error {
			b := store.NewBatch()
			for range 1 + r.IntN(20) {
				row := oribi.Row{"k": r.IntN(2000), "v": r.IntN(1000)}
				if r.IntN(4) == 0 {
					delete(row, "v")
					b.DeleteIgnore(left, row)
					b.DeleteIgnore(right, row)
					continue
				}
				b.Upsert(left, row)
				b.Upsert(right, row)
			}
			var opts []oribi.CommitOption
			if r.IntN(2) == 0 {
				opts = append(opts, oribi.NoSync)
			}
			ts, err := b.Commit(ctx, opts...)
			if err == nil {
				seen(ts)
			}
			return err
		})
	}
	work(7, func(_ *rand.Rand, n int) error {
		ts, _, err := ingested.Ingest(ctx,
			steps(nil, [][]*batch.Vector{numbers(int64(3*n), int64(3*n+1), int64(3*n+2))}...))
		if err == nil {
			seen(ts)
		}
		return err
	})
	work(8, func(_ *rand.Rand, n int) error {
		if err := left.Flush(ctx); err != nil {
			return err
		}
		return right.Compact(ctx)
	})
	for n := range seedtest.Needed(15, 3) {
		for range 50 { // let the writers go on
			b := store.NewBatch()
			b.Upsert(left, oribi.Row{"k": -1, "v": n})
			b.Upsert(right, oribi.Row{"k": -1, "v": n})
			ts := must.Get(b.Commit(ctx, oribi.NoSync))(t)
			seen(ts)
		}
		dir := fmt.Sprintf("/copy%d", n)
		c := must.Get(store.Checkpoint(ctx, dir))(t)
		s := must.Get(openCopy(mem, dir))(t)
		mu.Lock()
		some := slices.Clone(times)
		mu.Unlock()
		some = slices.DeleteFunc(some, func(ts mvcc.Timestamp) bool { return ts > c.Timestamp })
		some = append(some[max(0, len(some)-8):], some[len(some)/2], c.Timestamp)
		must.Do(t, sameAsOf(store, s, some...), "checkpoint", n, "as of", c.Timestamp)
		r := must.Get(s.Table("right"))(t)
		l := must.Get(s.Table("left"))(t)
		a, _, err1 := model.StoreDigest(ctx, l, mvcc.Max)
		b, _, err2 := model.StoreDigest(ctx, r, mvcc.Max)
		must.Do(t, errors.Join(err1, err2))
		must.Equal(t, a, b, "checkpoint", n, "the tables differ")
		must.Do(t, errors.Join(s.Close(), vfs.RemoveAll(mem, dir)))
	}
	cancel()
	wg.Wait()
}

// countingClock counts how often the present time was requested.
type countingClock struct {
	mvcc.Clock
	calls atomic.Int64
}

func (c *countingClock) Now() (mvcc.Timestamp, error) {
	c.calls.Add(1)
	return c.Clock.Now()
}

// A checkpoint that begins while an ingest is in the log, and not in the metadata, waits for it:
// the copy has its rows as of its timestamp. The checkpoint gets time to take its own timestamp,
// which it must not do before the ingest ends.
func TestCheckpointWaitsForIngestInFlight(t *testing.T) {
	disk := faultfs.New(vfs.NewMem())
	clock := &countingClock{Clock: mvcc.NewLogicalClock(mvcc.First)}
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: disk, History: oribi.HistoryForever, Manual: true, Clock: clock}))(t)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	ctx := context.Background()
	var c oribi.CopyResult
	var failed error
	var wg sync.WaitGroup
	var began atomic.Bool
	disk.Watch(func(call faultfs.Call) error {
		if call.Op != faultfs.Sync || !strings.HasSuffix(call.Name, ".wal") || began.Swap(true) {
			return nil
		}
		// The log is being synced for the ingest.
		calls := clock.calls.Load()
		wg.Go(func() { c, failed = store.Checkpoint(ctx, "/copy") })
		for range 100_000 {
			if clock.calls.Load() > calls {
				t.Error("the checkpoint took its timestamp before the ingest had ended")
				break
			}
			runtime.Gosched()
		}
		return nil
	})
	ts, _, err := table.Ingest(ctx, steps(nil, [][]*batch.Vector{numbers(1, 2, 3)}...))
	wg.Wait()
	must.Do(t, err)
	must.Equal(t, began.Load(), true)
	must.Do(t, failed)
	s := must.Get(openCopy(disk, "/copy"))(t)
	defer s.Close()
	if err := sameAsOf(store, s, ts, c.Timestamp); err != nil || c.Timestamp < ts {
		t.Errorf("ingest at %v, checkpoint at %v: %v", ts, c.Timestamp, err)
	}
}

// copiedStore returns a store with rows in files, in memory and in several log segments, with
// history.
func copiedStore(t *testing.T, fsys vfs.FS) *oribi.Store {
	t.Helper()
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: fsys, History: oribi.HistoryForever, Manual: true,
			RowSetBytes: 1 << 13, LogSegmentBytes: 1 << 12}))(t)
	table := numbersTable(t, store, "numbers")
	fillNumbers(t, store, table, 0, 2000)
	must.Do(t, table.Compact(context.Background()))
	for from := 0; from < 300; from += 30 {
		b := store.NewBatch()
		for k := from; k < from+30; k++ {
			b.Upsert(table, oribi.Row{"k": 5 * k, "v": 7})
		}
		must.Get(b.Commit(context.Background()))(t)
	}
	return store
}

// A crash at any operation of a checkpoint leaves a directory that is not a store, or the whole
// copy; and the store unharmed.
func TestCrashDuringCheckpointLeavesNoStoreOrAWholeOne(t *testing.T) {
	r := seedtest.Rand(t)
	disk := crashfs.New(vfs.NewMem())
	store := copiedStore(t, disk)
	type crash struct {
		op    crashfs.Operation
		name  string
		image *vfs.Mem
	}
	var crashes []crash
	disk.OnOperation(func(c crashfs.Operation) error {
		for s := range c.Point().States(r.Uint64(), seedtest.Rounds(4, 2)) {
			crashes = append(crashes, crash{c, s.Name, s.Image})
		}
		return nil
	})
	c, err := store.Checkpoint(context.Background(), "/copy")
	disk.OnOperation(nil)
	must.Do(t, err)
	for s := range disk.Point().States(r.Uint64(), 0) {
		crashes = append(crashes, crash{crashfs.Operation{Op: "end"}, s.Name, s.Image})
	}
	whole := 0
	for _, x := range crashes {
		s, err := openCopy(x.image, "/copy")
		switch {
		case x.op.Op != "end" && errors.Is(err, oribi.ErrNotStore):
		case err != nil:
			t.Fatalf("%s of %s, %s: %v", x.op.Op, x.op.Name, x.name, err)
		default:
			whole++
			must.Do(t, errors.Join(sameAsOf(store, s, c.Timestamp), s.Close()), x.op.Op, "of", x.op.Name, x.name)
		}
		if names, err := x.image.List("/copy"); err == nil && len(names) > 1 && s == nil {
			// A writer does not take it for an unfinished format, and removes nothing.
			before, err := files.Fingerprint(x.image, "/copy")
			must.Do(t, err)
			_, err = oribi.Open("/copy", &oribi.Options{FS: x.image})
			after, ferr := files.Fingerprint(x.image, "/copy")
			if !errors.Is(err, oribi.ErrNotStore) || ferr != nil || before != after {
				t.Fatalf("%s of %s, %s: open to write: %v, %v", x.op.Op, x.op.Name, x.name, err, ferr)
			}
		}
		src, err := openCopyOfKilled(x.image)
		must.Do(t, err, x.op.Op, "of", x.op.Name, x.name, "the store")
		src.Close()
	}
	t.Logf("%d crashes, %d with the copy", len(crashes), whole)
	if err := store.Close(); err != nil || whole == 0 {
		t.Fatal(err)
	}
}

// openCopyOfKilled opens and verifies the store that was copied, as a crash left it.
func openCopyOfKilled(mem *vfs.Mem) (*oribi.Store, error) {
	s, err := oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: true})
	if err == nil {
		err = model.Verified(s)
	}
	return s, err
}

// Each failure of a call that changes the disk, with EIO and with ENOSPC, ends the checkpoint with
// that error, or does not matter. It leaves no copy, and a store that is not poisoned. A directory
// that existed is empty again.
func TestFailedCheckpointLeavesNothing(t *testing.T) {
	for _, exists := range []bool{false, true} {
		t.Run(fmt.Sprint("exists=", exists), func(t *testing.T) { checkFailedCheckpoints(t, exists) })
	}
}

func checkFailedCheckpoints(t *testing.T, exists bool) {
	disk := faultfs.New(vfs.NewMem())
	store := copiedStore(t, disk)
	defer store.Close()
	changing := func(c faultfs.Call) bool { return c.Changes() || c.Op == faultfs.Open && c.Exclusive }
	ctx := context.Background()
	failures := 0
	for n := 0; ; n += seedtest.Stride(5) {
		cause := []error{faultfs.ErrIO, faultfs.ErrSpace}[n%2]
		if exists {
			must.Do(t, errors.Join(vfs.RemoveAll(disk, "/copy"), disk.Mkdir("/copy"),
				disk.Mkdir("/copy/lost+found")))
		}
		fails := disk.Fail(faultfs.Rule{Match: changing, Skip: n, Err: cause, When: faultfs.When(n % 3)})
		c, err := store.Checkpoint(ctx, "/copy")
		_, failed := fails.First()
		disk.Heal()
		switch {
		case err == nil:
			s, err := openCopy(disk, "/copy")
			must.Do(t, err, "call", n)
			must.Do(t, errors.Join(sameAsOf(store, s, c.Timestamp), s.Close(),
				vfs.RemoveAll(disk, "/copy")), "call", n)
		// Pebble reports some as text
		case !strings.Contains(err.Error(), strings.TrimSuffix(cause.Error(), " on device")),
			errors.Is(err, oribi.ErrCorrupt), errors.Is(err, oribi.ErrPoisoned):
			t.Fatalf("call %d: %v, want %v", n, err, cause)
		default:
			failures++
			if exists {
				names, err := disk.List("/copy")
				if names = slices.DeleteFunc(names, func(name string) bool {
					return name == "LOCK"
				}); err != nil || len(names) != 1 {
					t.Fatalf("call %d: the directory has %q, %v", n, names, err)
				}
				break
			}
			must.Fail(t, must.Err(disk.Stat("/copy")), fs.ErrNotExist, "call", n, "the copy is there")
		}
		must.Do(t, store.Poisoned(), "call", n)
		if !failed {
			break
		}
	}
	t.Logf("%d failed", failures)
	if failures == 0 {
		t.Error("nothing failed")
	}
}

// Checkpoint refuses an existing directory and leaves it alone, ends with its context, and copies a
// read-only store without writing to it. Its UUID differs from the store's.
func TestCheckpointOfReadOnlyStoreAndRefusals(t *testing.T) {
	mem := vfs.NewMem()
	store := copiedStore(t, mem)
	ctx := context.Background()
	must.Fail(t, must.Err(store.Checkpoint(ctx, "/store")), fs.ErrExist, "onto itself")
	must.Fail(t, must.Err(store.Checkpoint(ctx, "/missing/copy")), fs.ErrNotExist, "without a parent")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, must.Err(store.Checkpoint(canceled, "/copy")), context.Canceled, "canceled")
	must.Do(t, store.Close())
	must.Fail(t, must.Err(store.Checkpoint(ctx, "/copy")), oribi.ErrClosed, "closed")
	before := must.Get(files.Fingerprint(mem, "/store"))(t)
	store = must.Get(oribi.Open("/store", &oribi.Options{FS: mem, ReadOnly: true}))(t)
	defer store.Close()
	var done, total, calls int64
	c, err := store.Checkpoint(ctx, "/copy", nil, func(d, of int64) {
		if d < done || total != 0 && of != total {
			t.Errorf("progress %d of %d after %d of %d", d, of, done, total)
		}
		done, total, calls = d, of, calls+1
	})
	if err != nil || done != total || calls == 0 {
		t.Fatalf("progress %d of %d: %v", done, total, err)
	}
	s := must.Get(openCopy(mem, "/copy"))(t)
	defer s.Close()
	must.Do(t, sameAsOf(store, s, c.Timestamp, mvcc.Max))
	a, _ := store.Info()
	b, err := s.Info()
	if err != nil || a.UUID == b.UUID || b.UUID != c.UUID || a.Bytes.Live != b.Bytes.Live {
		t.Errorf("%+v, copied %+v: %+v, %v", a, c, b, err)
	}
	must.Equal(t, before, must.Get(files.Fingerprint(mem, "/store"))(t), "the store has changed")
}
