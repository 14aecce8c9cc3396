package tablet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/expiry"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// newExpiringStore returns a table of keys that expire at the time in a second column. Its history
// begins at the newest batch.
func newExpiringStore(t *testing.T) *testStore {
	t.Helper()
	s := must.Get(schema.New([]schema.Column{
		{ID: 1, Name: "k", Type: schema.Int64, BlockBytes: 512},
		{ID: 2, Name: "until", Type: schema.Timestamp, Nullable: true, BlockBytes: 512},
	}, 1))(t)
	return newTestStore(t, s, func(row *meta.Table) {
		row.Expiry = expiry.Rules{{Rule: expiry.Rule{Column: 2}}}
	})
}

// expired is a time before all batches: a row with it is expired when it is inserted.
var expired = int64Cell(0)

// upsertUntil upserts rows that expire at the time in cell. If cell is nil, they never expire.
func (w *testStore) upsertUntil(cell []byte, keys ...int) {
	w.t.Helper()
	var ops []Op
	for _, k := range keys {
		ops = append(ops, Op{Kind: Upsert, Key: w.key(k),
			Body: w.tab.Schema().RowFormat.AppendRow(nil, [][]byte{int64Cell(k), cell})})
	}
	w.mustCommit(ops...)
	w.floor = timestampOf(w.lsn)
}

// storedKeys returns the keys of all rows that are not deleted, also of expired ones.
func (w *testStore) storedKeys() (keys []int) {
	w.t.Helper()
	it := must.Get(search(w.tab, scan.Options{Columns: []int{0}}, latest, true))(w.t)
	for it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			keys = append(keys, int(b.Columns[0].Cell(i)[0]))
		}
	}
	must.Do(w.t, it.Close())
	return keys
}

// A flush or merge has dropped an expired row, and then catches up with the DELETE of that row by
// which a new row takes its place, at each point at which the new row may come.
func TestRewritesCatchUpWithDeletesOfDroppedRows(t *testing.T) {
	jobs := map[string]func(w *testStore) error{
		"flush": func(w *testStore) error {
			_, err := w.tab.Flush(context.Background())
			return err
		},
		"merge": func(w *testStore) error {
			var all compaction.Choice
			for _, m := range w.tab.RowSetMetadata() {
				all.RowSets = append(all.RowSets, m.ID)
			}
			return w.tab.Merge(context.Background(), all)
		},
	}
	points := map[string]func(w *testStore) *func(){
		"after the cutover":   func(w *testStore) *func() { return &w.onBegin },
		"before the commit":   func(w *testStore) *func() { return &w.onCommit },
		"before installation": func(w *testStore) *func() { return &w.onInstall },
	}
	for name, job := range jobs {
		for at, point := range points {
			t.Run(fmt.Sprintf("%s/%s", name, at), func(t *testing.T) {
				w := newExpiringStore(t)
				w.upsertUntil(nil, 1, 4)
				if name == "merge" {
					w.flush()
				}
				w.upsertUntil(expired, 2, 3)
				if name == "merge" {
					w.floor = 0 // the flush leaves the rows
					w.flush()
					w.floor = timestampOf(w.lsn)
				}
				rows := w.tab.LiveRows()
				written := false
				*point(w) = func() {
					written = true
					w.upsertUntil(nil, 2)
				}
				must.Do(t, job(w))
				must.Equal(t, written, true, "written")
				must.Equal(t, rows, 4, "stored rows")
				must.Equal(t, w.tab.LiveRows(), 3, "live rows")
				w.checkFree()
				for _, store := range []*testStore{w, w.reopened(0)} {
					must.Equal(t, store.storedKeys(), []int{1, 2, 4}, "rows")
				}
			})
		}
	}
}

