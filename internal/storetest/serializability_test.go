package storetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

const lists = 6

// listState is the content of each list as a reader finds it: its elements in the order in which
// they were appended.
type listState [lists][]uint32

// listWrite is a batch that appends a unique element to each of some lists, if all of them are
// still as it read them.
type listWrite struct {
	call, ret int64 // on a clock of all goroutines
	ts        mvcc.Timestamp
	element   uint32
	refused   bool // ErrConflict: a list had changed
	before    map[int][]uint32
}

// listRead is one read of all lists.
type listRead struct {
	call int64
	asOf mvcc.Timestamp // 0: the newest state
	seen listState
}

// checkLists checks that batches and reads took place one after another in the order of the
// batches' timestamps, which is also their order in real time: a batch that ended before another
// one, or a read of the newest state, started, precedes it.
//
// Elements are unique, so each list determines which batches made it and in which order. The
// timestamps give the one order to check:
//
//   - a batch read its lists as all batches with lower timestamps made them;
//   - a read as of ts returns what the batches up to ts made; one of the newest state what those up
//     to the newest that it sees made;
//   - a refused batch is in no list, any other in all of its lists, at the end too.
func checkLists(writes []listWrite, reads []listRead) error {
	taken := slices.DeleteFunc(slices.Clone(writes), func(w listWrite) bool { return w.refused })
	slices.SortFunc(taken, func(a, b listWrite) int { return int(int64(a.ts) - int64(b.ts)) })
	var now listState
	states := []listState{now} // states[i]: after i batches
	at := map[uint32]int{}     // for each element, the number of batches that contain it
	for i, w := range taken {
		if i > 0 && w.ts == taken[i-1].ts {
			return fmt.Errorf("two batches at %d", w.ts)
		}
		for k, list := range w.before {
			if !slices.Equal(list, now[k]) {
				return fmt.Errorf("batch at %d found list %d as %v, it was %v", w.ts, k, list, now[k])
			}
			now[k] = append(now[k][:len(now[k]):len(now[k])], w.element)
		}
		states, at[w.element] = append(states, now), i+1
	}
	for _, r := range reads {
		n := 0
		if r.asOf > 0 {
			n, _ = slices.BinarySearchFunc(taken, r.asOf+1, func(w listWrite, ts mvcc.Timestamp) int {
				return int(int64(w.ts) - int64(ts))
			})
		} else {
			for _, list := range r.seen {
				for _, e := range list {
					n = max(n, at[e])
				}
			}
		}
		for k := range lists {
			if !slices.Equal(r.seen[k], states[n][k]) {
				return fmt.Errorf("a read as of %d found list %d as %v, after %d batches it was %v", r.asOf,
					k, r.seen[k], n, states[n][k])
			}
		}
		if r.asOf > 0 {
			continue
		}
		for _, w := range taken[n:] {
			if w.ret < r.call {
				return fmt.Errorf("a read of the newest state does not see the batch at %d, which ended before", w.ts)
			}
		}
	}
	first := int64(math.MaxInt64) // the earliest end of all later batches
	for _, w := range slices.Backward(taken) {
		if first < w.call {
			return fmt.Errorf("the batch at %d began after one with a higher timestamp had ended", w.ts)
		}
		first = min(first, w.ret)
	}
	return nil
}

// The checker must find these violations.
func TestListCheckerFindsViolations(t *testing.T) {
	history := func() ([]listWrite, []listRead) {
		return []listWrite{
				{call: 1, ret: 4, ts: 10, element: 1, before: map[int][]uint32{0: nil, 1: nil}},
				{call: 2, ret: 6, ts: 11, element: 2, before: map[int][]uint32{1: {1}}},
				{call: 7, ret: 9, ts: 12, element: 3, refused: true, before: map[int][]uint32{1: {1}}},
				{call: 8, ret: 12, ts: 13, element: 4, before: map[int][]uint32{0: {1}}},
			}, []listRead{
				{call: 3, seen: listState{}},
				{call: 5, seen: listState{{1}, {1}}},
				{call: 13, seen: listState{{1, 4}, {1, 2}}},
				{call: 13, asOf: 10, seen: listState{{1}, {1}}},
				{call: 13, asOf: 12, seen: listState{{1}, {1, 2}}},
			}
	}
	must.Do(t, checkLists(history()))
	for name, spoil := range map[string]func(w []listWrite, r []listRead){
		"a lost update": func(w []listWrite, r []listRead) { w[1].before[1] = nil },
		"a refused batch that is visible": func(w []listWrite, r []listRead) {
			r[2].seen[1] = []uint32{1, 2, 3}
		},
		"half a batch":        func(w []listWrite, r []listRead) { r[1].seen[1] = nil },
		"an old newest state": func(w []listWrite, r []listRead) { r[2].seen[0] = []uint32{1} },
		"a newest state mixed from two points in time": func(w []listWrite, r []listRead) {
			r[2].seen[1] = []uint32{1}
		},
		"a past read that sees too much":   func(w []listWrite, r []listRead) { r[3].seen[1] = []uint32{1, 2} },
		"a past read that sees too little": func(w []listWrite, r []listRead) { r[4].seen[1] = []uint32{1} },
		"elements in another order":        func(w []listWrite, r []listRead) { r[2].seen[1] = []uint32{2, 1} },
		"timestamps that contradict real time": func(w []listWrite, r []listRead) {
			w[1].call, w[0].call, w[1].ret = 1, 3, 2
		},
		"a duplicate timestamp": func(w []listWrite, r []listRead) { w[1].ts = 10 },
	} {
		w, r := history()
		spoil(w, r)
		must.Refuse(t, checkLists(w, r), "not detected", name)
	}
}

