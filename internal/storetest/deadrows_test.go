package storetest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// queueRow is a row of several queues, stacks, and sets side by side.
type queueRow struct {
	Queue int64 `oribi:"queue,key"`
	N     int64 `oribi:"n,key"`
	Body  int64 `oribi:"body"` // 10 n + 1
}

// queues is a table of queues and the model of its rows at any time.
type queues struct {
	store *oribi.Store
	rows  *oribi.TableOf[queueRow]

	mu   sync.RWMutex
	past map[int64][]queuePast // of each queue, in ascending order of n
	last []mvcc.Timestamp      // of each writer
}

// queuePast has the times at which a row came, went, came, …
type queuePast struct {
	n       int64
	changes []mvcc.Timestamp
}

func (p queuePast) compare(n int64) int { return cmp.Compare(p.n, n) }

func newQueues(t *testing.T, writers int) *queues {
	store := must.Get(oribi.Open("/queues", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewLogicalClock(1),
		Manual: true, History: oribi.HistoryForever, RowSetBytes: 1 << 17}))(t)
	t.Cleanup(func() { store.Close() })
	return &queues{store: store, rows: must.Get(oribi.OpenTable[queueRow](store, "queues"))(t),
		past: map[int64][]queuePast{}, last: make([]mvcc.Timestamp, writers)}
}

func (p queuePast) liveAt(at mvcc.Timestamp) bool {
	n := len(p.changes)
	for n > 0 && p.changes[n-1] > at {
		n--
	}
	return n%2 == 1
}

// live returns the live rows of a queue at a time, in ascending order.
func (q *queues) live(queue int64, at mvcc.Timestamp) (ns []int64) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for _, p := range q.past[queue] {
		if p.liveAt(at) {
			ns = append(ns, p.n)
		}
	}
	return ns
}

// queueWriter changes its own queues.
type queueWriter struct {
	*queues
	number int
	r      *rand.Rand
	end    map[int64]int64 // one above the greatest n of a queue
	ops    []queueRow
	goes   []bool
}

// Kinds of queues: queue % queueKinds.
const (
	fifo   = iota // rows come at the end and go at the beginning
	lifo          // rows come and go at the end: they come back
	sets          // rows come and go anywhere
	ranges        // ranges come and go
	queueKinds
)

