package storetest

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// panics counts calls of a caller's code and panics in one of them.
type panics struct{ left atomic.Int64 }

const plannedPanic = "planned panic"

// in makes the n-th call from now on panic; 0 is none.
func (p *panics) in(n int64) { p.left.Store(n) }

func (p *panics) call() {
	if p.left.Load() > 0 && p.left.Add(-1) == 0 {
		panic(plannedPanic)
	}
}

// during reports whether the n-th call panics while do runs, which may return any error.
func (p *panics) during(n int64, do func()) (panicked bool) {
	p.in(n)
	defer p.in(0)
	defer func() {
		if r := recover(); r != nil {
			if r != plannedPanic {
				panic(r)
			}
			panicked = true
		}
	}()
	do()
	return false
}

type panickingContext struct {
	context.Context
	p *panics
}

func (c panickingContext) Err() error {
	c.p.call()
	return c.Context.Err()
}

func (c panickingContext) Done() <-chan struct{} {
	c.p.call()
	return c.Context.Done()
}

type panickingClock struct {
	mvcc.Clock
	p *panics
}

func (c panickingClock) Now() (mvcc.Timestamp, error) {
	c.p.call()
	return c.Clock.Now()
}

// panicStore is a store whose caller's code panics on request.
type panicStore struct {
	t     *testing.T
	store *oribi.Store
	a, b  *oribi.Table
	auto  *oribi.Table
	next  int64 // a key of a that no row has

	context, clock, listener, progress panics
}

func newPanicStore(t *testing.T) *panicStore {
	t.Helper()
	s := &panicStore{t: t, next: 1000}
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	clock := mvcc.NewHybridClock(func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	})
	var err error
	s.store, err = oribi.Open("/panics",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, Clock: panickingClock{clock, &s.clock},
			Listener: func(oribi.Event) {
				s.listener.call()
			}, Progress: func(string, int64, int64) { s.progress.call() }})
	must.Do(t, err)
	s.a, s.b = numbersTable(t, s.store, "a"), numbersTable(t, s.store, "b")
	s.auto = tableOf(t, s.store, "auto", "host*:string "+autoName+"*:int64 v:int64?")
	return s
}

// use writes to all rows, uses every lock of the store and its tables, and checks what it wrote. It
// never returns if one of the locks is held.
func (s *panicStore) use() {
	s.t.Helper()
	ctx := context.Background()
	must.Do(s.t, s.store.Poisoned())
	try := func(what string, err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
	}
	for name, table := range map[string]*oribi.Table{"a": s.a, "b": s.b, "auto": s.auto} {
		_, err := table.Truncate(ctx)
		try("truncate", err)
		try("alter", table.Alter(ctx, oribi.SetComment(fmt.Sprint(s.next))))
		try("rename", table.Rename(ctx, "renamed"))
		try("rename", table.Rename(ctx, name))
	}
	for range 2 { // a rowset with changes, and a MemRowSet
		b := s.store.NewBatch()
		for k := range 20 {
			b.Upsert(s.a, oribi.Row{"k": k, "v": k})
			b.Upsert(s.b, oribi.Row{"k": k, "v": k})
			b.Insert(s.auto, oribi.Row{"host": "h", "v": k})
		}
		ts, err := b.Commit(ctx)
		try("commit", err)
		if s.store.Visible() != ts {
			s.t.Fatalf("%v is visible after the commit of %v", s.store.Visible(), ts)
		}
		try("flush", s.a.Flush(ctx))
	}
	for i := range 2 {
		s.next++
		_, n, err := s.a.Ingest(ctx, steps(nil, numberVectors(s.next)))
		if err != nil || n != 1 {
			s.t.Fatalf("ingest %d: %d rows, %v", i, n, err)
		}
	}
	putNumbers(s.t, s.store, s.a, 30, func(k int) int { return k })
	sn, err := s.store.Snapshot(ctx)
	try("snapshot", err)
	try("snapshot", sn.Close())
	if n, err := s.a.Count(ctx); n != 32 || err != nil {
		s.t.Fatalf("%d rows, want 32, %v", n, err)
	}
}