// Only a DELETE may be of a row that is in no output, and only where rows expire.
func TestCatchUpFindsChangesOfLostRows(t *testing.T) {
	for _, w := range []*testStore{newExpiringStore(t), newTestStore(t, testSchema)} {
		j := must.Get(w.tab.begin())(t)
		c := catchUp{j: j}
		key := func() ([]byte, error) { return w.key(1), nil }
		rowsExpire := len(w.tab.Schema().Expiry) > 0
		if _, err := c.find(nil, 0, deleteList, key); (err == nil) != rowsExpire ||
			err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("a DELETE where rows expire = %t: %v", rowsExpire, err)
		}
		update := change.AppendUpdateHeader(nil, change.Update)
		must.Fail(t, must.Err(c.find(nil, 0, change.List(update), key)), fault.ErrCorrupt,
			"an UPDATE where rows expire", rowsExpire)
		c.close()
		j.end()
	}
}

// A rowset is dropped without being read if all its rows are expired as of the floor and unchanged
// since. Others stay.
func TestRowSetsOfExpiredRowsAreDropped(t *testing.T) {
	later := int64Cell(1 << 40)
	for name, c := range map[string]struct {
		change  func(w *testStore) // of rows 1 to 3 in a rowset, all of which are expired
		dropped bool
	}{
		"unchanged":         {func(w *testStore) {}, true},
		"deleted":           {func(w *testStore) { w.upsertUntil(nil, 2); w.flushAt(timestampOf(w.lsn)) }, true},
		"deleted in memory": {func(w *testStore) { w.upsertUntil(nil, 2) }, false},
		"renewed":           {func(w *testStore) { w.renew(1); w.flushAt(timestampOf(w.lsn)) }, false},
		"a lower floor":     {func(w *testStore) { w.floor = timestampOf(w.lsn) - 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newExpiringStore(t)
			w.upsertUntil(expired, 1, 2, 3)
			w.flushAt(0)
			first := w.tab.RowSetMetadata()[0].ID
			w.floor = timestampOf(w.lsn)
			c.change(w)
			infos := must.Get(w.tab.Deltas(nil))(t)
			must.Equal(t, infos[0].RowSet, first, "of", infos)
			must.Equal(t, infos[0].Gone, c.dropped, "of", infos)
			w.collect()
			if got := w.hasRowSet(first); got == c.dropped {
				t.Errorf("the rowset is there: %t", got)
			}
			w.checkFree()
		})
	}
	for name, cell := range map[string][]byte{"never": nil, "later": later} {
		w := newExpiringStore(t)
		w.upsertUntil(expired, 1, 2)
		w.upsertUntil(cell, 3)
		w.flushAt(0)
		w.floor = timestampOf(w.lsn)
		w.collect()
		must.Equal(t, w.storedKeys(), []int{1, 2, 3}, "with a row that expires", name, "rows")
		must.Equal(t, len(w.tab.RowSetMetadata()), 1, "with a row that expires", name)
	}
}

// A row takes the place of an expired one while the rowset of that one is dropped.
func TestRowsReplaceExpiredRowsWhileTheirRowSetIsDropped(t *testing.T) {
	w := newExpiringStore(t)
	w.upsertUntil(expired, 1, 2)
	w.flushAt(0)
	w.floor = timestampOf(w.lsn)
	w.onBegin = func() { w.upsertUntil(nil, 2) }
	w.collect()
	must.Equal(t, len(w.tab.RowSetMetadata()), 0, "rowsets")
	for _, store := range []*testStore{w, w.reopened(0)} {
		must.Equal(t, store.storedKeys(), []int{2}, "rows")
	}
}

// A compaction rewrites a rowset only if a row in it is dropped: not for a row that was expired as of
// the floor and has been renewed since, in files.
func TestCompactRewritesOnlyForExpiredRows(t *testing.T) {
	for _, renewed := range []bool{true, false} {
		w := newExpiringStore(t)
		w.upsertUntil(expired, 1)
		w.upsertUntil(nil, 2)
		w.flushAt(0)
		floor := timestampOf(w.lsn)
		if renewed {
			w.renew(1)
			w.floor = floor
			w.flush()
			must.Get(w.tab.CompactMajor(context.Background(), nil))(t)
		}
		before := w.tab.RowSetMetadata()[0].ID
		w.floor = floor
		must.Get(w.tab.Compact(context.Background()))(t)
		must.Equal(t, w.hasRowSet(before), renewed, "renewed", renewed, "the rowset is kept")
	}
}

