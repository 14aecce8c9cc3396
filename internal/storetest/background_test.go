package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/files"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// backgroundSteps carries out background work until none is due, at most limit operations, and
// returns their kinds. It fails the test after an error, unless fails accepts it.
func backgroundSteps(t *testing.T, store *oribi.Store, limit int, fails func(error) bool) (kinds []string) {
	t.Helper()
	for {
		op, ran, err := store.StepBackgroundWork(context.Background())
		if err != nil && (fails == nil || !fails(err)) {
			t.Fatal(err)
		}
		if !ran {
			return kinds
		}
		if kinds = append(kinds, op.Kind); len(kinds) > limit {
			t.Fatalf("more than %d operations: %v", limit, kinds)
		}
	}
}

// insertNumbers writes rows with keys from, from+by, from+2·by, …
func insertNumbers(t *testing.T, store *oribi.Store, table *oribi.Table, from, by, rows int) {
	t.Helper()
	b := store.NewBatch()
	for i := range rows {
		b.Insert(table, oribi.Row{"k": from + i*by, "v": i})
	}
	must.Get(b.Commit(context.Background()))(t)
}

// A program goes through background work step by step: a full memory store is flushed, and its
// rowsets are merged when four cover a key. Each step is the same in each run.
func TestStepsOfBackgroundWork(t *testing.T) {
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, FlushBytes: 1 << 14, History: oribi.HistoryForever}))(t)
	defer store.Close()
	a, b := numbersTable(t, store, "a"), numbersTable(t, store, "b")
	insertNumbers(t, store, a, 0, 1, 10)
	if kinds := backgroundSteps(t, store, 0, nil); len(kinds) > 0 {
		t.Errorf("ten rows in memory: %v", kinds)
	}
	for i := range 4 {
		insertNumbers(t, store, a, 1000+i, 4, 2000)
		insertNumbers(t, store, b, i, 1000, 10)
		want := []string{"flush"}
		if i == 3 {
			want = []string{"flush", "merge"}
		}
		must.Equal(t, backgroundSteps(t, store, 9, nil), want, "round", i)
	}
	for _, table := range []*oribi.Table{a, b} {
		must.Equal(t, must.Get(table.Stats(false))(t).RowSets, map[*oribi.Table]int{a: 1, b: 0}[table], "rowsets")
	}
}

// allRowSets merges all rowsets, whatever they are.
type allRowSets struct{ calls atomic.Int64 }

func (p *allRowSets) Pick(l compaction.Layout, budget int64) (c compaction.Choice) {
	p.calls.Add(1)
	if len(l.RowSets) > 1 {
		for i := range l.RowSets {
			c.RowSets = append(c.RowSets, l.RowSets[i].ID)
		}
	}
	return c
}

// A policy that picks all rowsets, of which a merge makes as many again, does not make background
// work merge them for ever, but once for each flush.
func TestNoMergeIsRepeatedInVain(t *testing.T) {
	var policy allRowSets
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, FlushBytes: 1 << 12, RowSetBytes: 1 << 12, Policy: &policy}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	for i := range 4 {
		insertNumbers(t, store, table, i, 4, 12_000)
		kinds := backgroundSteps(t, store, 5, nil)
		merges := slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k != "merge" })
		if kinds[0] != "flush" || len(merges) == 0 || len(merges) > 2 {
			t.Errorf("flush %d: %v", i, kinds)
		}
		calls := policy.calls.Load()
		if more := backgroundSteps(t, store, 0, nil); len(more) > 0 || policy.calls.Load() > calls {
			t.Errorf("flush %d: the policy is asked again about the same layout", i)
		}
	}
	st := must.Get(table.Stats(false))(t)
	if st.RowSets < 8 {
		t.Errorf("%d rowsets, want at least 8", st.RowSets)
	}
	// Many deleted rows are a reason to merge again.
	b := store.NewBatch()
	for k := range 8000 {
		b.Delete(table, oribi.Row{"k": k})
	}
	must.Get(b.Commit(context.Background()))(t)
	must.Do(t, table.Flush(context.Background()))
	if kinds := backgroundSteps(t, store, 5, nil); !slices.Contains(kinds, "merge") {
		t.Errorf("after deletes: %v", kinds)
	}
}