// step changes up to a few thousand rows of a queue in one write batch.
func (w *queueWriter) step(t *testing.T, queue int64) {
	now := w.live(queue, mvcc.Max-1)
	most := 1 + w.r.IntN(20)
	if w.r.IntN(3) == 0 {
		most = 1 + w.r.IntN(6000)
	}
	var come, gone []int64
	grows := w.r.IntN(20) < 10-min(9, len(now)/2000)
	end := w.end[queue]
	switch kind := queue % queueKinds; {
	case grows && kind == fifo:
		for n := range int64(most) {
			come = append(come, end+n)
		}
	case grows && kind == lifo:
		next := int64(0)
		if len(now) > 0 {
			next = now[len(now)-1] + 1
		}
		for n := range int64(most) {
			come = append(come, next+n)
		}
	case grows:
		first, step := w.r.Int64N(end+1), 1+w.r.Int64N(3)
		for n := range int64(most) {
			come = append(come, first+step*n)
		}
		come = slices.DeleteFunc(come, func(n int64) bool {
			_, found := slices.BinarySearch(now, n)
			return found
		})
	case kind == fifo:
		gone = now[:min(most, len(now))]
	case kind == lifo:
		gone = now[max(0, len(now)-most):]
	case kind == ranges && len(now) > 0:
		from := w.r.IntN(len(now))
		gone = now[from:min(len(now), from+most)]
	default:
		for _, n := range now {
			if w.r.IntN(3) == 0 && len(gone) < most {
				gone = append(gone, n)
			}
		}
	}
	b := w.store.NewBatch()
	for _, n := range come {
		w.rows.InBatch(b).Insert(queueRow{queue, n, 10*n + 1})
		w.end[queue] = max(w.end[queue], n+1)
	}
	for _, n := range gone {
		w.rows.InBatch(b).Delete(queueRow{Queue: queue, N: n})
	}
	ts, err := b.Commit(context.Background(), oribi.NoSync)
	if err != nil {
		t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := w.past[queue]
	known := len(rows)
	for _, n := range append(come, gone...) {
		if i, found := slices.BinarySearchFunc(rows[:known], n, queuePast.compare); found {
			rows[i].changes = append(rows[i].changes, ts)
		} else {
			rows = append(rows, queuePast{n, []mvcc.Timestamp{ts}})
		}
	}
	slices.SortFunc(rows, func(a, b queuePast) int { return a.compare(b.n) })
	w.past[queue] = rows
	w.last[w.number] = ts
}

// work flushes or compacts.
func (q *queues) work(t *testing.T, r *rand.Rand) {
	ctx, table := context.Background(), q.rows.Table
	var err error
	switch r.IntN(6) {
	case 0, 1:
		err = table.Flush(ctx)
	case 2, 3:
		_, err = table.FlushDeltas(ctx)
	case 4:
		_, err = table.CompactMajor(ctx)
	default:
		err = table.Compact(ctx)
	}
	if err != nil {
		t.Error(err)
	}
}

// check compares a read of a queue, or of a part of it, with the model: as of the newest time up to
// which the model has all changes, or before.
func (q *queues) check(t *testing.T, r *rand.Rand, queue int64) {
	ctx := context.Background()
	q.mu.RLock()
	at := slices.Min(q.last)
	q.mu.RUnlock()
	if at == 0 {
		return
	}
	if r.IntN(4) == 0 {
		at = 1 + mvcc.Timestamp(r.Uint64N(uint64(at)))
	}
	want := q.live(queue, at)
	limit := 1
	if r.IntN(3) == 0 {
		limit = 1 + r.IntN(len(want)+1)
	}
	first := want[:min(limit, len(want))]
	last := slices.Clone(want[max(0, len(want)-limit):])
	slices.Reverse(last)
	part := []oribi.RangeOption{oribi.Prefix(queue)}
	equal := func(what string, got, want []int64) {
		if !slices.Equal(got, want) {
			t.Errorf("%s of queue %d at %d, limit %d: %d rows from %v, want %d from %v", what, queue, at, limit,
				len(got), got[:min(3, len(got))], len(want), want[:min(3, len(want))])
		}
	}
	scan := func(opts ...oribi.ScanOption) (got []int64) {
		for row, err := range q.rows.Scan(ctx, append(opts, part[0], oribi.AsOf(at))...) {
			if err != nil || row.Queue != queue || row.Body != 10*row.N+1 {
				t.Errorf("row %+v, %v", row, err)
				return got
			}
			got = append(got, row.N)
		}
		return got
	}
	switch r.IntN(6) {
	case 0, 1:
		equal("scan", scan(oribi.Limit(int64(limit))), first)
	case 2, 3:
		equal("descending scan", scan(oribi.Limit(int64(limit)), oribi.Desc()), last)
	case 4:
		c := q.rows.Cursor(ctx, part[0], oribi.AsOf(at))
		var got []int64
		for ok := c.First(); ok && len(got) < limit; ok = c.Next() {
			got = append(got, c.Row().N)
		}
		equal("cursor", got, first)
		got = nil
		for ok := c.Last(); ok && len(got) < limit; ok = c.Prev() {
			got = append(got, c.Row().N)
		}
		equal("cursor from the end", got, last)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	default:
		all := scan(oribi.AnyOrder(), oribi.Workers(1+r.IntN(2)))
		slices.Sort(all)
		equal("scan in any order", all, want)
		if n, err := q.rows.Table.Count(ctx, oribi.Prefix(queue), oribi.AsOf(at)); err != nil || n != int64(len(want)) {
			t.Errorf("count of queue %d at %d: %d, %v, want %d", queue, at, n, err, len(want))
		}
	}
}

// deadRowsRounds calls run with the numbers of rounds of the tests with queues, each for a store of
// its own: reads take as long as a store has changes.
func deadRowsRounds(run func(store uint64, rounds int)) {
	for rounds, store := seedtest.Rounds(800, 150), uint64(0); rounds > 0; rounds, store = rounds-250, store+1 {
		run(store, min(rounds, 250))
	}
}

// Reads pass over deleted rows, and miss no other one, in memory and on disk, now and in the past,
// whatever is flushed and compacted.
func TestReadsOfQueuesAgreeWithTheModel(t *testing.T) {
	r := seedtest.Rand(t)
	deadRowsRounds(func(_ uint64, rounds int) {
		q := newQueues(t, 1)
		w := &queueWriter{queues: q, r: r, end: map[int64]int64{}}
		for range rounds {
			queue := r.Int64N(queueKinds + 1)
			w.step(t, queue)
			if r.IntN(6) == 0 {
				q.work(t, r)
			}
			for range 4 {
				q.check(t, r, r.Int64N(queueKinds+1))
			}
			if t.Failed() {
				t.FailNow()
			}
		}
	})
}

// The same with two writers, two readers, and flushes and compactions at the same time.
func TestReadersOfQueuesNextToWritersAgreeWithTheModel(t *testing.T) {
	seed := seedtest.Seed(t)
	deadRowsRounds(func(store uint64, rounds int) {
		readQueuesNextToWriters(t, seed+store<<32, rounds)
		if t.Failed() {
			t.FailNow()
		}
	})
}

func readQueuesNextToWriters(t *testing.T, seed uint64, rounds int) {
	q := newQueues(t, 2)
	var writers, others sync.WaitGroup
	// A round allows two reads and one flush or compaction, unless the ones of earlier rounds are still due.
	reads, works := make(chan struct{}, 4), make(chan struct{}, 1)
	for number := range 2 {
		w := &queueWriter{queues: q, number: number, r: rand.New(rand.NewPCG(seed, uint64(number))), end: map[int64]int64{}}
		writers.Go(func() {
			for range rounds {
				w.step(t, int64(number)*queueKinds+w.r.Int64N(queueKinds))
				for range 2 {
					offer(reads)
				}
				offer(works)
				if t.Failed() {
					return
				}
			}
		})
	}
	for k := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 10+k))
		others.Go(func() {
			for range reads {
				q.check(t, r, r.Int64N(2*queueKinds))
			}
		})
	}
	others.Go(func() {
		r := rand.New(rand.NewPCG(seed, 20))
		for range works {
			q.work(t, r)
		}
	})
	writers.Wait()
	close(reads)
	close(works)
	others.Wait()
}

