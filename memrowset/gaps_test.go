package memrowset

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// comesAndGoes is a list of changes, of one row each, that leave runs of deleted rows, and the model
// of the rows at any time. Change i is at timestamp i + 1.
type comesAndGoes struct {
	keys    [][]byte                    // of change i
	changes map[string][]mvcc.Timestamp // of a key: insert, delete, insert, …
	sorted  []string
}

func (c *comesAndGoes) live(key string) bool { return len(c.changes[key])%2 == 1 }

// add adds a change: an insert of a key that is not live, else a delete.
func (c *comesAndGoes) add(key string) {
	c.keys = append(c.keys, []byte(key))
	c.changes[key] = append(c.changes[key], mvcc.Timestamp(len(c.keys)))
}

// liveAt returns whether the key is live in a snapshot.
func (c *comesAndGoes) liveAt(key string, snap mvcc.Snapshot) bool {
	n, _ := slices.BinarySearch(c.changes[key], mvcc.Timestamp(snap)) // the changes before it
	return n%2 == 1
}

// at returns the live keys in [lower, upper) in a snapshot, up to most of them, in the order of a walk.
func (c *comesAndGoes) at(snap mvcc.Snapshot, lower, upper []byte, descending bool, most int) (keys [][]byte) {
	for i := range c.sorted {
		if descending {
			i = len(c.sorted) - 1 - i
		}
		k := c.sorted[i]
		if k >= string(lower) && (upper == nil || k < string(upper)) && c.liveAt(k, snap) {
			if keys = append(keys, []byte(k)); len(keys) == most {
				break
			}
		}
	}
	return keys
}

// Each kind of region has keys with a prefix of its own.
const (
	queueRegion  = iota // rows come at the end and go at the beginning
	stackRegion         // rows come and go at the end: they come back
	dequeRegion         // both at both ends
	randomRegion        // anywhere
	rangeRegion         // whole ranges
	regions
)

func regionKey(region, n int) string {
	return string(binary.BigEndian.AppendUint32([]byte{'p', byte(region)}, uint32(n)))
}

// makeComesAndGoes makes about n changes in all regions, which are side by side.
func makeComesAndGoes(r *rand.Rand, n int) *comesAndGoes {
	c := &comesAndGoes{changes: map[string][]mvcc.Timestamp{}}
	const middle, span = 1 << 20, 200
	var from, to [regions]int
	for i := range from {
		from[i], to[i] = middle, middle
	}
	for len(c.keys) < n {
		region := r.IntN(regions)
		lo, hi := &from[region], &to[region]
		push := r.IntN(2) == 0
		if (len(c.keys)/(n/8))%2 == 0 {
			push = r.IntN(10) < 7 // at some times it grows, at others it shrinks
		} else {
			push = r.IntN(10) < 3
		}
		front := region == queueRegion && !push || region == dequeRegion && r.IntN(2) == 0
		switch {
		case region == randomRegion:
			c.add(regionKey(region, r.IntN(3*span)))
		case region == rangeRegion:
			// New rows come between the old ones.
			for k, end := r.IntN(3*span), r.IntN(3*span); k < end; k += 1 + r.IntN(3) {
				key := regionKey(region, k)
				if push && r.IntN(2) == 0 {
					key += string(byte(r.IntN(4)))
				}
				if c.live(key) != push {
					c.add(key)
				}
			}
		case push && front:
			*lo--
			c.add(regionKey(region, *lo))
		case push:
			c.add(regionKey(region, *hi))
			*hi++
		case *lo == *hi:
		case front:
			c.add(regionKey(region, *lo))
			*lo++
		default:
			*hi--
			c.add(regionKey(region, *hi))
		}
	}
	for key := range c.changes {
		c.sorted = append(c.sorted, key)
	}
	slices.Sort(c.sorted)
	return c
}

// apply applies change i.
func (c *comesAndGoes) apply(m *MemRowSet, i int) {
	key, ts := c.keys[i], mvcc.Timestamp(i+1)
	if n, _ := slices.BinarySearch(c.changes[string(key)], ts); n%2 == 0 {
		m.Insert(key, ts, lsn.LSN(i+1), image(m, string(key), i, ""))
	} else {
		m.Mutate(key, ts, lsn.LSN(i+1), deletion)
	}
}

// check compares a walk in a snapshot with the model: a part of it, in either direction.
func (c *comesAndGoes) check(t *testing.T, r *rand.Rand, m *MemRowSet, it *Iterator, snap mvcc.Snapshot) {
	var bounds [2][]byte
	if region := r.IntN(2 * regions); region < regions {
		bounds[0], bounds[1] = []byte(regionKey(region, 0)), []byte(regionKey(region+1, 0))
		if r.IntN(4) == 0 {
			bounds[r.IntN(2)] = []byte(c.sorted[r.IntN(len(c.sorted))])
		}
	}
	lower, upper := bounds[0], bounds[1]
	descending, most := r.IntN(2) == 0, 1
	if r.IntN(3) == 0 {
		most = 1 + r.IntN(2*len(c.sorted))
	}
	it.Reset(m, snap, lower, upper, descending)
	var got [][]byte
	for len(got) < most {
		keys, _ := it.Next(min(most-len(got), 1+r.IntN(100)))
		if keys == nil {
			break
		}
		got = append(got, keys...)
	}
	if want := c.at(snap, lower, upper, descending, most); !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%d keys of [%x, %x) in %d, descending %t, differ from %d in the model: %x and %x",
			len(got), lower, upper, snap, descending, len(want), first(got), first(want))
	}
}

func first(keys [][]byte) []byte {
	if len(keys) == 0 {
		return nil
	}
	return keys[0]
}

