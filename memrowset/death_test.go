package memrowset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// twins are two sets with the same rows and changes. Ranges are deleted at once from a, row by row from b.
type twins struct {
	a, b *MemRowSet
	live map[string]bool
	ts   mvcc.Timestamp
}

// deathKeys is the number of keys of the tests: enough for some dozens of leaves.
const deathKeys = 2000

func deathKey(i int) string { return fmt.Sprintf("k%05d", i) }

func newTwins(t *testing.T) *twins {
	return &twins{New(testSchema(t), nil), New(testSchema(t), nil), map[string]bool{}, 1}
}

// put inserts a row, or updates it if it exists.
func (w *twins) put(key string, n int) {
	for _, m := range []*MemRowSet{w.a, w.b} {
		if w.live[key] {
			m.Mutate([]byte(key), w.ts, lsn.LSN(w.ts), set(n, "-"))
		} else {
			m.Insert([]byte(key), w.ts, lsn.LSN(w.ts), image(m, key, n, "x"))
		}
	}
	w.live[key] = true
}

func (w *twins) delete(t *testing.T, key string) {
	for _, m := range []*MemRowSet{w.a, w.b} {
		must.Equal(t, m.Mutate([]byte(key), w.ts, lsn.LSN(w.ts), deletion), w.live[key], "delete", key)
	}
	delete(w.live, key)
}

func (w *twins) deleteRange(t *testing.T, lower, upper string) {
	n := int64(0)
	for key := range w.live {
		if lower <= key && key < upper {
			w.b.Mutate([]byte(key), w.ts, lsn.LSN(w.ts), deletion)
			delete(w.live, key)
			n++
		}
	}
	must.Equal(t, w.a.LiveIn([]byte(lower), []byte(upper)), n, "live rows from", lower, "to", upper)
	must.Equal(t, w.a.DeleteRange([]byte(lower), []byte(upper), w.ts, lsn.LSN(w.ts)), n, "deleted rows from", lower, "to", upper)
}

// step makes a random change, of which several may have one timestamp.
func (w *twins) step(t *testing.T, r *rand.Rand) {
	if r.IntN(3) > 0 {
		w.ts++
	}
	i := r.IntN(deathKeys)
	switch r.IntN(40) {
	case 0: // of some or many leaves
		w.deleteRange(t, deathKey(i), deathKey(i+1+r.IntN(deathKeys/(1+r.IntN(10)))))
	case 1: // back in order, which InsertMany takes
		var keys, rows [][]byte
		for k := i; k < min(i+100, deathKeys); k++ {
			if key := deathKey(k); !w.live[key] {
				keys, rows = append(keys, []byte(key)), append(rows, image(w.a, key, k, ""))
				w.live[key] = true
			}
		}
		w.a.InsertMany(keys, w.ts, lsn.LSN(w.ts), rows)
		w.b.InsertMany(keys, w.ts, lsn.LSN(w.ts), rows)
	case 2, 3, 4:
		w.delete(t, deathKey(i))
	default:
		w.put(deathKey(i), r.IntN(100))
	}
}

// read returns what one kind of read finds in a set.
func (w *twins) read(t *testing.T, m *MemRowSet, r *rand.Rand) any {
	snap := mvcc.Snapshot(r.IntN(int(w.ts) + 2))
	if r.IntN(2) == 0 {
		snap = mvcc.Everything
	}
	lower := r.IntN(deathKeys)
	from, to := []byte(deathKey(lower)), []byte(deathKey(lower+r.IntN(deathKeys-lower)))
	var got []string
	rows := func(it *Iterator) {
		for keys, images := it.Next(1 + r.IntN(100)); keys != nil; keys, images = it.Next(100) {
			for i := range keys {
				got = append(got, string(keys[i])+" "+show(m, images[i], true))
			}
		}
	}
	switch r.IntN(9) {
	case 0:
		return at(m, string(from), snap)
	case 1:
		return m.Has(from, snap)
	case 2:
		return m.Live(from)
	case 3:
		return m.LiveIn(from, to)
	case 4:
		rows(m.NewIterator(snap, from, to, r.IntN(2) == 0))
	case 5:
		rows(m.Share(snap, from, to).NewIterator())
	case 6:
		it := m.NewIterator(snap, from, to, false)
		it.ChangedIn(mvcc.Snapshot(r.IntN(int(w.ts))), snap)
		rows(it)
	case 7:
		must.Do(t, m.EachChange(mvcc.Snapshot(r.IntN(int(w.ts))), snap, func(key []byte, ts mvcc.Timestamp) error {
			got = append(got, fmt.Sprintf("%s %d", key, ts))
			return nil
		}))
	default:
		it := m.Histories(snap)
		for h := must.Get(it.Next(100))(t); h != nil; h = must.Get(it.Next(100))(t) {
			got = append(got, fmt.Sprintf("%q %v %v", h.Keys, h.Undo, h.Redo))
		}
	}
	return got
}