// A merge that finds a damaged block is reported once. The damaged rowset stays in service and is
// left out of further merges until the store is opened again; the others are merged.
func TestDamagedRowSetIsLeftOutOfMerges(t *testing.T) {
	ctx, mem := context.Background(), vfs.NewMem()
	var failed []oribi.Event
	opts := &oribi.Options{FS: mem, Manual: true, FlushBytes: 1 << 20, Policy: compaction.Overlap{Depth: 2},
		Listener: func(e oribi.Event) {
			if e.Err != nil {
				failed = append(failed, e)
			}
		}}
	store, err := oribi.Open("/store", opts)
	must.Do(t, err)
	columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: schema.Int64},
		{Name: "s", Type: schema.String, Encoding: schema.Plain, Compression: schema.NoCompression}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	flushed := 0
	flush := func(text string) {
		t.Helper()
		b := store.NewBatch()
		for i := range 20 {
			b.Insert(table, oribi.Row{"k": 100*i + flushed, "s": text})
		}
		flushed++
		must.Get(b.Commit(ctx))(t)
		must.Do(t, table.Flush(ctx))
	}
	for _, text := range []string{"good", "good", "to be damaged", "good"} {
		flush(text)
	}
	must.Do(t, store.Close())
	flipIn(t, mem, "/store/data", "to be damaged")
	damaged := func(err error) bool {
		return errors.Is(err, oribi.ErrCorrupt) && strings.Contains(err.Error(), "rowset 2: ")
	}
	for opened := range 2 {
		if store, err = oribi.Open("/store", opts); err == nil {
			table, err = store.Table("t")
		}
		must.Do(t, err)
		failed = nil
		if opened == 1 {
			flush("good")
		}
		must.Equal(t, backgroundSteps(t, store, 2, damaged), []string{"merge", "merge"},
			"open", opened, "a failed merge, then a successful one")
		if len(failed) != 1 || !damaged(failed[0].Err) {
			t.Errorf("open %d: events %v, want one with the damage", opened, failed)
		}
		for range 3 {
			flush("good")
			must.Equal(t, backgroundSteps(t, store, 1, nil), []string{"merge"}, "open", opened, "after a flush")
		}
		must.Equal(t, must.Get(table.Stats(false))(t).RowSets, 2,
			"open", opened, "rowsets: the damaged one and the others in one")
		for k := range flushed {
			_, err := table.Get(ctx, oribi.Row{"k": k})
			if (k == 2) != errors.Is(err, oribi.ErrCorrupt) || k != 2 && err != nil {
				t.Errorf("key %d: %v", k, err)
			}
		}
		must.Do(t, store.Close())
	}
}

// flipIn changes one byte of the first file in dir that contains text, within the text.
func flipIn(t *testing.T, mem *vfs.Mem, dir, text string) {
	t.Helper()
	names := must.Get(mem.List(dir))(t)
	for _, name := range names {
		data := must.Get(files.ReadFile(mem, filepath.Join(dir, name)))(t)
		at := bytes.Index(data, []byte(text))
		if at < 0 {
			continue
		}
		f := must.Get(mem.Open(filepath.Join(dir, name), true))(t)
		defer f.Close()
		must.Get(f.WriteAt([]byte{data[at] ^ 1}, int64(at)))(t)
		return
	}
	t.Fatalf("no file contains %q", text)
}

// A mistake of a policy is reported once for each layout, and does not keep other work from being
// done.
func TestFaultyPolicyIsAskedOncePerLayout(t *testing.T) {
	var policy faultyPolicy
	var failed []oribi.Event
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, FlushBytes: 1 << 14, Policy: &policy,
			Listener: func(e oribi.Event) {
				if e.Err != nil {
					failed = append(failed, e)
				}
			}}))(t)
	defer store.Close()
	a, b := numbersTable(t, store, "a"), numbersTable(t, store, "b")
	for i := range 2 {
		insertNumbers(t, store, a, i, 10, 10)
		must.Do(t, a.Flush(context.Background()))
	}
	policy.only = "a"
	for i, want := range []string{"not found", "is chosen twice", "1 rowsets", plannedPanic} {
		insertNumbers(t, store, b, i, 10, 2000)
		must.Equal(t, backgroundSteps(t, store, 1, nil), []string{"flush"},
			"mistake", i, "the flush of the other table")
		if len(failed) != i+1 || failed[i].Table != "a" || failed[i].Kind != compaction.Merge ||
			!strings.Contains(failed[i].Err.Error(), want) {
			t.Fatalf("mistake %d: %v, want one event more, with %q", i, failed, want)
		}
		insertNumbers(t, store, a, 100+i, 10, 1)
		must.Do(t, a.Flush(context.Background()))
	}
}

// A long merge of one table delays neither the flush of another nor, as long as that needs no
// rewriting, anything else.
func TestFlushDoesNotWaitForMergeOfAnotherTable(t *testing.T) {
	ctx := context.Background()
	merging, release := make(chan struct{}), make(chan struct{})
	flushed := make(chan struct{}, 100)
	var once atomic.Bool
	store, err := oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), FlushBytes: 1 << 14, Policy: compaction.Overlap{Depth: 2},
			Progress: func(table string, rows, of int64) {
				if table == "a" && of == 20 && once.CompareAndSwap(false, true) { // the merge: a flush has ten rows
					close(merging)
					<-release
				}
			},
			Listener: func(e oribi.Event) {
				if e.Table == "b" && e.Kind == compaction.Flush && !e.Begin {
					flushed <- struct{}{}
				}
			}})
	must.Do(t, err)
	defer store.Close()
	a, b := numbersTable(t, store, "a"), numbersTable(t, store, "b")
	for i := range 2 {
		insertNumbers(t, store, a, i, 10, 10)
		must.Do(t, a.Flush(ctx))
	}
	within(t, minute, func() {
		<-merging
		insertNumbers(t, store, b, 0, 1, 3000)
		<-flushed
	})
	paused := make(chan error)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, must.Err(store.PauseBackgroundWork(canceled)), context.Canceled,
		"a pause while a merge runs, with a canceled context")
	go func() {
		_, err := store.PauseBackgroundWork(ctx)
		paused <- err
	}()
	close(release)
	within(t, minute, func() {
		if err := <-paused; err != nil {
			t.Error(err)
		}
	})
	must.Equal(t, must.Get(a.Stats(false))(t).RowSets, 1, "rowsets after the pause")
}