// A merge copies cblocks of rowsets without rows that were expired as of the floor, and decodes
// others. If one of two rowsets is copied, a cblock of the output begins where the second one does:
// the first has more rows than fill its last cblock.
func TestMergesCopyCblocksUnlessRowsHaveExpired(t *testing.T) {
	const rows = 100 // in each rowset; cblocks have 64
	never, five := []byte(nil), int64Cell(5)
	for name, c := range map[string]struct {
		cells   [2][]byte // of a row in the midst of each rowset
		floor   mvcc.Timestamp
		copied  bool
		dropped bool // rows with five
	}{
		"never":           {[2][]byte{never, never}, mvcc.FromMicros(6), true, false},
		"in neither":      {[2][]byte{int64Cell(7), int64Cell(8)}, mvcc.FromMicros(6), true, false},
		"in the first":    {[2][]byte{five, never}, mvcc.FromMicros(6), true, true},
		"in the second":   {[2][]byte{never, five}, mvcc.FromMicros(6), true, true},
		"in both":         {[2][]byte{five, five}, mvcc.FromMicros(6), false, true},
		"at the floor":    {[2][]byte{five, five}, mvcc.FromMicros(5), false, true},
		"after the floor": {[2][]byte{five, five}, mvcc.FromMicros(5) - 1, true, false},
		"when inserted":   {[2][]byte{expired, expired}, 0, false, false}, // which is after the floor
	} {
		t.Run(name, func(t *testing.T) {
			w := newExpiringStore(t)
			var all compaction.Choice
			var want []int
			left := [2]int{rows, rows} // rows of each rowset after the merge
			for set, cell := range c.cells {
				for k := range rows {
					cell, k := cell, set*rows+k
					if k%rows != rows/2 {
						cell = int64Cell(1 << 40)
					}
					w.upsertUntil(cell, k)
					if c.dropped && bytes.Equal(cell, five) {
						left[set]--
						continue
					}
					want = append(want, k)
				}
				w.flushAt(0)
			}
			for _, m := range w.tab.RowSetMetadata() {
				all.RowSets = append(all.RowSets, m.ID)
			}
			w.floor = c.floor
			must.Do(t, w.tab.Merge(context.Background(), all))
			must.Equal(t, w.storedKeys(), want, "keys")
			d := w.tab.state.Load().tree.Sets[0]
			must.Equal(t, d.Metadata().Rows, int64(left[0]+left[1]), "rows in the first rowset")
			for col := range d.Schema.Columns {
				f := must.Get(d.File(col))(t)
				if _, begin, _, err := f.BlockOf(batch.Ordinal(left[0])); err != nil ||
					(begin == batch.Ordinal(left[0])) != c.copied {
					t.Errorf("column %d: the cblock of row %d begins at row %d, %v, want copied = %t", col,
						left[0], begin, err, c.copied)
				}
			}
			w.checkFree()
		})
	}
}

// renew sets the time of a row on disk to never. A write batch does so before the row expires.
func (w *testStore) renew(k int) {
	w.t.Helper()
	p := must.Get(w.tab.state.Load().find(bloom.MakeProbe(w.key(k))))(w.t)
	w.lsn++
	p.set.Apply(p.row, timestampOf(w.lsn), w.lsn,
		change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 2, nil))
}

// flushAt flushes with a history floor.
func (w *testStore) flushAt(floor mvcc.Timestamp) {
	w.t.Helper()
	w.floor = floor
	w.flush()
}

// collect runs CollectUndos.
func (w *testStore) collect() {
	w.t.Helper()
	must.Get(w.tab.CollectUndos(context.Background()))(w.t)
}

func (w *testStore) hasRowSet(id uint64) bool {
	return slices.ContainsFunc(w.tab.RowSetMetadata(), func(m *rowset.Metadata) bool { return m.ID == id })
}
