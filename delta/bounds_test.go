package delta

import (
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
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
