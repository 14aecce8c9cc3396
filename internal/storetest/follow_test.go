package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// followModel is what a trace's store contains: rows by table.
type followModel map[string]map[int64]int64

func (m followModel) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s:", name)
		for _, k := range slices.Sorted(maps.Keys(m[name])) {
			fmt.Fprintf(&b, " %d=%d", k, m[name][k])
		}
		b.WriteString("; ")
	}
	return b.String()
}

// followTrace is a history of a store: steps, each of which changes the model as it changes the
// store.
type followTrace struct {
	t     *testing.T
	store *oribi.Store
	model followModel

	states  []string     // the model after so many steps
	started atomic.Int64 // steps
	ended   atomic.Int64
}

func (f *followTrace) step(change func(m followModel), do func() error) {
	if f.store == nil { // only the states are wanted
		change(f.model)
		f.states = append(f.states, f.model.String())
		return
	}
	f.started.Add(1)
	if err := do(); err != nil {
		f.t.Errorf("step %d: %v", f.started.Load(), err)
	}
	f.ended.Add(1)
}

func (f *followTrace) create(name string) {
	f.step(func(m followModel) { m[name] = map[int64]int64{} }, func() error {
		columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64}}, 1)
		if err == nil {
			_, err = f.store.CreateTable(name, columns)
		}
		return err
	})
}

// put upserts or, if v is 0, deletes rows of tables in one write batch.
func (f *followTrace) put(sync bool, k, v int64, tables ...string) {
	f.step(func(m followModel) {
		for _, name := range tables {
			m[name][k] = v
			if v == 0 {
				delete(m[name], k)
			}
		}
	}, func() error {
		b := f.store.NewBatch()
		for _, name := range tables {
			t := f.table(name)
			if v == 0 {
				b.Delete(t, oribi.Row{"k": k})
			} else {
				b.Upsert(t, oribi.Row{"k": k, "v": v})
			}
		}
		var opts []oribi.CommitOption
		if !sync {
			opts = append(opts, oribi.NoSync)
		}
		_, err := b.Commit(context.Background(), opts...)
		return err
	})
}

func (f *followTrace) table(name string) *oribi.Table {
	t, err := f.store.Table(name)
	if err != nil {
		f.t.Error(err)
	}
	return t
}

// same does something that changes no content.
func (f *followTrace) same(name string, do func(ctx context.Context, t *oribi.Table) error) {
	f.step(func(followModel) {}, func() error { return do(context.Background(), f.table(name)) })
}

func flushTable(ctx context.Context, t *oribi.Table) error   { return t.Flush(ctx) }
func compactTable(ctx context.Context, t *oribi.Table) error { return t.Compact(ctx) }

func (f *followTrace) ingest(name string, keys ...int64) {
	f.step(func(m followModel) {
		for _, k := range keys {
			m[name][k] = 10 * k
		}
	}, func() error {
		_, _, err := f.table(name).Ingest(context.Background(), steps(nil, numbers(keys...)))
		return err
	})
}

// run is the trace.
func (f *followTrace) run() {
	f.create("a")
	for k := range int64(12) { // the last ones are copied into a window on the log
		f.put(false, k, k+1, "a")
	}
	f.put(true, 3, 33, "a")
	f.same("a", flushTable)
	f.create("b")
	f.put(false, 4, 44, "a", "b")
	f.put(false, 5, 0, "a")
	f.ingest("b", 100, 101, 102)
	f.put(false, 101, 7, "b")
	f.put(true, 6, 66, "a", "b")
	f.same("a", flushTable)
	for k := range int64(3) {
		f.put(false, 20+k, 1, "a", "b")
	}
	f.same("a", flushTable)
	f.same("a", compactTable)
	f.put(false, 7, 77, "a")
	f.same("b", flushTable)
	f.same("b", compactTable)
	f.step(func(m followModel) { m["c"] = m["b"]; delete(m, "b") }, func() error { return f.table("b").Rename(context.Background(), "c") })
	f.put(true, 8, 88, "a", "c")
	f.step(func(m followModel) { delete(m, "c") }, func() error { return f.store.DropTable("c") })
	f.put(true, 9, 99, "a")
	f.same("a", flushTable)
	f.same("a", compactTable)
	f.put(false, 10, 0, "a")
}