// numberVectors returns rows of a table of numbers.
func numberVectors(keys ...int64) []*batch.Vector {
	k, v := batch.NewVector(schema.Int64, len(keys)), batch.NewVector(schema.Int64, len(keys))
	for i, key := range keys {
		batch.Values[int64](k)[i], batch.Values[int64](v)[i] = key, key
	}
	return []*batch.Vector{k, v}
}

// end closes the store, which waits for every call that has not ended. After its tables were
// dropped, no reader keeps their blocks.
func (s *panicStore) end() {
	s.t.Helper()
	for _, table := range s.store.Tables() {
		if err := s.store.DropTable(table.Name()); err != nil {
			s.t.Error(err)
		}
	}
	if info, err := s.store.Info(); err != nil || info.Bytes.Dead != 0 {
		s.t.Errorf("%d bytes of dropped tables are in use, %v", info.Bytes.Dead, err)
	}
	if err := s.store.Close(); err != nil {
		s.t.Error(err)
	}
}

// Plan: each call of the store runs with a panic in the first, the second, … call of a caller's
// code: of the context, the clock, the listener, or the progress function. After each of them, use
// needs all locks.
func TestStoreWorksAfterAPanicInACallersCode(t *testing.T) {
	type call struct {
		name string
		do   func(ctx context.Context, s *panicStore)
	}
	row := oribi.Row{"k": 3, "v": 4}
	calls := []call{
		{"commit", func(ctx context.Context, s *panicStore) {
			b := s.store.NewBatch()
			b.Upsert(s.a, row)
			b.Upsert(s.b, row)
			b.Insert(s.auto, oribi.Row{"host": "h"})
			_, _ = b.Commit(ctx)
		}},
		{"refused commit", func(ctx context.Context, s *panicStore) {
			b := s.store.NewBatch()
			b.Upsert(s.a, row)
			b.Insert(s.b, row)
			_, _ = b.Commit(ctx)
		}},
		{"partial commit", func(ctx context.Context, s *panicStore) {
			b := s.store.NewBatch()
			b.Insert(s.a, row)
			b.Insert(s.b, row)
			b.Upsert(s.b, row)
			_, _ = b.CommitPartial(ctx, oribi.NoSync)
		}},
		{"empty commit", func(ctx context.Context, s *panicStore) { _, _ = s.store.NewBatch().Commit(ctx) }},
		{"commit without effect", func(ctx context.Context, s *panicStore) {
			b := s.store.NewBatch()
			b.InsertIgnore(s.a, row)
			_, _ = b.Commit(ctx)
		}},
		{"update", func(ctx context.Context, s *panicStore) {
			_, _ = s.a.UpdateWhere(ctx, oribi.Row{"v": 5}, oribi.Where(oribi.Lt("k", 9)))
		}},
		{"update in pieces", func(ctx context.Context, s *panicStore) {
			_, _ = s.a.UpdateWhere(ctx, oribi.Row{"v": 5}, oribi.Where(oribi.Lt("k", 4)), oribi.PieceBytes(1))
		}},
		{"delete", func(ctx context.Context, s *panicStore) { _, _ = s.a.DeleteRange(ctx, 3, 9) }},
		{"truncate", func(ctx context.Context, s *panicStore) { _, _ = s.auto.Truncate(ctx) }},
		{"restore", func(ctx context.Context, s *panicStore) { _, _ = s.a.RestoreTo(ctx, s.store.Visible()-1) }},
		{"ingest", func(ctx context.Context, s *panicStore) {
			s.next++
			_, _, _ = s.a.Ingest(ctx, steps(nil, numberVectors(s.next)))
		}},
		{"empty ingest", func(ctx context.Context, s *panicStore) { _, _, _ = s.a.Ingest(ctx, steps(nil)) }},
		{"flush", func(ctx context.Context, s *panicStore) { _ = s.a.Flush(ctx) }},
		{"flush deltas", func(ctx context.Context, s *panicStore) { _, _ = s.a.FlushDeltas(ctx) }},
		{"compact", func(ctx context.Context, s *panicStore) { _ = s.a.Compact(ctx) }},
		{"minor compaction", func(ctx context.Context, s *panicStore) { _, _ = s.a.CompactMinor(ctx) }},
		{"major compaction", func(ctx context.Context, s *panicStore) { _, _ = s.a.CompactMajor(ctx) }},
		{"recompression", func(ctx context.Context, s *panicStore) { _, _ = s.a.Recompress(ctx) }},
		{"undo gc", func(ctx context.Context, s *panicStore) { _, _ = s.a.CollectUndos(ctx) }},
		{"alter", func(ctx context.Context, s *panicStore) { _ = s.a.Alter(ctx, oribi.SetDefault("v", 7)) }},
		{"rename", func(ctx context.Context, s *panicStore) { _ = s.a.Rename(ctx, "other") }},
		{"scan", func(ctx context.Context, s *panicStore) {
			for range s.a.Scan(ctx, oribi.AsOf(s.store.Visible())).Rows() {
			}
		}},
		{"get", func(ctx context.Context, s *panicStore) { _, _ = s.a.Get(ctx, 3) }},
		{"get many", func(ctx context.Context, s *panicStore) { _, _ = s.a.GetMany(ctx, []any{3, 4}) }},
		{"history", func(ctx context.Context, s *panicStore) {
			for range s.a.History(ctx, 3) {
			}
		}},
		{"diff", func(ctx context.Context, s *panicStore) {
			for range s.a.Diff(ctx, s.store.Visible()-1, s.store.Visible()) {
			}
		}},
		{"snapshot", func(ctx context.Context, s *panicStore) {
			if sn, err := s.store.Snapshot(ctx); err == nil {
				sn.Close()
			}
		}},
	}
	sources := map[string]func(s *panicStore) *panics{
		"context":  func(s *panicStore) *panics { return &s.context },
		"clock":    func(s *panicStore) *panics { return &s.clock },
		"listener": func(s *panicStore) *panics { return &s.listener },
		"progress": func(s *panicStore) *panics { return &s.progress },
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			s := newPanicStore(t)
			met := map[string]int{}
			for name, source := range sources {
				// a step adds rowsets, so the next one has more to compact
				for n, panicked := int64(1), true; panicked && n <= seedtest.Rounds[int64](8, 3); n++ {
					s.use()
					p := source(s)
					if panicked = p.during(n, func() {
						c.do(panickingContext{context.Background(), &s.context}, s)
					}); panicked {
						met[name]++
					}
				}
			}
			s.use()
			s.end()
			t.Logf("%d panics in the context, %d in the clock, %d in the listener, %d in the progress function",
				met["context"], met["clock"], met["listener"], met["progress"])
		})
	}
}

