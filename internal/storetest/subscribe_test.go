package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// streamTable is a table of numbers and its content by key.
type streamTable struct {
	*oribi.Table
	rows map[int64]int64
}

// streamModel writes to tables and records the events that the writes make.
type streamModel struct {
	t      *testing.T
	rng    *rand.Rand
	fs     vfs.FS
	store  *oribi.Store
	tables [2]streamTable
	times  []mvcc.Timestamp // of all write batches
	events [][]string       // of the write batches; empty for a batch that changed nothing
}

func newStreamModel(t *testing.T) *streamModel {
	m := &streamModel{t: t, rng: seedtest.Rand(t), fs: vfs.NewMem()}
	for i := range m.tables {
		m.tables[i].rows = map[int64]int64{}
	}
	m.open()
	t.Cleanup(func() { m.store.Close() })
	return m
}

func (m *streamModel) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *streamModel) open() {
	var err error
	m.store, err = oribi.Open("/stream",
		&oribi.Options{FS: m.fs, Manual: true, History: oribi.HistoryForever, RowSetBytes: 1 << 13,
			LogSegmentBytes: 1 << 14, MemoryLimit: 16 << 20})
	m.must(err)
	for i := range m.tables {
		m.tables[i].Table = numbersTable(m.t, m.store, fmt.Sprint("t", i))
	}
}

// write carries out fn, which returns the timestamp of its write batch and changes rows, and
// records the events.
func (m *streamModel) write(fn func() (mvcc.Timestamp, error)) {
	m.t.Helper()
	var before [2]map[int64]int64
	for i := range m.tables {
		before[i] = maps.Clone(m.tables[i].rows)
	}
	ts, err := fn()
	m.must(err)
	var events []string
	for i := range m.tables {
		keys := maps.Clone(before[i])
		maps.Copy(keys, m.tables[i].rows)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			old, existed := before[i][k]
			now, exists := m.tables[i].rows[k]
			if existed != exists || old != now {
				events = append(events, event(fmt.Sprint("t", i), k, old, existed, now, exists))
			}
		}
	}
	if ts != 0 { // 0: no row was found that could be changed
		m.times, m.events = append(m.times, ts), append(m.events, events)
	}
}