// offer sends a value if the channel has room.
func offer(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// A transaction sees its own pops and pushes next to rows that were deleted before.
func TestTransactionsPopAndPush(t *testing.T) {
	q := newQueues(t, 1)
	ctx, b := t.Context(), q.store.NewBatch()
	const n, popped = 10_000, 5000
	for k := range int64(n) {
		q.rows.InBatch(b).Insert(queueRow{0, k, 10*k + 1})
	}
	must.Get(b.Commit(ctx))(t)
	next := int64(popped)
	for _, flush := range []bool{false, true} {
		b.Reset()
		for k := range int64(popped) {
			q.rows.InBatch(b).DeleteIgnore(queueRow{Queue: 0, N: k})
		}
		must.Get(b.Commit(ctx))(t)
		if flush {
			must.Do(t, q.rows.Table.Flush(ctx))
		}
		for range 3 {
			must.Do(t, q.store.Update(ctx, func(tx *oribi.Tx) error {
				in := q.rows.In(tx)
				for range 2 {
					for row, err := range in.Scan(oribi.Limit(1)) {
						must.Do(t, err)
						if row.N != next {
							t.Errorf("row %d is first, want %d", row.N, next)
						}
						must.Do(t, in.Delete(row))
					}
					next++
				}
				back := queueRow{0, next - 1, 1} // comes back, and is the first one again
				next--
				return in.Insert(back)
			}))
		}
	}
}
