package tablet

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/scan"
)

// opening is an iterator in key order with the IDs of the rowsets that it has opened.
type opening struct {
	scan.Iterator
	opened   []uint64
	searched []uint64 // those in which keys were searched
}

// searchedSet is the iterator of a rowset, with a function that is called when it makes or searches
// a key.
type searchedSet struct {
	scan.Searcher
	use func()
}

func (s *searchedSet) KeyAt(i int) ([]byte, error) {
	s.use()
	return s.Searcher.KeyAt(i)
}

func (s *searchedSet) Search(from int, key []byte) (int, error) {
	s.use()
	return s.Searcher.Search(from, key)
}

// newOpening scans the newest state. onOpen is called before a rowset is opened.
func newOpening(w *testStore, o scan.Options, onOpen func(m *rowset.Metadata)) *opening {
	w.t.Helper()
	v := must.Get(w.tab.View(latest))(w.t)
	o.Schema, o.Snapshot = v.Schema, v.snap
	r := must.Get(scan.NewRequest(o))(w.t)
	op := &opening{}
	op.Iterator = rowunion.InOrder(r, v.state.tree.Range(nil, o.Lower, o.Upper),
		v.state.union().MemIterators(r), func(d *rowset.DiskRowSet, r *scan.Request) (scan.Iterator, error) {
			m := d.Metadata()
			onOpen(m)
			op.opened = append(op.opened, m.ID)
			it, err := d.NewIterator(r)
			return &searchedSet{it, func() {
				if !slices.Contains(op.searched, m.ID) {
					op.searched = append(op.searched, m.ID)
				}
			}}, err
		})
	w.t.Cleanup(func() {
		op.Close()
		v.Release()
	})
	return op
}

// A scan opens a rowset when all rows before it have been returned, whatever is in memory.
func TestOrderedScansOpenRowSetsWhenReached(t *testing.T) {
	r := seedtest.Rand(t)
	for round := range 40 {
		w, pic := randomTable(t, r)
		var keys []string
		for k := range pic {
			if pic.at(k, mvcc.Everything) != "" {
				keys = append(keys, string(w.key(k)))
			}
		}
		slices.Sort(keys)
		o := scan.Options{Columns: allColumns, Descending: round%2 == 1}
		returned := 0
		op := newOpening(w, o, func(m *rowset.Metadata) {
			at, found := slices.BinarySearch(keys, string(m.MinKey))
			if o.Descending {
				if at, found = slices.BinarySearch(keys, string(m.MaxKey)); found {
					at++
				}
				at = len(keys) - at
			}
			if returned < at {
				t.Errorf("descending %t: rowset %d is opened after %d rows, want %d", o.Descending, m.ID, returned, at)
			}
		})
		for op.Next() {
			returned += op.Batch().Selected()
		}
		must.Do(t, op.Close())
		must.Equal(t, returned, len(keys), "rows")
	}
}

// Rows in memory cost a scan nothing where there are none of them: rowsets that do not contain
// their keys are opened one by one, and no key is searched in them.
func TestOrderedScansWithRowsInMemory(t *testing.T) {
	const sets = 50
	w := newTestStore(t, testSchema)
	for i := range sets {
		for k := range 4 {
			w.mustCommit(w.op(Insert, 100*i+10*k, i, "on disk"))
		}
		w.flush()
	}
	var ids []uint64
	for _, d := range w.tab.state.Load().tree.Sets {
		ids = append(ids, d.Metadata().ID)
	}
	must.Equal(t, len(ids), sets, "rowsets")
	check := func(name string, o scan.Options, batches int, opened, searched []uint64) {
		t.Helper()
		o.Columns = allColumns
		op := newOpening(w, o, func(*rowset.Metadata) {})
		for i := 0; (batches < 0 || i < batches) && op.Next(); i++ {
		}
		must.Equal(t, op.opened, opened, name, "opened")
		must.Equal(t, op.searched, searched, name, "searched")
	}
	down := slices.Clone(ids)
	slices.Reverse(down)
	first, last := scan.Options{Limit: 1}, scan.Options{Limit: 1, Descending: true}
	check("nothing in memory, first row", first, 1, ids[:1], nil)
	check("nothing in memory, last row", last, 1, down[:1], nil)

	w.mustCommit(w.op(Insert, 715, 1, "within rowset 7"), w.op(Insert, 2250, 1, "between rowsets 22 and 23"))
	check("all rows", scan.Options{}, -1, ids, ids[7:8])
	check("all rows backward", scan.Options{Descending: true}, -1, down, ids[7:8])
	check("first row", first, 1, ids[:1], nil)
	check("last row", last, 1, down[:1], nil)
	for _, bounds := range [][3]int{{700, 712, 2}, {712, 720, 1}, {713, 720, 1}, {716, 731, 2}} {
		for _, down := range []bool{false, true} {
			op, rows := newOpening(w, scan.Options{Lower: w.key(bounds[0]), Upper: w.key(bounds[1]),
				Descending: down}, func(*rowset.Metadata) {}), 0
			for op.Next() {
				rows += op.Batch().Selected()
			}
			must.Equal(t, rows, bounds[2], "rows in", bounds[0], bounds[1], "descending", down)
		}
	}
	check("between rowsets", scan.Options{Lower: w.key(2240), Upper: w.key(2300)}, -1, nil, nil)

	w.mustCommit(w.op(Insert, -1, 1, "before all"), w.op(Insert, 9999, 1, "after all"))
	check("first row in memory", first, 1, nil, nil)
	check("last row in memory", last, 1, nil, nil)
	check("all rows again", scan.Options{}, -1, ids, ids[7:8])
}
