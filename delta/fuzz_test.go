package delta

import (
	"errors"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// FuzzFile takes the cells of a file, each preceded by a byte with its length, and its statistics
// from the input; checksums and indexes are valid. Reads must return an error of one of two kinds,
// or the same rows through windows as one by one, and must not panic.
func FuzzFile(f *testing.F) {
	cells := func(deltas ...change.Delta) (b []byte) {
		for _, d := range deltas {
			cell := append(AppendKey(nil, d.Row, d.TS), d.List...)
			b = append(append(b, byte(len(cell))), cell...)
		}
		return b
	}
	f.Add(cells(change.Delta{Row: 1, TS: 5, List: setInt(11, 7)}, change.Delta{Row: 1, TS: 9, List: drop()},
		change.Delta{Row: 300, TS: 2, List: setInt(11, 8)}), []byte{}, false)
	f.Add(cells(change.Delta{Row: 1, TS: 9, List: drop()}, change.Delta{Row: 1, TS: 5, List: setInt(11, 7)}),
		[]byte{}, true)
	sink, _ := writeFile(f, someUpdates(3, 1, 100), false)
	if stats, ok := openFile(f, sink).cells.Metadata(statsKey); ok {
		f.Add(cells(someUpdates(3, 1, 100)...), stats, false)
	}
	fuzztest.Run(f, func(t *testing.T, input, stats []byte, undo bool) {
		var all [][]byte
		for len(input) > 0 && len(all) < 40 {
			n := min(int(input[0]), len(input)-1)
			all, input = append(all, input[1:1+n]), input[1+n:]
		}
		if len(all) == 0 || len(stats) > 1000 {
			return
		}
		if len(stats) == 0 {
			stats = wideStats(t)
		}
		src := craft(t, craftOptions(), stats, all...)
		file, err := OpenFile(src, cfile.ReaderOptions{})
		_ = Dump(new(strings.Builder), src.Bytes)
		if err != nil {
			checkKind(t, err)
			return
		}
		tracker := &Tracker{Schema: testSchema, Redo: []*File{file}}
		if undo {
			tracker = &Tracker{Schema: testSchema, Undo: []*File{file}}
		}
		w := tracker.NewWindow(mvcc.Everything)
		whole := w.Prepare(0, 4096)
		checkKind(t, whole)
		for _, c := range testSchema.Columns {
			v := batch.NewVector(c.Type, 4096)
			if whole == nil {
				w.ApplyColumn(c.ID, v)
			}
		}
		for row := range batch.Ordinal(3) {
			var r RowState
			checkKind(t, tracker.RowAt(row, 5, &r))
			_, err := tracker.Live(row)
			checkKind(t, err)
		}
		checkKind(t, file.Verify(testSchema, 1<<32, undo))
	})
}

func checkKind(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
		t.Fatalf("neither damage nor unknown: %v", err)
	}
}

// A few bytes that decompress to very many deltas are refused before all of them are in memory.
func TestFileThatUnpacksToTooManyCellsIsRefused(t *testing.T) {
	sink := &block.Memory{Number: 9}
	o := craftOptions()
	o.BlockBytes, o.IndexKey = 1<<22, func(cell []byte) []byte { return cell }
	w := must.Get(cfile.NewWriter(sink, o))(t)
	v := batch.NewVector(schema.Binary, 300_000)
	must.Do(t, w.Append(v))
	w.AddMetadata(statsKey, wideStats(t))
	must.Do(t, w.Finish())
	f := openFile(t, sink)
	must.Fail(t, (&Tracker{Schema: testSchema, Redo: []*File{f}}).NewWindow(mvcc.Everything).Prepare(0,
		100), fault.ErrUnsupported, v.Len, "deltas in", len(sink.Bytes), "bytes")
}
