package followers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Model is the content of the store of a trace: rows by table.
type Model map[string]map[int64]int64

func (m Model) String() string {
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

// Trace is a history of a store: steps, each of which changes the model as it changes the store.
type Trace struct {
	Store *oribi.Store
	Model Model

	// May reports whether a step may fail with an error; then it has changed nothing. nil: no step
	// may.
	May func(error) bool

	mu      sync.Mutex
	states  []string // the model after so many steps, of which the last may be running
	running bool
	synced  int // state up to which all is durable
	err     error
}

// NewTrace returns the history of an empty store.
func NewTrace() *Trace { return &Trace{Model: Model{}, states: []string{""}} }

// Moments returns the numbers of the first and the last state that the store may have now.
func (f *Trace) Moments() (first, last int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	last = len(f.states) - 1
	if f.running {
		return last - 1, last
	}
	return last, last
}

// Find returns the number of the first of the states [from, to] that equals got, or −1.
func (f *Trace) Find(got string, from, to int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := max(from, 0); i <= to; i++ {
		if f.states[i] == got {
			return i
		}
	}
	return -1
}

// States returns the states [from, to] as text.
func (f *Trace) States(from, to int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.states[max(from, 0):to+1], "\n")
}

// Synced returns the number of a state that survives a power cut.
func (f *Trace) Synced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

// Err returns the first failure of a step.
func (f *Trace) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Step changes the store by do as change changes the model. durable says that what do has done, and
// all before, survives a power cut.
func (f *Trace) Step(durable bool, change func(m Model), do func() error) {
	next := Model{}
	for name, rows := range f.Model {
		next[name] = maps.Clone(rows)
	}
	change(next)
	f.mu.Lock()
	f.states, f.running = append(f.states, next.String()), true
	n := len(f.states) - 1
	f.mu.Unlock()
	err := do()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = false
	switch {
	case err == nil:
		f.Model = next
	case f.May != nil && f.May(err):
		f.states[n] = f.states[n-1]
		return
	case f.err == nil:
		f.err = fmt.Errorf("step %d: %w", n, err)
	}
	if durable {
		f.synced = n
	}
}

// sync makes all write batches durable. Changes of the list of tables are durable at once, whether
// the batches before them are or not: a power cut would leave a state that is none of the trace.
func (f *Trace) sync() error {
	_, err := f.Store.NewBatch().Commit(context.Background())
	return err
}

// Create creates a table, with an index if the name is not the first in the alphabet.
func (f *Trace) Create(name string) {
	f.Step(true, func(m Model) { m[name] = map[int64]int64{} }, func() error {
		if err := f.sync(); err != nil {
			return err
		}
		columns, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64}}, 1)
		if err != nil {
			return err
		}
		var options []oribi.TableOption
		if name != "a" {
			options = append(options, oribi.Index(byValue, "v"))
		}
		_, err = f.Store.CreateTable(name, columns, options...)
		return err
	})
}

