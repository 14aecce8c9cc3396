package delta

import (
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Compactions of single columns leave a newer file with older changes of other columns. A merged
// file must be in the order of time nevertheless.
func TestCollectMergesFilesThatOverlapInTime(t *testing.T) {
	var undos, redos []*File
	undos = appendFile(t, undos,
		[]change.Delta{{Row: 1, TS: 5, List: setInt(12, 1)}, {Row: 4, TS: 6, List: setInt(12, 2)}}, true)
	undos = appendFile(t, undos, []change.Delta{{Row: 1, TS: 10, List: setInt(11, 1)},
		{Row: 1, TS: 3, List: drop()}, {Row: 2, TS: 3, List: drop()}}, true)
	redos = appendFile(t, redos,
		[]change.Delta{{Row: 1, TS: 15, List: setInt(11, 1)}, {Row: 1, TS: 20, List: setInt(11, 2)}}, false)
	redos = appendFile(t, redos, []change.Delta{{Row: 0, TS: 30, List: drop()},
		{Row: 1, TS: 15, List: setInt(12, 3)}, {Row: 1, TS: 30, List: drop()}}, false)

	tracker := &Tracker{Undo: undos, Redo: redos}
	undo, redo := must.Get2(tracker.Collect(0, 10, 30))(t)
	sameDeltas(t, "undo", undo, []change.Delta{
		{Row: 1, TS: 10, List: setInt(11, 1)}, {Row: 1, TS: 5, List: setInt(12, 1)}, {Row: 1, TS: 3, List: drop()},
		{Row: 2, TS: 3, List: drop()}, {Row: 4, TS: 6, List: setInt(12, 2)},
	})
	sameDeltas(t, "redo", redo, []change.Delta{
		{Row: 1, TS: 15, List: setInt(11, 1)}, {Row: 1, TS: 15, List: setInt(12, 3)},
		{Row: 1, TS: 20, List: setInt(11, 2)},
	})
}

func TestTrackerReturnsItsNewestTimestamp(t *testing.T) {
	must.Equal(t, (&Tracker{}).MaxTimestamp(), mvcc.Min, "a tracker without stores holds something")
	undos := appendFile(t, nil, someUpdates(3, 1, 500), true)
	redos := appendFile(t, nil, someUpdates(3, 1, 40), false)
	mem := NewMemStore(nil, nil)
	tr := &Tracker{Undo: undos, Redo: redos, Mem: mem}
	if ts := tr.MaxTimestamp(); ts != 42 {
		t.Errorf("newest change at %d, want 42: undos do not count", uint64(ts))
	}
	mem.Apply(2, 60, 2, drop())
	mem.Apply(0, 55, 3, setInt(11, 1))
	if ts := tr.MaxTimestamp(); ts != 60 {
		t.Errorf("newest change at %d, want 60", uint64(ts))
	}
}

// TestUnknownColumnsAreLeftAlone: changes of a dropped column stay in files and no reader
// Changes of a dropped column stay in files, and no reader uses them.
func TestUnknownColumnsAreLeftAlone(t *testing.T) {
	list := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 999, []byte("dropped"))
	redos := appendFile(t, nil, []change.Delta{{Row: 1, TS: 5, List: list}}, false)
	w := (&Tracker{Schema: testSchema, Redo: redos}).NewWindow(mvcc.Everything)
	must.Do(t, w.Prepare(0, 10))
	if w.Empty() || w.Touches(11) || !w.Touches(999) {
		t.Errorf("empty %v, touches 11 %v, 999 %v", w.Empty(), w.Touches(11), w.Touches(999))
	}
}

// A REINSERT without some column, such as one from before the column was added, does not affect
// earlier changes of that column.
func TestReinsertWithoutAColumnKeepsEarlierChanges(t *testing.T) {
	set := func(kind change.Kind, id schema.ColumnID, cell ...byte) change.List {
		return change.AppendColumn(change.AppendUpdateHeader(nil, kind), id, cell)
	}
	undos := appendFile(t, nil, []change.Delta{
		{Row: 0, TS: 30, List: set(change.Update, 300, 7)},
		{Row: 0, TS: 20, List: set(change.Reinsert, 11, 1, 2, 3, 4)},
	}, true)
	w := (&Tracker{Schema: testSchema, Undo: undos}).NewWindow(10)
	must.Do(t, w.Prepare(0, 1))
	v := batch.NewVector(schema.Int8, 1)
	w.ApplyColumn(300, v)
	must.Equal(t, v.Data[0], 7, "cell")
}
