package rowset

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// Searches and keys match the model, however often a window is used.
func TestSearchesMatchTheModel(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		for _, snap := range w.snapshots(r) {
			o := w.randomRequest(r, snap)
			it := must.Get(newIterator(w.set, o))(t)
			key := w.randomKey(r)
			for it.Next() {
				first, n := it.from, it.Batch().Len
				keyOf := func(i int) []byte {
					if o.Descending {
						i = n - 1 - i
					}
					return w.rows[int(first)+i].key
				}
				for range r.IntN(1 + 3*maxUses(n)) {
					i := r.IntN(n)
					must.Equal(t, must.Get(it.KeyAt(i))(t), keyOf(i), "row", i, "of", n, "at", first, "key")
					want := i
					for want < n && (bytes.Compare(keyOf(want), key) < 0) != o.Descending &&
						!bytes.Equal(keyOf(want), key) {
						want++
					}
					must.Equal(t, must.Get(it.Search(i, key))(t), want, "key", key, "from row", i, "of", n, "row")
					switch r.IntN(3) {
					case 0:
						key = w.randomKey(r)
					case 1:
						key = w.rows[r.IntN(len(w.rows))].key
					}
				}
			}
			must.Do(t, it.Close())
		}
	})
}

// A few searches in a window read no key column of it, unless the scan reads them; some more make no
// further keys, and only very many make all of them.
func TestFewSearchesMakeFewKeys(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64},
			{ID: 2, Name: "v", Type: schema.Int32}}, 1), 2000)
	for _, descending := range []bool{false, true} {
		for _, c := range []struct {
			columns    []int
			searches   int
			read, made bool
		}{{[]int{1}, maxSeeks, false, false}, {[]int{1, 0}, 1, true, false}, {nil, maxSeeks + 10, true, false},
			{nil, maxUses(len(w.rows)) + 1, true, true}} {
			it, err := newIterator(w.set,
				scan.Options{Schema: w.schema, Columns: c.columns, Snapshot: mvcc.Everything, Descending: descending})
			must.Do(t, err)
			if !it.Next() || it.n != len(w.rows) {
				t.Fatalf("window of %d rows, want %d", it.n, len(w.rows))
			}
			for i := range c.searches {
				must.Get(it.Search(0, w.rows[1+i*(len(w.rows)-2)/c.searches].key))(t)
			}
			if read, made := len(it.place.columns) > 0, it.place.made; read != c.read || made != c.made {
				t.Errorf("%d searches, descending %t: key columns read %t, all keys made %t", c.searches,
					descending, read, made)
			}
			must.Do(t, it.Close())
		}
	}
}
