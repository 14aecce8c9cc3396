package rowset

import (
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// cached reopens the flushed rowset with a cache.
func (w *testRowSet) cached(t *testing.T, c *cache.Cache) *DiskRowSet {
	t.Helper()
	set := must.Get(Open(w.schema, w.set.Metadata(), Options{Blocks: w.disk, Cache: c}))(t)
	set.SetStores(set.Metadata(), w.set.Tracker())
	return set
}

func allOf(s *schema.Schema) []int {
	cols := make([]int, len(s.Columns))
	for i := range cols {
		cols[i] = i
	}
	return cols
}

// Rows are read repeatedly, all or some columns, at any snapshot, with and without changes. A
// cached row of one read never affects another.
func TestCachedRowsMatchTheModel(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		set := w.cached(t, cache.New(16<<20))
		snaps := w.snapshots(r)
		for range 1000 {
			i, snap := r.IntN(min(20, len(w.rows))), snaps[r.IntN(len(snaps))]
			cols := allOf(w.schema)
			if r.IntN(2) == 0 {
				cols = w.randomColumns(r)
			}
			m := &w.rows[i]
			if row, found, err := set.Find(bloom.MakeProbe(m.key)); err != nil || !found || int(row) != i {
				t.Fatalf("key %x: row %d, %t, %v, want %d", m.key, row, found, err, i)
			}
			want, live := m.at(m.before(snap))
			cells, got := must.Get2(set.Get(bloom.MakeProbe(m.key), snap, cols, nil))(t)
			must.Equal(t, got, live, "row", i, "at", snap, "live")
			for k, col := range cols {
				if live && !sameCell(cells[k], want[col]) {
					t.Fatalf("row %d at %d: column %d is %x, want %x", i, snap, col, cells[k], want[col])
				}
			}
		}
	})
}

// After a full-row read, the same row is read without any file.
func TestCachedRowsNeedNoFiles(t *testing.T) {
	r := seedtest.Rand(t)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 2, Name: "n", Type: schema.Int64, Nullable: true},
		{ID: 3, Name: "s", Type: schema.String}}, 1)
	w := newTestRowSet(t, r, s, 50)
	row := w.rewritten(t, r)
	row.Undo, row.Redo = nil, nil // only base data
	c := cache.New(16 << 20)
	set := must.Get(Open(s, row, Options{Blocks: w.disk, Cache: c}))(t)
	read := func(set *DiskRowSet, cols ...int) (cells [][]byte, err error) {
		cells, _, err = set.Get(bloom.MakeProbe(w.rows[7].key), mvcc.Everything, cols, nil)
		return cells, err
	}
	want := must.Get(read(set, 0, 1, 2))(t)
	for i := range set.columns {
		set.columns[i].file.val.Store(nil) // opened again when needed
	}
	set.index.val.Store(nil)
	set.filter.val.Store(nil)
	set.opts.Blocks = newDisk()
	for _, cols := range [][]int{{0, 1, 2}, {2, 0}, {1}} {
		got, err := read(set, cols...)
		must.Do(t, err, "columns", cols)
		for k, col := range cols {
			must.Equal(t, sameCell(got[k], want[col]), true, "column", col, got[k], "was", want[col])
		}
	}

	// A rowset of the same files with another schema has its own cached row.
	other := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
		{ID: 3, Name: "s", Type: schema.String}}, 1)
	set = must.Get(Open(other, row, Options{Blocks: w.disk, Cache: c}))(t)
	if got, err := read(set, 0, 1); err != nil || !sameCell(got[0], want[0]) || !sameCell(got[1], want[2]) {
		t.Errorf("by another schema: %x, %v, want %x and %x", got, err, want[0], want[2])
	}
}

// The cache key of a row is the hash of its key, which another key may share.
func TestCachedRowOfAnotherKeyIsNotReturned(t *testing.T) {
	r := seedtest.Rand(t)
	w := newTestRowSet(t, r,
		mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32},
			{ID: 2, Name: "n", Type: schema.Int64}}, 1), 20)
	c := cache.New(16 << 20)
	set := w.cached(t, c)
	mine, other := bloom.MakeProbe(w.rows[3].key), bloom.MakeProbe(w.rows[4].key)
	set.keepRow(other, 4, [][]byte{make([]byte, 4), make([]byte, 8)})
	v, ok := c.Get(set.rowKey(other))
	must.Equal(t, ok, true, "the row is not in the cache, as the test requires")
	c.Put(set.rowKey(mine), v, 100)
	if row, found, err := set.Find(mine); err != nil || !found || row != 3 {
		t.Errorf("row %d, %t, %v, want 3", row, found, err)
	}
}

// A row of long cells is not cached, since it would evict many others.
func TestLongRowsAreNotCached(t *testing.T) {
	c := cache.New(16 << 20)
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int32}, {ID: 2, Name: "s", Type: schema.Binary}}, 1)
	w := newTestRowSet(t, seedtest.Rand(t), s, 10)
	set := w.cached(t, c)
	for n, kept := range map[int]bool{100: true, maxBaseRow: false} {
		before := c.Used()
		set.keepRow(bloom.MakeProbe([]byte{byte(n)}), 1, [][]byte{{1, 2, 3, 4}, make([]byte, n)})
		must.Equal(t, c.Used() > before, kept, "a row of", n, "bytes: kept")
	}
}