// With more than two processors, a merge that lowers the depth by a rowset or more does not wait for the
// end of a long merge of another table; flushes wait for neither.
func TestLateMergeHasAWorker(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	ctx := context.Background()
	merging, flushed := make(chan string, 2), make(chan struct{}, 100)
	release := make(chan struct{})
	var begun sync.Map // merges, by table
	store, err := oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), FlushBytes: 1 << 14, Policy: compaction.Overlap{Depth: 3},
			Progress: func(table string, rows, of int64) {
				if of != 30 { // a flush has ten rows
					return
				}
				if _, again := begun.LoadOrStore(table, true); !again {
					merging <- table
					<-release
				}
			},
			Listener: func(e oribi.Event) {
				if e.Table == "c" && e.Kind == compaction.Flush && !e.Begin {
					flushed <- struct{}{}
				}
			}})
	must.Do(t, err)
	defer store.Close()
	defer close(release)
	c := numbersTable(t, store, "c")
	merged := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		table := numbersTable(t, store, name)
		for i := range 3 {
			insertNumbers(t, store, table, i, 10, 10)
			must.Do(t, table.Flush(ctx))
		}
		within(t, minute, func() { merged[<-merging] = true })
	}
	must.Equal(t, len(merged), 2, "tables that are being merged")
	within(t, minute, func() {
		insertNumbers(t, store, c, 0, 1, 3000)
		<-flushed
	})
	must.Equal(t, must.Get(store.Metrics())(t).Maintenance.Workers, 3, "workers")
}

// While background work is paused, a program carries it out itself; then it continues.
func TestPausedBackgroundWork(t *testing.T) {
	ctx := context.Background()
	flushed := make(chan string, 100)
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), FlushBytes: 1 << 14, Listener: func(e oribi.Event) {
			if !e.Begin {
				flushed <- fmt.Sprint(e.Kind, " ", e.Table)
			}
		}}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	first := must.Get(store.PauseBackgroundWork(ctx))(t)
	second := must.Get(store.PauseBackgroundWork(ctx))(t)
	first()
	first() // counts once
	insertNumbers(t, store, table, 0, 1, 3000)
	op, ran, err := store.StepBackgroundWork(ctx)
	if !ran || err != nil || op.Kind != "flush" || op.Table != "t" || op.Memory < 1<<14 ||
		op.Cost != op.Memory || op.Log <= 0 {
		t.Errorf("%+v, %v, %v, want the flush that is due", op, ran, err)
	}
	must.Equal(t, <-flushed, "flush t", "events")
	must.Equal(t, len(flushed), 0, "more events")
	insertNumbers(t, store, table, 10_000, 1, 3000)
	second()
	within(t, minute, func() { <-flushed })
}

// While rowsets are merged, their changes stay in memory, however many there are. They cause no
// flushes; full MemRowSets are flushed as always.
func TestBackgroundFlushesDuringMerge(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, MemoryLimit: 64 << 20,
			FlushBytes: 4 << 20, Policy: compaction.None{},
			Listener: func(e oribi.Event) {
				if e.Kind == compaction.Merge && e.Begin {
					close(begun)
					<-release
				}
			}}))(t)
	defer store.Close()
	end := sync.OnceFunc(func() { close(release) })
	defer end()
	table := tableOf(t, store, "t", "k*:int64 v:string")
	put := func(first, rows, bytes int) {
		t.Helper()
		b := store.NewBatch()
		for k := range rows {
			b.Upsert(table, oribi.Row{"k": first + k, "v": strings.Repeat("x", bytes)})
		}
		must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
	}
	var ids []uint64
	for _, first := range []int{0, 500} {
		put(first, 400, 10)
		must.Do(t, table.Flush(t.Context()))
	}
	for _, r := range table.Layout().RowSets {
		ids = append(ids, r.ID)
	}
	merged := make(chan error)
	go func() { merged <- table.Merge(t.Context(), compaction.Choice{RowSets: ids, Why: "a test"}) }()
	<-begun
	for range 6 { // together more than the share of the memory limit above which memory is flushed
		put(0, 400, 10<<10)
	}
	if kinds := backgroundSteps(t, store, 0, nil); len(kinds) > 0 {
		t.Errorf("changes of merged rowsets: %v", kinds)
	}
	put(2000, 20, 10)
	if kinds := backgroundSteps(t, store, 0, nil); len(kinds) > 0 {
		t.Errorf("and a few new rows: %v", kinds)
	}
	put(3000, 450, 10<<10)
	must.Equal(t, backgroundSteps(t, store, 1, nil), []string{"flush"}, "a full MemRowSet")
	end()
	must.Do(t, <-merged)
	must.Equal(t, must.Get(table.Count(t.Context()))(t), 1270, "rows")
}
