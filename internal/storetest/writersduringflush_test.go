package storetest

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
)

// fillTest is a store whose writers fill the memory while a job of the table runs.
type fillTest struct {
	t        *testing.T
	store    *oribi.Store
	table    *oribi.Table
	accepted atomic.Int64 // batches of 4 rows
	reading  atomic.Pointer[func()]
}

const fillBatchBytes = 64 << 10

func newFillTest(t *testing.T, limit int64) *fillTest {
	t.Helper()
	f := &fillTest{t: t}
	opts := &oribi.Options{Manual: true, MemoryLimit: limit, Progress: func(string, int64, int64) {
		if do := f.reading.Load(); do != nil {
			(*do)()
		}
	}}
	f.store = must.Get(oribi.Open(t.TempDir(), opts))(t)
	t.Cleanup(func() { f.store.Close() })
	f.table = tableOf(t, f.store, "t", "k*:int64 v:string")
	return f
}

// write writes n batches of four rows, from the key first on.
func (f *fillTest) write(first, n int) {
	text := strings.Repeat("x", fillBatchBytes/4)
	b := f.store.NewBatch()
	for i := range n {
		for k := range 4 {
			b.Upsert(f.table, oribi.Row{"k": first + i*4 + k, "v": text})
		}
		if _, err := b.Commit(f.t.Context(), oribi.NoSync); err != nil {
			f.t.Error(err)
		}
		f.accepted.Add(1)
	}
}

func (f *fillTest) flush() {
	f.t.Helper()
	must.Do(f.t, f.table.Flush(f.t.Context()))
}

// all is the choice of all rowsets.
func (f *fillTest) all() (c compaction.Choice) {
	for _, r := range f.table.Layout().RowSets {
		c.RowSets = append(c.RowSets, r.ID)
	}
	return c
}

func (f *fillTest) count(want int64) {
	f.t.Helper()
	if n, err := f.table.Count(f.t.Context()); err != nil || n != want {
		f.t.Errorf("%d rows, want %d, %v", n, want, err)
	}
}

// While a table is flushed its writers continue; when memory use reaches half of its limit they
// block until the flush has ended. They also block if memory is full of changes of the rows that a
// merge rewrites, which cannot be flushed.
func TestWritersContinueUntilMemoryIsFull(t *testing.T) {
	const limit = 16 << 20
	for _, merge := range []bool{false, true} {
		f := newFillTest(t, limit)
		begun := make(chan struct{})
		var once sync.Once
		read := func() {
			once.Do(func() {
				close(begun)
				before := f.accepted.Load()
				for f.accepted.Load()-before < limit/16/fillBatchBytes { // writers continue
					runtime.Gosched()
				}
				for range 200_000 { // and would continue without the limit
					runtime.Gosched()
				}
				if n := f.accepted.Load() - before; n > limit/2/fillBatchBytes {
					t.Errorf("merge %t: %d batches of %d bytes are in memory, want at most %d bytes",
						merge, n, fillBatchBytes, limit/2)
				}
			})
		}
		f.write(0, 16)
		work := func() error { return f.table.Flush(t.Context()) }
		if merge {
			f.flush()
			f.write(1000, 1)
			f.flush()
			work = func() error { return f.table.Merge(t.Context(), f.all()) }
		}
		f.reading.Store(&read)
		var all sync.WaitGroup
		all.Go(func() {
			defer once.Do(func() { close(begun) })
			if err := work(); err != nil {
				t.Error(err)
			}
		})
		for w := range 3 {
			all.Go(func() {
				<-begun
				if !merge {
					f.write((w+1)*10_000, 200)
					return
				}
				for range 200 / 4 {
					f.write(w*16, 4) // rows that the merge rewrites
				}
			})
		}
		all.Wait()
		if merge {
			f.count(16*4 + 4)
		} else {
			f.count(16*4 + 3*200*4)
		}
	}
}

// A table is flushed while a merge of all its rowsets runs: writers of other rows do not wait for
// the merge, although they fill the memory several times.
func TestWritersDoNotWaitForMerge(t *testing.T) {
	const limit = 16 << 20
	f := newFillTest(t, limit)
	for range 2 {
		f.write(0, 4)
		f.write(1000, 4)
		f.flush()
		f.write(500, 4)
		f.flush()
	}
	sets := len(f.all().RowSets)
	read := func() {
		f.reading.Store(nil) // the flushes report progress too
		f.write(10_000, limit/fillBatchBytes)
	}
	f.reading.Store(&read)
	must.Do(t, f.table.Merge(t.Context(), f.all()))
	if n := len(f.all().RowSets); n <= 2 || sets < 2 {
		t.Errorf("%d rowsets before the merge, %d afterwards: no flush in the merge", sets, n)
	}
	f.count(3*16 + 4*limit/fillBatchBytes)
}