func TestStoreWorksAfterAPanicInALoop(t *testing.T) {
	ctx := context.Background()
	s := newPanicStore(t)
	one := func(yield func([]*batch.Vector, error) bool) {
		if yield(numberVectors(5000, 5001), nil) {
			panic(plannedPanic)
		}
	}
	type pair struct {
		K int64 `oribi:"k,key"`
		V int64 `oribi:"v"`
	}
	for name, do := range map[string]func(){
		"iterator of an ingest": func() { _, _, _ = s.a.Ingest(ctx, one) },
		"iterator of a typed ingest": func() {
			table := must.Get(oribi.Typed[pair](s.a))(t)
			_, _, _ = table.Ingest(ctx, iter.Seq[pair](func(yield func(pair) bool) {
				yield(pair{7000, 1})
				panic(plannedPanic)
			}))
		},
		"batches": func() {
			for range s.a.Scan(ctx).Batches() {
				panic(plannedPanic)
			}
		},
		"rows": func() {
			for range s.a.Scan(ctx).Rows() {
				panic(plannedPanic)
			}
		},
		"history": func() {
			for range s.a.History(ctx, 3) {
				panic(plannedPanic)
			}
		},
		"differences": func() {
			for range s.a.Diff(ctx, s.store.Visible()-1, s.store.Visible()) {
				panic(plannedPanic)
			}
		},
	} {
		s.use()
		panicked := false
		func() {
			defer func() { panicked = recover() != nil }()
			do()
		}()
		must.Equal(t, panicked, true, name, "no panic")
	}
	s.use()
	s.end()
}