// All reads, between deletes of ranges and other changes, find what they find when the rows are deleted
// one by one. Some ranges are deleted from leaves without changes, and some reads are the first after it.
func TestDeathsAgreeWithDeletesOfRows(t *testing.T) {
	r := seedtest.Rand(t)
	pending := 0
	for round := range seedtest.Needed(60, 10) {
		w := newTwins(t)
		for _, i := range r.Perm(deathKeys) {
			if round%2 == 0 {
				i = r.IntN(deathKeys)
			}
			w.put(deathKey(i), i)
		}
		for range 400 {
			w.step(t, r)
			pending += w.pending()
			if r.IntN(3) == 0 {
				seed := r.Uint64()
				a := w.read(t, w.a, rand.New(rand.NewPCG(seed, 0)))
				must.Equal(t, a, w.read(t, w.b, rand.New(rand.NewPCG(seed, 0))), "read", seed, "of round", round)
			}
		}
		must.Equal(t, w.a.LiveRows(), w.b.LiveRows(), "live rows")
		must.Equal(t, w.a.Len(), w.b.Len(), "rows")
	}
	if pending == 0 {
		t.Error("no death was ever pending")
	}
}

// pending returns the number of leaves of a with a pending death.
func (w *twins) pending() (n int) {
	var count func(c child)
	count = func(c child) {
		if c.leaf == nil {
			for _, below := range c.inner.children[:c.inner.n] {
				count(below)
			}
		} else if c.leaf.death.load().pending() {
			n++
		}
	}
	count(w.a.tree.root)
	return n
}

// Readers of all snapshots link the rows of pending deaths, while their writer brings rows back, adds
// others to the leaves, and deletes again.
func TestDeathsAreLinkedByConcurrentReaders(t *testing.T) {
	r := seedtest.Rand(t)
	m := New(testSchema(t), nil)
	steps := seedtest.Rounds(3000, 600)
	live := map[string]bool{}
	versions := make([][]string, steps+1) // the live keys at each timestamp
	var published atomic.Int64
	var wg sync.WaitGroup
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 7))
		wg.Go(func() {
			for last := 0; last < steps && !t.Failed(); {
				last = int(published.Load())
				v := r.IntN(last + 1)
				var got []string
				if r.IntN(2) == 0 {
					for i := range deathKeys {
						if key := deathKey(i); m.Has([]byte(key), mvcc.Snapshot(v+1)) {
							got = append(got, key)
						}
					}
				} else {
					it := m.NewIterator(mvcc.Snapshot(v+1), nil, nil, false)
					for keys, _ := it.Next(50); keys != nil; keys, _ = it.Next(50) {
						for _, key := range keys {
							got = append(got, string(key))
						}
					}
				}
				if !slices.Equal(got, versions[v]) {
					t.Errorf("as of %d: %d keys, want %d", v, len(got), len(versions[v]))
				}
			}
		})
	}
	for ts := 1; ts <= steps; ts++ {
		from := r.IntN(deathKeys)
		to := min(from+r.IntN(400), deathKeys)
		switch r.IntN(3) {
		case 0:
			m.DeleteRange([]byte(deathKey(from)), []byte(deathKey(to)), mvcc.Timestamp(ts), lsn.LSN(ts))
			for i := from; i < to; i++ {
				delete(live, deathKey(i))
			}
		default:
			for i := from; i < to; i += 1 + r.IntN(5) {
				if key := deathKey(i); !live[key] {
					m.Insert([]byte(key), mvcc.Timestamp(ts), lsn.LSN(ts), image(m, key, i, "x"))
					live[key] = true
				}
			}
		}
		for i := range deathKeys {
			if key := deathKey(i); live[key] {
				versions[ts] = append(versions[ts], key)
			}
		}
		published.Store(int64(ts))
	}
	wg.Wait()
}