// Reads of all kinds of runs of deleted rows agree with the model, now and in the past, between the
// changes and after them.
func TestGapsAgreeWithTheModel(t *testing.T) {
	r := seedtest.Rand(t)
	c := makeComesAndGoes(r, seedtest.Rounds(30_000, 6_000))
	m := New(testSchema(t), nil)
	var it Iterator
	for i := range c.keys {
		c.apply(m, i)
		if r.IntN(8) == 0 {
			c.check(t, r, m, &it, mvcc.Snapshot(i+2))
		}
		if r.IntN(80) == 0 {
			c.check(t, r, m, &it, mvcc.Snapshot(r.IntN(i+2)))
		}
		if t.Failed() {
			return
		}
	}
}

// The same with two writers, each of its own rows, and readers at the same time.
func TestGapsEndWhileReadersSetThem(t *testing.T) {
	r := seedtest.Rand(t)
	c := makeComesAndGoes(r, seedtest.Rounds(30_000, 6_000))
	m := New(testSchema(t), nil)
	var published atomic.Int64 // changes
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for i, key := range c.keys {
				if int(key[len(key)-1])%2 != w {
					continue
				}
				for published.Load() < int64(i)-1 && !t.Failed() {
					runtime.Gosched() // the other writer may be one change behind
				}
				c.apply(m, i)
				for !published.CompareAndSwap(int64(i), int64(i)+1) && !t.Failed() {
					runtime.Gosched()
				}
			}
		})
	}
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 1))
		wg.Go(func() {
			var it Iterator
			for n := int64(0); n < int64(len(c.keys)) && !t.Failed(); {
				n = published.Load()
				c.check(t, r, m, &it, mvcc.Snapshot(n+1))
			}
		})
	}
	wg.Wait()
}

// A row that comes back after a walk has looked at it, and before the walk has looked at the last row of
// its leaf, ends the gap that the walk then sets.
func TestGapIsNotSetAfterAReinsert(t *testing.T) {
	m := New(testSchema(t), nil)
	key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	const n = 3 * leafItems
	for i := range n {
		m.Insert(key(i), 1, 1, image(m, string(key(i)), i, ""))
		m.Mutate(key(i), 2, 1, deletion)
	}
	m.NewIterator(3, nil, nil, false).Next(1) // learns that gaps are needed
	for _, look := range []int{leafItems / 2, leafItems} {
		ts := mvcc.Timestamp(look)
		it := m.NewIterator(mvcc.Before(ts), nil, nil, false)
		it.looked(it.next(look), true)
		m.Insert(key(1), ts, 1, image(m, string(key(1)), 1, ""))
		if keys, _ := it.Next(1); keys != nil {
			t.Errorf("the walk sees a row %x that came later", keys[0])
		}
		if keys, _ := m.NewIterator(mvcc.AsOf(ts), nil, nil, false).Next(1); len(keys) != 1 {
			t.Errorf("the row is missing after a walk has looked at %d rows before it", look)
		}
		m.Mutate(key(1), ts+1, 1, deletion)
	}
}

// Walks pass over deleted rows in a number of steps that grows with the logarithm of their number, in
// both directions, whatever is inserted elsewhere. Reads of the time before the deletes see all of them.
func TestGapsArePassedOver(t *testing.T) {
	const n = 50_000
	m := New(testSchema(t), nil)
	key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }
	ts := mvcc.Timestamp(0)
	insert := func(i int) {
		ts++
		m.Insert(key(i), ts, 1, image(m, string(key(i)), i, ""))
	}
	for i := range n {
		insert(i)
	}
	full := mvcc.AsOf(ts)
	for i := 1; i < n-1; i++ {
		ts++
		m.Mutate(key(i), ts, 1, deletion)
	}
	// rows returns the rows of a walk as of the newest change, and how many rows it looked at.
	rows := func(descending bool) (live, looked int) {
		it := m.NewIterator(mvcc.AsOf(ts), nil, nil, descending)
		for {
			refs := it.next(leafItems)
			if len(refs) == 0 {
				return live, looked
			}
			looked += len(refs)
			before := live
			for _, ref := range refs {
				if _, _, ok := m.rowAt(m.header(ref), it.snap, nil); ok {
					live++
				}
			}
			it.looked(refs, live == before)
		}
	}
	rows(false) // learns that gaps are needed
	rows(true)
	for _, descending := range []bool{false, true} {
		if live, looked := rows(descending); live != 2 || looked > 3*leafItems {
			t.Errorf("%d rows, of %d that were looked at, descending %t", live, looked, descending)
		}
	}
	nodes := func(descending bool) (visited int) {
		it := m.NewIterator(mvcc.AsOf(ts), nil, nil, descending)
		it.next(1)
		for it.place(); it.leaf != nil; it.nextLeaf() {
			visited++
		}
		return visited
	}
	if n := nodes(false) + nodes(true); n > 6 {
		t.Errorf("%d leaves visited", n)
	}
	insert(n)     // at the end
	insert(n / 2) // a row comes back in the middle of the gap
	const more = 20
	for i := range more { // new rows in the gap
		ts++
		between := append(key(i*n/more), 0)
		m.Insert(between, ts, 1, image(m, string(between), 0, ""))
	}
	for _, descending := range []bool{false, true} {
		if live, looked := rows(descending); live != 4+more || looked > 2*(4+more)*leafItems {
			t.Errorf("after inserts: %d rows, of %d that were looked at, descending %t", live, looked, descending)
		}
	}
	it := m.NewIterator(full, nil, nil, false)
	for got := 0; ; {
		keys, _ := it.Next(1000)
		if got += len(keys); keys == nil {
			must.Equal(t, got, n, "rows before the deletes")
			return
		}
	}
}
