package rowset

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
)

// checkHas compares Has with the model, for keys that exist and others.
func (w *testRowSet) checkHas(t *testing.T, r *rand.Rand, set *DiskRowSet) {
	t.Helper()
	for _, snap := range w.snapshots(r) {
		for range 30 {
			i := r.IntN(len(w.rows))
			m := &w.rows[i]
			_, want := m.at(m.before(snap))
			must.Equal(t, must.Get(set.Has(bloom.MakeProbe(m.key), snap))(t), want, "row", i, "at", snap)
			if got, err := set.Has(bloom.MakeProbe(append(bytes.Clone(m.key), 'x')), snap); got || err != nil {
				t.Fatalf("a key that continues the key of row %d: %t, %v", i, got, err)
			}
		}
	}
}

func TestHasMatchesTheModel(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		w.checkHas(t, r, w.set)
		w.checkHas(t, r, w.cached(t, cache.New(1<<20)))
	})
}

// Has and scans of key columns open neither the other columns nor the row file, if there are others.
func TestReadsOfKeysOpenNoOtherFile(t *testing.T) {
	withTestRowSets(t, func(t *testing.T, r *rand.Rand, w *testRowSet) {
		row := w.stored(t, r)
		keys := allOf(w.schema)[:w.schema.Keys]
		if len(keys) == len(w.schema.Columns) {
			return
		}
		for _, c := range row.Columns {
			if w.schema.IndexID(c.ID) >= w.schema.Keys {
				delete(w.disk.blocks, c.Block)
			}
		}
		clear(w.disk.blocks[row.RowFile].Bytes)
		for _, c := range []*cache.Cache{nil, cache.New(1 << 20), cache.New(1)} {
			set := must.Get(Open(w.schema, row,
				Options{Blocks: w.disk, Cache: c, Damaged: func(_ uint64, _ block.ID, err error) {
					t.Error(err)
				}}))(t)
			w.checkHas(t, r, set)
			for _, snap := range []mvcc.Snapshot{mvcc.Everything, mvcc.Snapshot(r.IntN(int(w.end)))} {
				req := scan.Options{Schema: w.schema, Columns: keys, Snapshot: snap, Keys: r.IntN(2) == 0,
					Limit: r.Int64N(2) * 10}
				it, err := newIterator(set, req)
				must.Do(t, err)
				if req.Limit == 0 {
					err = w.compare(req, it)
				} else {
					it.Next()
				}
				if err == nil {
					err = it.Close()
				}
				must.Do(t, err)
			}
			set.Unref()
		}
	})
}