func event(table string, k, old int64, existed bool, now int64, exists bool) string {
	side := func(v int64, ok bool) string {
		if !ok {
			return "none"
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%s %d: %s, %s", table, k, side(old, existed), side(now, exists))
}

// eventsOf returns the events of a batch.
func eventsOf(b *oribi.CommittedBatch) (events []string) {
	for _, c := range b.Changes {
		before, after := c.BeforeRow(), c.AfterRow()
		old, existed := before["v"].(int64)
		now, exists := after["v"].(int64)
		kind := map[[2]bool]oribi.ChangeKind{{false, true}: oribi.Inserted, {true, true}: oribi.Updated,
			{true, false}: oribi.Deleted}[[2]bool{existed, exists}]
		e := event(c.Table.Name(), c.KeyRow()["k"].(int64), old, existed, now, exists)
		if c.Kind != kind {
			e += " as " + c.Kind.String()
		}
		events = append(events, e)
	}
	return events
}

// commit commits a batch of some operations, among them such that change nothing, and several on
// one row.
func (m *streamModel) commit(most int) {
	m.write(func() (mvcc.Timestamp, error) {
		b := m.store.NewBatch()
		for range 1 + m.rng.IntN(most) {
			table := &m.tables[m.rng.IntN(2)]
			k, v := m.rng.Int64N(400), m.rng.Int64N(4)
			switch m.rng.IntN(4) {
			case 0:
				b.Row(oribi.OpDeleteIgnore, table.Table, oribi.Row{"k": k})
				delete(table.rows, k)
			case 1:
				b.Row(oribi.OpUpdateIgnore, table.Table, number(k, v))
				if _, ok := table.rows[k]; ok {
					table.rows[k] = v
				}
			default:
				b.Upsert(table.Table, number(k, v))
				table.rows[k] = v
			}
		}
		return b.Commit(context.Background(), oribi.NoSync)
	})
}

// step does one thing at random: mostly commits, sometimes other writes, and jobs, which make no
// events.
func (m *streamModel) step() {
	ctx, table := context.Background(), &m.tables[m.rng.IntN(2)]
	switch n := m.rng.IntN(100); {
	case n < 4:
		m.must(table.Flush(ctx))
	case n < 6:
		m.must(table.Compact(ctx))
	case n < 8: // more than the store remembers
		for range 3 {
			m.commit(10_000)
		}
	case n < 9:
		m.write(func() (mvcc.Timestamp, error) {
			clear(table.rows)
			r, err := table.Truncate(ctx)
			return r.Timestamp, err
		})
	case n < 11:
		from := m.rng.Int64N(400)
		m.write(func() (mvcc.Timestamp, error) {
			for k := range table.rows {
				if k >= from && k < from+50 {
					delete(table.rows, k)
				}
			}
			r, err := table.DeleteRange(ctx, from, from+50)
			return r.Timestamp, err
		})
	case n < 12:
		m.write(func() (mvcc.Timestamp, error) { return m.ingest(table) })
	default:
		m.commit(8)
	}
}

// ingest loads 3,000 rows after all others.
func (m *streamModel) ingest(table *streamTable) (mvcc.Timestamp, error) {
	first := int64(1000)
	for k := range table.rows {
		first = max(first, k+1)
	}
	ts, _, err := table.Ingest(context.Background(), func(yield func([]*batch.Vector, error) bool) {
		var keys []int64
		for k := first; k < first+3000; k++ {
			keys = append(keys, k)
			table.rows[k] = k
		}
		yield(numberVectors(keys...), nil)
	})
	return ts, err
}

// streamReader reads a subscription and compares it with the model.
type streamReader struct {
	m    *streamModel
	next func() (*oribi.CommittedBatch, error, bool)
	stop func()
	at   int // the first write batch that was not read
}

// read begins after the write batch with an index; −1 begins before the first one.
func (m *streamModel) read(after int, until mvcc.Timestamp) *streamReader {
	from := mvcc.Min
	if after >= 0 {
		from = m.times[after]
	}
	ctx, cancel := context.WithTimeout(context.Background(), minute) // a batch that is missing is an error
	m.t.Cleanup(cancel)
	r := &streamReader{m: m, at: after + 1}
	r.next, r.stop = iter.Pull2(m.store.Subscribe(ctx, from, until))
	return r
}

// upTo reads the write batches with indexes below n.
func (r *streamReader) upTo(n int) {
	m := r.m
	m.t.Helper()
	for ; r.at < n; r.at++ {
		var got []string
		for more := len(m.events[r.at]) > 0; more; {
			b, err, ok := r.next()
			if !ok || err != nil || b.Timestamp != m.times[r.at] {
				m.t.Fatalf("write batch %d at %v: %+v, %v, %t", r.at, m.times[r.at], b, err, ok)
			}
			if len(b.Changes) == 0 || len(b.Changes) > 4096 {
				m.t.Fatalf("a piece of %d changes", len(b.Changes))
			}
			got, more = append(got, eventsOf(b)...), b.More
		}
		if !slices.Equal(got, m.events[r.at]) {
			m.t.Fatalf("write batch %d at %v:\n%s\nwant\n%s", r.at, m.times[r.at], strings.Join(got, "\n"),
				strings.Join(m.events[r.at], "\n"))
		}
	}
}

// Subscriptions begin at any time and read at any pace, so that they switch between recent changes
// and history, among flushes, compactions, bulk writes, ingests, and restarts. All of them yield
// the same write batches.
func TestSubscriptionYieldsEachWriteBatchOnce(t *testing.T) {
	m := newStreamModel(t)
	for range seedtest.Rounds(4, 2) {
		last := len(m.times) - 1
		readers := []*streamReader{m.read(-1, mvcc.Max), m.read(last, mvcc.Max), m.read(last, mvcc.Max)}
		for range 100 {
			m.step()
			switch r := readers[m.rng.IntN(len(readers))]; m.rng.IntN(6) {
			case 0:
				r.upTo(len(m.times))
			case 1:
				r.upTo(min(len(m.times), r.at+m.rng.IntN(5)))
			}
		}
		readers = append(readers, m.read(m.rng.IntN(len(m.times)), m.times[len(m.times)-1]))
		for _, r := range readers {
			r.upTo(len(m.times))
		}
		if b, err, ok := readers[3].next(); ok {
			t.Fatalf("after the end: %+v, %v", b, err)
		}
		for _, r := range readers {
			r.stop()
		}
		m.must(m.store.Close())
		m.open()
	}
}

// A subscription that waits for the next write batch gets it, and a busy subscription keeps no
// writer waiting.
func TestSubscriptionWaitsForWriters(t *testing.T) {
	store, table := txStore(t)
	from := put(t, store, table, map[int64]int64{1: 1})
	got := make(chan int64)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		for b, err := range store.Subscribe(ctx, from, mvcc.Max) {
			if err != nil {
				ended <- err
				return
			}
			got <- b.Changes[0].AfterRow()["v"].(int64)
		}
		ended <- nil
	}()
	within(t, minute, func() {
		for v := int64(2); v < 50; v++ {
			put(t, store, table, map[int64]int64{1: v})
			if at := <-got; at != v {
				t.Errorf("value %d, want %d", at, v)
			}
		}
		for v := int64(50); v < 200; v++ { // nobody receives
			put(t, store, table, map[int64]int64{1: v})
		}
		for v := int64(50); v < 200; v++ {
			if at := <-got; at != v {
				t.Errorf("value %d, want %d", at, v)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the error of the context", err)
		}
	})
}

func TestSubscriptionEnds(t *testing.T) {
	ctx := context.Background()
	store, table := txStore(t)
	first := put(t, store, table, map[int64]int64{1: 1})
	last := put(t, store, table, map[int64]int64{2: 2})
	ends := func(name string, s *oribi.Store, from, until mvcc.Timestamp, want error, batches int) {
		t.Helper()
		n := 0
		var got error
		within(t, minute, func() {
			for _, err := range s.Subscribe(ctx, from, until) {
				if got = err; err == nil {
					n++
				}
			}
		})
		must.Equal(t, n, batches, name, "batches")
		must.Fail(t, got, want, name)
	}
	ends("until", store, first, last, nil, 1)
	ends("until the beginning", store, last, first, nil, 0)
	ends("from the future", store, mvcc.Last, mvcc.Max, oribi.ErrFuture, 0)
	ends("until the future", store, first, mvcc.Last, oribi.ErrFuture, 0)
	n := 0
	for range store.Subscribe(ctx, first-1, mvcc.Max) {
		if n++; n == 2 {
			break
		}
	}
	if info, err := store.Info(); err != nil || len(info.Snapshots) != 0 {
		t.Errorf("snapshots %v are left, %v", info.Snapshots, err)
	}
	next, stop := iter.Pull2(store.Subscribe(ctx, first, mvcc.Max))
	defer stop()
	next()
	store.Close()
	if b, err, _ := next(); !errors.Is(err, oribi.ErrClosed) {
		t.Errorf("after Close: %v, %v", b, err)
	}
	ends("closed", store, first, mvcc.Max, oribi.ErrClosed, 0)
}
