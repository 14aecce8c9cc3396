package delta

import (
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// TestKnownCblocksAreSkipped changes a hundred rows at each of four times. Once all cblocks have
// been parsed, readers read those with changes that they need, and none of the others.
func TestKnownCblocksAreSkipped(t *testing.T) {
	var deltas []change.Delta
	for row := range 400 {
		deltas = append(deltas, change.Delta{Row: uint32(row), TS: mvcc.Timestamp(10 + row/100), List: setInt(11, row)})
	}
	for _, undo := range []bool{false, true} {
		sink, _ := writeFile(t, deltas, undo)
		src := &countedSource{Memory: block.Memory{Number: 5, Bytes: sink.Bytes}}
		f := openFile(t, src)
		tracker := &Tracker{Schema: testSchema, Redo: []*File{f}}
		window := mvcc.Everything
		if undo {
			tracker = &Tracker{Schema: testSchema, Undo: []*File{f}}
			window = mvcc.Nothing
		}
		// readsOf returns the number of cblocks that a pass reads, and of rows that it finds.
		readsOf := func(pass func(from batch.Ordinal, rows batch.Bitmap) error) (reads, found int) {
			before := src.reads
			for from := batch.Ordinal(0); from < 400; from += 64 {
				rows := batch.MakeBitmap(64)
				must.Do(t, pass(from, rows))
				found += rows.Count()
			}
			return src.reads - before, found
		}
		windows := func(snap mvcc.Snapshot) (reads, found int) {
			w := tracker.NewWindow(snap)
			return readsOf(func(from batch.Ordinal, rows batch.Bitmap) error {
				err := w.Prepare(from, 64)
				w.AddTouched(11, rows)
				return err
			})
		}
		if _, found := windows(window); found != 400 {
			t.Fatalf("undo %v: %d rows are changed, want 400", undo, found)
		}
		whole, _ := windows(window)
		cblocks, err := f.cells.DataBlocks()
		if err != nil || cblocks < 8 || whole != cblocks {
			t.Fatalf("undo %v: %d reads of %d cblocks, %v; want at least 8", undo, whole, cblocks, err)
		}
		// A quarter of the rows, whose first and last cblock have rows of the other quarters too.
		limit := cblocks/4 + 2
		snap := mvcc.Before(11)
		if undo {
			snap = mvcc.Before(13)
		}
		if reads, found := windows(snap); found != 100 || reads > limit {
			t.Errorf("undo %v: windows: %d reads, %d rows; want %d at most, 100", undo, reads, found, limit)
		}
		s := tracker.NewSpan(mvcc.Before(11), mvcc.Before(12))
		if reads, found := readsOf(func(from batch.Ordinal,
			rows batch.Bitmap) error {
			return s.SetChanged(from, 64, rows)
		}); found != 100 || reads > limit {
			t.Errorf("undo %v: span: %d reads, %d rows; want %d at most, 100", undo, reads, found, limit)
		}
	}
}

// TestWindowsReadOnlyWhatConcernsTheirColumns has windows over one column. They skip files and mem
// stores with changes of other columns, and of those with deletes all but the deletes.
func TestWindowsReadOnlyWhatConcernsTheirColumns(t *testing.T) {
	var updates, mixed []change.Delta
	for row := range 400 {
		updates = append(updates, change.Delta{Row: uint32(row), TS: 10, List: setInt(11, row)})
	}
	mixed = append(mixed, updates...)
	mixed[7].List = drop()
	file := func(deltas []change.Delta) *File {
		sink, _ := writeFile(t, deltas, false)
		return openFile(t, sink)
	}
	mem := func(changes ...change.Delta) *MemStore {
		m := NewMemStore(testFormat, nil)
		for _, d := range changes {
			m.Apply(batch.Ordinal(d.Row), d.TS, 1, d.List)
		}
		return m
	}
	image := testFormat.AppendRow(nil, [][]byte{make([]byte, 8), make([]byte, 4), nil, make([]byte, 8), nil, nil})
	replace := change.Delta{Row: 3, TS: 11, List: change.AppendReplace(nil, image)}
	for name, c := range map[string]struct {
		tracker Tracker
		ids     []schema.ColumnID
		changed int // rows that the window over ids changes
		dead    int
		cblocks int // of the file that a second pass reads; −1: all
	}{
		"file, other column":        {Tracker{Redo: []*File{file(updates)}}, []schema.ColumnID{13}, 0, 0, 0},
		"file, its column":          {Tracker{Redo: []*File{file(updates)}}, []schema.ColumnID{11}, 400, 0, -1},
		"file with a delete":        {Tracker{Redo: []*File{file(mixed)}}, []schema.ColumnID{13}, 0, 1, 1},
		"file, no column":           {Tracker{Redo: []*File{file(mixed)}}, []schema.ColumnID{}, 0, 1, 1},
		"mem store, other column":   {Tracker{Mem: mem(updates...)}, []schema.ColumnID{13}, 0, 0, 0},
		"mem store, its column":     {Tracker{Mem: mem(updates...)}, []schema.ColumnID{11, 13}, 400, 0, 0},
		"mem store with a delete":   {Tracker{Mem: mem(mixed...)}, []schema.ColumnID{13}, 0, 1, 0},
		"mem store, a replacement":  {Tracker{Mem: mem(replace)}, []schema.ColumnID{13}, 1, 0, 0},
		"replacement and no column": {Tracker{Mem: mem(replace)}, []schema.ColumnID{}, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.tracker.Schema = testSchema
			w := new(Window)
			var all int
			for pass := range 2 {
				w.Reset(&c.tracker, mvcc.Everything, c.ids)
				changed, dead, cblocks := 0, 0, 0
				for from := batch.Ordinal(0); from < 400; from += 50 {
					rows, there := batch.MakeBitmap(50), batch.MakeBitmap(50)
					there.SetRange(0, 50)
					must.Do(t, w.Prepare(from, 50))
					for _, id := range c.ids {
						w.AddTouched(id, rows)
					}
					w.ApplyDeletes(there)
					changed, dead = changed+rows.Count(), dead+50-there.Count()
					if len(w.files) > 0 && w.files[0].block != nil {
						cblocks++
					}
				}
				must.Equal(t, changed, c.changed, "pass", pass, "rows changed")
				must.Equal(t, dead, c.dead, "pass", pass, "dead")
				if all = cblocks; pass == 1 && c.cblocks >= 0 && cblocks > c.cblocks {
					t.Errorf("%d windows read a cblock, want %d", cblocks, c.cblocks)
				}
			}
			if c.cblocks < 0 && all == 0 {
				t.Error("no window read a cblock")
			}
		})
	}
}