// listStore returns a store with frequent flushes and compactions, and a table of lists.
func listStore(t *testing.T) (*oribi.Store, *oribi.Table) {
	store, _ := busyStore(t, vfs.NewMem())
	table := tableOf(t, store, "lists", "k*:int64 v:binary")
	return store, table
}

func listOf(cell []byte) (list []uint32) {
	for ; len(cell) > 0; cell = cell[4:] {
		list = append(list, binary.BigEndian.Uint32(cell))
	}
	return list
}

// appendToLists commits a batch that appends to some lists, if they are unchanged since they were
// read.
func appendToLists(
	store *oribi.Store, table *oribi.Table, r *rand.Rand, element uint32, clock *atomic.Int64,
) (w listWrite, err error) {
	ctx := context.Background()
	w = listWrite{element: element, before: map[int][]uint32{}}
	b := store.NewBatch()
	for _, k := range r.Perm(lists)[:1+r.IntN(3)] {
		key := oribi.Row{"k": k}
		row, err := table.Get(ctx, k)
		if errors.Is(err, oribi.ErrNotFound) {
			b.IfAbsent(table, key)
			b.Insert(table, oribi.Row{"k": k, "v": binary.BigEndian.AppendUint32(nil, element)})
			w.before[k] = nil
			continue
		}
		if err != nil {
			return w, err
		}
		old := row["v"].([]byte)
		b.If(table, key, oribi.Eq("v", old))
		b.Update(table, oribi.Row{"k": k, "v": binary.BigEndian.AppendUint32(bytes.Clone(old), element)})
		w.before[k] = listOf(old)
	}
	var opts []oribi.CommitOption
	if r.IntN(3) > 0 {
		opts = append(opts, oribi.NoSync)
	}
	w.call = clock.Add(1)
	w.ts, err = b.Commit(ctx, opts...)
	w.ret = clock.Add(1)
	if w.refused = errors.Is(err, oribi.ErrConflict); w.refused {
		err = nil
	}
	return w, err
}

func readLists(table *oribi.Table, asOf mvcc.Timestamp, clock *atomic.Int64) (r listRead, err error) {
	r = listRead{call: clock.Add(1), asOf: asOf}
	at := oribi.Latest()
	if asOf > 0 {
		at = oribi.AsOf(asOf)
	}
	for row, err := range table.Scan(context.Background(), at).Rows() {
		if err != nil {
			return r, err
		}
		r.seen[row["k"].(int64)] = listOf(row["v"].([]byte))
	}
	return r, nil
}

// moveRows runs a random flush or compaction.
func moveRows(table *oribi.Table, r *rand.Rand) (err error) {
	ctx := context.Background()
	switch r.IntN(6) {
	case 0:
		err = table.Compact(ctx)
	case 1:
		_, err = table.FlushDeltas(ctx)
	case 2:
		_, err = table.CompactMinor(ctx)
	case 3:
		_, err = table.CompactMajor(ctx)
	case 4:
		_, err = table.CollectUndos(ctx)
	default:
		err = table.Flush(ctx)
	}
	return err
}

// Batches append to several lists each, on condition that these are unchanged since they were read.
// Other goroutines read all lists, at the newest and at past timestamps, and rows are flushed and
// compacted. The result is strictly serializable.
func TestBatchesOverListsAreStrictlySerializable(t *testing.T) {
	store, table := listStore(t)
	defer store.Close()
	c := newCrew(t)
	var clock atomic.Int64
	var element atomic.Uint32
	var mu sync.Mutex
	var writes []listWrite
	var reads []listRead
	c.each(4, func(r *rand.Rand) error {
		w, err := appendToLists(store, table, r, element.Add(1), &clock)
		mu.Lock()
		defer mu.Unlock()
		if writes = append(writes, w); len(writes) == 5000 {
			c.stop()
		}
		return err
	})
	c.each(2, func(r *rand.Rand) error {
		var asOf mvcc.Timestamp
		if r.IntN(2) == 0 {
			mu.Lock()
			if n := len(writes); n > 0 {
				asOf = writes[n-1-r.IntN(min(n, 50))].ts // of a refused one 0
			}
			mu.Unlock()
		}
		read, err := readLists(table, asOf, &clock)
		mu.Lock()
		defer mu.Unlock()
		reads = append(reads, read)
		return err
	})
	c.each(1, func(r *rand.Rand) error { return moveRows(table, r) })
	c.work(proofTime(200 * time.Millisecond))
	last := must.Get(readLists(table, 0, &clock))(t)
	if err := checkLists(writes, append(reads, last)); err != nil {
		text := err.Error()
		t.Error(text[:min(len(text), 2000)] + strings.Repeat("…", btoi(len(text) > 2000)))
	}
	refused := 0
	for _, w := range writes {
		refused += btoi(w.refused)
	}
	if t.Logf("%d batches, %d refused, %d reads", len(writes), refused, len(reads)); refused == len(writes) {
		t.Error("every batch was refused")
	}
}