// Put upserts or, if v is 0, deletes rows of tables in one write batch.
func (f *Trace) Put(sync bool, k, v int64, tables ...string) {
	f.Step(sync, func(m Model) {
		for _, name := range tables {
			m[name][k] = v
			if v == 0 {
				delete(m[name], k)
			}
		}
	}, func() error {
		b := f.Store.NewBatch()
		for _, name := range tables {
			t, err := f.Store.Table(name)
			if err != nil {
				return err
			}
			if v == 0 {
				b.DeleteIgnore(t, oribi.Row{"k": k})
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

// Same does something that changes no content.
func (f *Trace) Same(name string, do func(t *oribi.Table, ctx context.Context) error) {
	f.Step(false, func(Model) {}, func() error {
		t, err := f.Store.Table(name)
		if err == nil {
			err = do(t, context.Background())
		}
		return err
	})
}

// Flush, Compact, and the others are jobs of a table.
func (f *Trace) Flush(name string)   { f.Same(name, (*oribi.Table).Flush) }
func (f *Trace) Compact(name string) { f.Same(name, (*oribi.Table).Compact) }

// job wraps a job that returns a result.
func job(
	do func(*oribi.Table, context.Context) (oribi.CompactionResult, error),
) func(*oribi.Table, context.Context) error {
	return func(t *oribi.Table, ctx context.Context) error {
		_, err := do(t, ctx)
		return err
	}
}

// Ingest adds rows with ascending keys that the table does not have.
func (f *Trace) Ingest(name string, keys ...int64) {
	f.Step(true, func(m Model) {
		for _, k := range keys {
			m[name][k] = 10 * k
		}
	}, func() error {
		t, err := f.Store.Table(name)
		if err == nil {
			_, _, err = t.Ingest(context.Background(), vectors(keys))
		}
		return err
	})
}

func vectors(keys []int64) iter.Seq2[[]*batch.Vector, error] {
	return func(yield func([]*batch.Vector, error) bool) {
		k, v := batch.NewVector(schema.Int64, len(keys)), batch.NewVector(schema.Int64, len(keys))
		for i, key := range keys {
			batch.Values[int64](k)[i], batch.Values[int64](v)[i] = key, 10*key
		}
		yield([]*batch.Vector{k, v}, nil)
	}
}

// Rename renames a table, Drop drops one.
func (f *Trace) Rename(from, to string) {
	f.Step(true, func(m Model) { m[to] = m[from]; delete(m, from) }, func() error {
		if err := f.sync(); err != nil {
			return err
		}
		t, err := f.Store.Table(from)
		if err == nil {
			err = t.Rename(context.Background(), to)
		}
		return err
	})
}

func (f *Trace) Drop(name string) {
	f.Step(true, func(m Model) { delete(m, name) }, func() error {
		if err := f.sync(); err != nil {
			return err
		}
		return f.Store.DropTable(name)
	})
}

// All is a trace with each kind of step.
func All(f *Trace) {
	f.Create("a")
	for k := range int64(12) { // the last ones are copied into a window on the log
		f.Put(false, k, k+1, "a")
	}
	f.Put(true, 3, 33, "a")
	f.Flush("a")
	f.Create("b")
	f.Put(false, 4, 44, "a", "b")
	f.Put(false, 5, 0, "a")
	f.Ingest("b", 100, 101, 102)
	f.Put(false, 101, 7, "b")
	f.Put(true, 6, 66, "a", "b")
	f.Flush("a")
	for k := range int64(3) {
		f.Put(false, 20+k, 1, "a", "b")
	}
	f.Flush("a")
	f.Compact("a")
	f.Put(false, 7, 77, "a")
	f.Flush("b")
	f.Compact("b")
	f.Rename("b", "c")
	f.Put(true, 8, 88, "a", "c")
	f.Drop("c")
	f.Put(true, 9, 99, "a")
	f.Flush("a")
	f.Compact("a")
	f.Put(false, 10, 0, "a")
}

// Short is a trace for all interleavings: a table that is created, flushed, changed on disk,
// compacted, and dropped.
func Short(f *Trace) {
	f.Create("a")
	f.Put(false, 1, 11, "a")
	f.Put(true, 2, 22, "a")
	f.Flush("a")
	f.Put(false, 1, 0, "a")
	f.Put(false, 3, 33, "a")
	f.Same("a", job((*oribi.Table).FlushDeltas))
	f.Put(false, 2, 23, "a")
	f.Flush("a")
	f.Compact("a")
	f.Put(false, 4, 44, "a")
	f.Drop("a")
}

// Random returns a random trace of so many steps over a few tables.
func Random(r *rand.Rand, steps int) func(f *Trace) {
	return func(f *Trace) {
		ingested := int64(1000)
		for n := 0; n < steps && f.Err() == nil; n++ {
			names := slices.Sorted(maps.Keys(f.Model))
			if len(names) == 0 || len(names) < 3 && r.IntN(40) == 0 {
				f.Create(fmt.Sprintf("t%d", n))
				continue
			}
			name := names[r.IntN(len(names))]
			switch p := r.IntN(200); {
			case p < 130:
				tables := []string{name}
				if other := names[r.IntN(len(names))]; other != name && r.IntN(3) == 0 {
					tables = append(tables, other)
				}
				f.Put(r.IntN(12) == 0, int64(r.IntN(40)), int64(r.IntN(6)*(1+r.IntN(1000))), tables...)
			case p < 150:
				f.Flush(name)
			case p < 160:
				f.Same(name, job((*oribi.Table).FlushDeltas))
			case p < 168:
				f.Same(name, job((*oribi.Table).CompactMinor))
			case p < 174:
				f.Same(name, func(t *oribi.Table, ctx context.Context) error {
					_, err := t.CompactMajor(ctx)
					return err
				})
			case p < 184:
				f.Compact(name)
			case p < 190:
				f.Ingest(name, ingested, ingested+1)
				ingested += 2
			case p < 194:
				change := oribi.SetComment(fmt.Sprint(n))
				if n%2 == 0 {
					change = oribi.SetEncoding("v", []schema.Encoding{schema.Plain, schema.RLE, schema.Bitshuffle}[n%3])
				}
				f.Same(name, func(t *oribi.Table, ctx context.Context) error { return t.Alter(ctx, change) })
			case p < 197:
				f.Rename(name, fmt.Sprintf("r%d", n))
			case len(f.Model[name]) > 60 || len(names) > 2:
				f.Drop(name)
			}
		}
	}
}

// Content returns what a follower sees, in the form of a model. It reads in a snapshot: a read of
// the newest state may refresh the follower.
func Content(s *oribi.Store) (text string, err error) {
	m := Model{}
	sn, err := s.Snapshot(context.Background())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, sn.Close()) }()
	for _, t := range s.Tables() {
		rows, n := map[int64]int64{}, 0
		for cells, err := range t.Scan(context.Background(), oribi.At(sn)).Rows() {
			if err != nil {
				return "", err
			}
			rows[cells["k"].(int64)] = cells["v"].(int64)
		}
		m[t.Name()] = rows
		if len(t.Indexes()) == 0 {
			continue
		}
		for cells, err := range t.Scan(context.Background(), oribi.At(sn), oribi.OrderBy(byValue)).Rows() {
			if err != nil {
				return "", err
			}
			if k := cells["k"].(int64); rows[k] != cells["v"].(int64) {
				return "", fmt.Errorf("table %s: the index leads to row %v, want %d", t.Name(), cells, rows[k])
			}
			n++
		}
		if n != len(rows) {
			return "", fmt.Errorf("table %s: the index leads to %d of %d rows", t.Name(), n, len(rows))
		}
	}
	return m.String(), nil
}

// byValue is the index of tables.
const byValue = "by_v"