// followerContent returns what a follower sees, in the form of a model. It reads in a snapshot: a
// scan of the newest state may refresh the follower.
func followerContent(s *oribi.Store) (string, error) {
	m := followModel{}
	sn, err := s.Snapshot(context.Background())
	if err != nil {
		return "", err
	}
	defer sn.Close()
	for _, t := range s.Tables() {
		rows := map[int64]int64{}
		for row, err := range t.Scan(context.Background(), oribi.At(sn)).Rows() {
			if err != nil {
				return "", err
			}
			rows[row["k"].(int64)] = row["v"].(int64)
		}
		m[t.Name()] = rows
	}
	return m.String(), nil
}

// followed runs a trace turn by turn in another goroutine. Each call of look is between two turns;
// it may advance the trace. followed ends when the trace has, and look was called once more.
func followed(t *testing.T, look func(f *followTrace, disk *vfs.Mem, w *turns)) {
	t.Helper()
	followedWith(t, oribi.Options{}, look)
}

// followedWith is followed with options of the writer.
func followedWith(t *testing.T, o oribi.Options, look func(f *followTrace, disk *vfs.Mem, w *turns)) {
	t.Helper()
	want := &followTrace{model: followModel{}, states: []string{""}}
	want.run()
	disk := vfs.NewMem()
	w := newTurns()
	f := &followTrace{t: t, states: want.states}
	w.free = true
	var err error
	o.FS, o.Manual, o.LogSegmentBytes = &turnFS{disk, w.turn}, true, 4096
	f.store, err = oribi.Open("/store", &o)
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		defer w.end()
		f.run()
		if err := f.store.Close(); err != nil {
			t.Error(err)
		}
	}()
	w.advance(0)
	for over := false; !over && !t.Failed(); {
		over = w.over()
		look(f, disk, w)
	}
	w.release()
	<-closed
}

// openAndCompare opens a follower, reads all of it, and compares that with the states that the
// store had while it was opened. before is called before each file operation of the follower.
func openAndCompare(f *followTrace, disk *vfs.Mem, before func(n int)) error {
	n := 0
	var mu sync.Mutex // a scan reads columns in parallel
	turn := func(call func()) {
		mu.Lock()
		defer mu.Unlock()
		before(n)
		n++
		call()
	}
	from := f.ended.Load()
	s, err := oribi.Open("/store", &oribi.Options{FS: &turnFS{disk, turn}, Follow: true})
	if err != nil {
		return err
	}
	defer s.Close()
	to := f.started.Load()
	got, err := followerContent(s)
	if errors.Is(err, oribi.ErrTooOld) {
		return nil
	}
	if err != nil {
		return err
	}
	if !slices.Contains(f.states[from:to+1], got) {
		return fmt.Errorf("after %d operations the follower has\n%s\nwant one of\n%s", n, got, strings.Join(f.states[from:to+1], "\n"))
	}
	return nil
}

// A follower that is opened between any two file operations of a writer sees a state of that
// moment, at once: nothing that a writer leaves between two operations is an error.
func TestFollowerOpensAfterEachOperationOfAWriter(t *testing.T) {
	ops := 0
	followed(t, func(f *followTrace, disk *vfs.Mem, w *turns) {
		if err := openAndCompare(f, disk, func(int) {}); err != nil {
			t.Errorf("after operation %d, step %d: %v", ops, f.started.Load(), err)
		}
		w.advance(1)
		ops++
	})
	t.Logf("%d operations", ops)
}

// While a follower opens, the writer goes on for any number of operations between any two of the
// follower's.
func TestFollowerOpensWhileAWriterGoesOn(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 24
	}
	opens := 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 48))
		lag := time.Duration(0)
		if seed%2 == 1 { // the writer keeps nothing, so more tries meet a change
			lag = -1
		}
		followedWith(t, oribi.Options{FollowerLag: lag}, func(f *followTrace, disk *vfs.Mem, w *turns) {
			at, n := r.IntN(80), 1+r.IntN(4)
			most := []int{2, 10, 60, 300}[r.IntN(4)]
			err := openAndCompare(f, disk, func(op int) {
				if op >= at && op < at+n {
					w.advance(1 + r.IntN(most))
				}
			})
			if err != nil {
				t.Errorf("seed %d, step %d, writer at operation %d: %v", seed, f.started.Load(), w.taken, err)
			}
			w.advance(r.IntN(20))
			opens++
		})
	}
	t.Logf("%d opens", opens)
}
