package delta

import (
	"bytes"
	"errors"
	"fmt"
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

// countedSource counts the reads of a file.
type countedSource struct {
	block.Memory
	reads int
}

func (s *countedSource) ReadAt(p []byte, off int64) (int, error) {
	s.reads++
	return s.Memory.ReadAt(p, off)
}

// someUpdates returns updates of column 11 on every step-th row, with timestamps from first on.
func someUpdates(rows, step int, first mvcc.Timestamp) []change.Delta {
	var out []change.Delta
	for i := range rows {
		out = append(out, change.Delta{Row: uint32(i * step), TS: first + mvcc.Timestamp(i), List: setInt(11, i)})
	}
	return out
}

func TestWriterTakesFileOrderOnly(t *testing.T) {
	at := func(row uint32, ts mvcc.Timestamp) change.Delta {
		return change.Delta{Row: row, TS: ts, List: drop()}
	}
	for _, c := range []struct {
		name          string
		first, second change.Delta
		redo, undo    bool // whether each kind of file accepts the second
	}{
		{"next row, earlier", at(5, 10), at(6, 3), true, true},
		{"same row, same time", at(5, 10), at(5, 10), true, true},
		{"same row, later", at(5, 10), at(5, 11), true, false},
		{"same row, earlier", at(5, 10), at(5, 9), false, true},
		{"row before", at(5, 10), at(4, 11), false, false},
	} {
		for _, undo := range []bool{false, true} {
			w := must.Get(NewWriter(new(block.Memory), undo))(t)
			must.Do(t, w.Append(c.first))
			want := c.redo && !undo || c.undo && undo
			if err := w.Append(c.second); (err == nil) != want {
				t.Errorf("%s, undo %v: %v", c.name, undo, err)
			}
		}
	}
}

func TestFileOfNoDeltasIsRefused(t *testing.T) {
	w := must.Get(NewWriter(new(block.Memory), false))(t)
	must.Refuse(t, must.Err(w.Finish()), "a file of no deltas was written")
}

// craft writes a file with any cells and settings, which Writer would never write.
func craft(t fataler, o cfile.WriterOptions, stats []byte, cells ...[]byte) *block.Memory {
	t.Helper()
	sink := &block.Memory{Number: 9}
	w := must.Get(cfile.NewWriter(sink, o))(t)
	for _, cell := range cells {
		v := batch.NewVector(o.Type, 1)
		v.SetCell(0, cell)
		must.Do(t, w.Append(v))
	}
	if stats != nil {
		w.AddMetadata(statsKey, stats)
	}
	must.Do(t, w.Finish())
	return sink
}

// craftOptions are the options that Writer uses, except for the key of the index, which requires
// valid cells.
func craftOptions() cfile.WriterOptions {
	return cfile.WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.LZ4, BlockBytes: 512,
		ValueIndex: true, FullIndexKeys: true, Exact: true}
}

// wideStats returns statistics by which the file may contain anything.
func wideStats(t fataler) []byte {
	s := Stats{Deletes: 1, Reinserts: 1, Min: 0, Max: mvcc.Max}
	return must.Get(s.encode())(t)
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	cell := append(AppendKey(nil, 1, 1), drop()...)
	alter := func(f func(*cfile.WriterOptions)) cfile.WriterOptions {
		o := craftOptions()
		f(&o)
		return o
	}
	stats := wideStats(t)
	for _, c := range []struct {
		name string
		file *block.Memory
		want error
	}{
		{"no value index", craft(t, alter(func(o *cfile.WriterOptions) {
			o.ValueIndex = false
			o.PositionalIndex = true
		}), stats, cell), fault.ErrUnsupported},
		{"no statistics", craft(t, craftOptions(), nil, cell), fault.ErrUnsupported},
		{"statistics cut", craft(t, craftOptions(), stats[:5], cell), fault.ErrCorrupt},
		{"another encoding", craft(t, alter(func(o *cfile.WriterOptions) {
			o.Encoding = schema.Prefix
		}), stats, cell), fault.ErrUnsupported},
		{"integers", craft(t, alter(func(o *cfile.WriterOptions) {
			o.Type = schema.Int32
		}), stats, []byte{1, 2, 3, 4}), fault.ErrCorrupt},
		{"nothing", new(block.Memory), fault.ErrCorrupt},
		{"as it should be", craft(t, craftOptions(), stats, cell), nil},
	} {
		must.Fail(t, must.Err(OpenFile(c.file, cfile.ReaderOptions{})), c.want, c.name)
	}
}

// TestEveryReaderReportsBadCells writes damage that no checksum detects after a valid delta.
func TestEveryReaderReportsBadCells(t *testing.T) {
	good := func(row uint32, list string) []byte { return append(AppendKey(nil, row, 5), must.Hex(t, list)...) }
	for name, bad := range map[string][]byte{
		"empty":                            {},
		"no timestamp":                     {2},
		"row beyond 32 bits":               must.Hex(t, "fc 01 00 00 00 00 05 02"),
		"no list":                          AppendKey(nil, 2, 5),
		"unknown kind":                     good(2, "04"),
		"trailing bytes after a delete":    good(2, "02 00"),
		"update of nothing":                good(2, "01"),
		"cell cut":                         good(2, "01 0b 05 01 00"),
		"cell too short":                   good(2, "01 0b 03 01 00"),
		"NULL where there must be a value": good(2, "01 0b 00"),
		"key column":                       good(2, "01 0a 00"),
		"row falls":                        good(0, "02"),
	} {
		t.Run(name, func(t *testing.T) {
			f := openFile(t, craft(t, craftOptions(), wideStats(t), good(1, "02"), bad))
			tracker := &Tracker{Schema: testSchema, Redo: []*File{f}}
			_, _, collected := tracker.Collect(0, 10, mvcc.Everything)
			w := tracker.NewWindow(mvcc.Everything)
			for what, err := range map[string]error{
				"Verify":        f.Verify(testSchema, 10, false),
				"Collect":       collected,
				"Prepare":       w.Prepare(0, 10),
				"Prepare again": w.Prepare(0, 10),
			} {
				must.Fail(t, err, fault.ErrCorrupt, what)
				must.Contain(t, err.Error(), "block 9", what)
			}
			must.Equal(t, w.Empty(), true, "a window that could not be prepared holds changes")
			if name == "row falls" {
				return // a reader of one row does not see the others
			}
			var r RowState
			_, live := tracker.Live(2)
			for what, err := range map[string]error{"RowAt": tracker.RowAt(2, mvcc.Everything, &r), "Live": live} {
				must.Fail(t, err, fault.ErrCorrupt, what)
			}
		})
	}
}

// TestWindowsReportChangesOutOfOrder reads changes of one row that are in the order of redos, and
// in the order of undos, and reads each file as both. Windows search for the first change that does
// not apply.
func TestWindowsReportChangesOutOfOrder(t *testing.T) {
	at := func(ts mvcc.Timestamp) []byte { return append(AppendKey(nil, 3, ts), setInt(11, 1)...) }
	redos := openFile(t, craft(t, craftOptions(), wideStats(t), at(5), at(6)))
	undos := openFile(t, craft(t, craftOptions(), wideStats(t), at(6), at(5)))
	for _, c := range []struct {
		tracker Tracker
		want    error
	}{
		{Tracker{Redo: []*File{redos}}, nil},
		{Tracker{Undo: []*File{undos}}, nil},
		{Tracker{Redo: []*File{undos}}, fault.ErrCorrupt},
		{Tracker{Undo: []*File{redos}}, fault.ErrCorrupt},
	} {
		must.Fail(t, c.tracker.NewWindow(mvcc.Before(6)).Prepare(0, 10), c.want,
			len(c.tracker.Undo), "files of undos", len(c.tracker.Redo), "of redos")
	}
}

// TestEveryReaderReportsBadArrays writes a malformed array after a valid one, in lists that set the
// same columns.
func TestEveryReaderReportsBadArrays(t *testing.T) {
	s := must.Get(schema.New([]schema.Column{{ID: 10, Name: "k", Type: schema.Int32},
		{ID: 11, Name: "a", Type: schema.Array, Element: schema.Int16, Nullable: true}}, 1))(t)
	set := func(row uint32, cell string) []byte {
		list := change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 11,
			append([]byte{}, must.Hex(t, cell)...))
		return append(AppendKey(nil, row, 5), list...)
	}
	for cell, whole := range map[string]bool{"01 00 01 07 00": true, "00 00": true, "": false, "01": false,
		"01 00 03 07 00": false,
		"02 00 03 07 00": false, "ff ff": false} {
		f := openFile(t, craft(t, craftOptions(), wideStats(t), set(1, "01 00 01 05 00"), set(2, cell),
			set(3, "00 00")))
		tracker := &Tracker{Schema: s, Redo: []*File{f}}
		_, _, collected := tracker.Collect(0, 10, mvcc.Everything)
		var r RowState
		errs := map[string]error{"Collect": collected,
			"Prepare": tracker.NewWindow(mvcc.Everything).Prepare(0, 10),
			"RowAt":   tracker.RowAt(2, mvcc.Everything, &r)}
		if !whole {
			errs["Verify"] = f.Verify(s, 10, false)
		}
		for what, err := range errs {
			if (err == nil) != whole || err != nil && !errors.Is(err, fault.ErrCorrupt) {
				t.Errorf("array %q: %s: %v", cell, what, err)
			}
		}
	}
}

func TestVerifyComparesWithStatistics(t *testing.T) {
	deltas := []change.Delta{{Row: 3, TS: 10, List: setInt(11, 1)}, {Row: 3, TS: 20, List: drop()}}
	cells := make([][]byte, len(deltas))
	whole := emptyStats()
	for i, d := range deltas {
		cells[i] = append(AppendKey(nil, d.Row, d.TS), d.List...)
		whole.add(d.TS, d.List)
	}
	for name, alter := range map[string]func(*Stats){
		"":                func(*Stats) {},
		"a delete more":   func(s *Stats) { s.Deletes++ },
		"a reinsert more": func(s *Stats) { s.Reinserts++ },
		"older":           func(s *Stats) { s.Min-- },
		"newer":           func(s *Stats) { s.Max++ },
		"a column less":   func(s *Stats) { s.Columns = nil },
	} {
		stats := whole
		alter(&stats)
		message := must.Get(stats.encode())(t)
		f := openFile(t, craft(t, craftOptions(), message, cells...))
		if err := f.Verify(testSchema, 4, false); (err == nil) != (name == "") ||
			err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("statistics with %q: %v", name, err)
		}
		if name == "" {
			must.Fail(t, f.Verify(testSchema, 3, false), fault.ErrCorrupt, "a row beyond the rowset")
			must.Fail(t, f.Verify(testSchema, 4, true), fault.ErrCorrupt, "redos taken for undos")
		}
	}
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	sink, _ := writeFile(t, someUpdates(40, 1, 100), false)
	for at := range sink.Bytes {
		for bit := range 8 {
			data := bytes.Clone(sink.Bytes)
			data[at] ^= 1 << bit
			f, err := OpenFile(&block.Memory{Bytes: data}, cfile.ReaderOptions{})
			if err == nil {
				err = f.Verify(testSchema, 1000, false)
			}
			if !errors.Is(err, fault.ErrCorrupt) && !errors.Is(err, fault.ErrUnsupported) {
				t.Fatalf("byte %d bit %d of %d bytes: %v", at, bit, len(sink.Bytes), err)
			}
		}
	}
}

// TestIrrelevantStoresCostNothing reads at the newest timestamp with undos only, and at an old one
// with redos only: no file is read, and a point read allocates nothing.
func TestIrrelevantStoresCostNothing(t *testing.T) {
	file := func(deltas []change.Delta, undo bool) (*File, *countedSource) {
		sink, _ := writeFile(t, deltas, undo)
		src := &countedSource{Memory: *sink}
		f := openFile(t, src)
		src.reads = 0
		return f, src
	}
	undo, undoReads := file(someUpdates(500, 2, 100), true)
	redo, redoReads := file(someUpdates(500, 2, 1000), false)
	mem := NewMemStore(nil, nil)
	mem.Apply(4, 2000, 1, setInt(11, 1))
	for _, c := range []struct {
		name    string
		tracker *Tracker
		snap    mvcc.Snapshot
	}{
		{"undos at the newest timestamp", &Tracker{Schema: testSchema, Undo: []*File{undo}}, 600},
		{"redos at an old timestamp", &Tracker{Schema: testSchema, Redo: []*File{redo}, Mem: mem}, 1000},
		{"nothing at all", &Tracker{}, mvcc.Everything},
	} {
		var r RowState
		w := c.tracker.NewWindow(c.snap)
		allocs := testing.AllocsPerRun(10, func() {
			if err := errors.Join(c.tracker.RowAt(4, c.snap, &r), w.Prepare(0, 4096)); err != nil ||
				r.Changed() || !w.Empty() {
				t.Errorf("%s: %v, %+v", c.name, err, r)
			}
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", c.name, allocs)
		}
	}
	if undoReads.reads+redoReads.reads > 0 {
		t.Errorf("%d and %d reads of irrelevant files", undoReads.reads, redoReads.reads)
	}
	// No redo is a delete, so Live need not read the file.
	if live, err := (&Tracker{Redo: []*File{redo}}).Live(4); !live || err != nil || redoReads.reads > 0 {
		t.Errorf("live %v, %v after %d reads", live, err, redoReads.reads)
	}
}

// TestAscendingWindowsReadEachCblockOnce counts reads of a file without a cache.
func TestAscendingWindowsReadEachCblockOnce(t *testing.T) {
	const rows = 2000
	sink, _ := writeFile(t, someUpdates(rows, 1, 100), false)
	for _, step := range []int{1, 7, 100, 5000} {
		src := &countedSource{Memory: *sink}
		f := openFile(t, src)
		blocks := must.Get(f.cells.BlockPointers())(t)
		src.reads = 0
		w := (&Tracker{Schema: testSchema, Redo: []*File{f}}).NewWindow(mvcc.Everything)
		seen := 0
		for from := 0; from < rows+3*step; from += step {
			must.Do(t, w.Prepare(batch.Ordinal(from), step))
			if !w.Empty() {
				seen += len(w.picks)
			}
		}
		if seen != rows || src.reads > len(blocks) {
			t.Errorf("windows of %d rows: %d changes, %d reads of %d cblocks", step, seen, src.reads, len(blocks))
		}
		// Skipping reads only the cblock that it leads to.
		src.reads = 0
		w = (&Tracker{Schema: testSchema, Redo: []*File{f}}).NewWindow(mvcc.Everything)
		for _, from := range []batch.Ordinal{10, 1500} {
			must.Do(t, w.Prepare(from, 1))
			must.Equal(t, w.Empty(), false, "row", from, "empty")
		}
		if src.reads > 6 {
			t.Errorf("%d reads for two rows far apart", src.reads)
		}
	}
}

func TestDumpShowsEveryDelta(t *testing.T) {
	sink, _ := writeFile(t, []change.Delta{
		{Row: 5, TS: 7, List: change.AppendColumn(setInt(11, 5), 12, nil)},
		{Row: 1000, TS: 8, List: drop()},
	}, false)
	var out strings.Builder
	must.Do(t, Dump(&out, sink.Bytes))
	want := `2 deltas
  0       08 01 19 07 00 00 00 00  deltafilestats: deletes 1, reinserts 0, timestamps 7 to 8
  8       00 00 00 21 08 00 00 00
  16      00 00 00 00 2a 04 08 0b
  24      10 01 2a 04 08 0c 10 01
  32      30 00
  column 11: 1 updates
  column 12: 1 updates
  row 5 at 7: update
    0       05 07                    delta key
    2       01 0b 05 05 00 00 00 0c  change list
    10      00
    column 11: 05000000
    column 12: NULL
  row 1000 at 8: delete
    0       f3 f8 08                 delta key
    3       02                       change list
`
	must.Equal(t, out.String(), want, "dump")
}

// FuzzCell reads a file of two cells, one of which is the fuzz input.
func FuzzCell(f *testing.F) {
	f.Add([]byte{5, 7, 1, 11, 5, 5, 0, 0, 0})
	f.Add([]byte{5, 7, 2})
	f.Add([]byte{0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	fuzztest.Run(f, func(t *testing.T, cell []byte) {
		cell = append([]byte{}, cell...) // nil would be NULL, which a delta file cannot have
		file := openFile(t, craft(t, craftOptions(), wideStats(t), append(AppendKey(nil, 1, 1), drop()...), cell))
		tracker := &Tracker{Schema: testSchema, Undo: []*File{file}, Redo: []*File{file}}
		d, parsed := Parse(cell)
		good := parsed == nil && d.List.Check(testSchema) == nil
		w := tracker.NewWindow(mvcc.Everything)
		err := w.Prepare(0, 4096)
		for _, c := range testSchema.Columns {
			v := batch.NewVector(c.Type, 4096)
			if err == nil {
				w.ApplyColumn(c.ID, v)
			}
		}
		inOrder := d.Row > 1 || d.Row == 1 && d.TS == 1 // after row 1 at 1, as a redo and as an undo
		if (err == nil) != (good && inOrder) {
			t.Errorf("cell %x: %v", cell, err)
		}
		var r RowState
		_ = tracker.RowAt(batch.Ordinal(d.Row), 5, &r)
		_, _ = tracker.Live(batch.Ordinal(d.Row))
		_ = Dump(new(strings.Builder), craft(t, craftOptions(), wideStats(t), cell).Bytes)
	})
}

func ExampleTracker() {
	mem := NewMemStore(nil, nil)
	name := func(s string) change.List {
		return change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), 12, []byte(s))
	}
	mem.Apply(1, 10, 1, name("first"))
	mem.Apply(1, 20, 2, name("second"))
	mem.Apply(2, 20, 2, change.AppendDelete(nil))
	tracker := &Tracker{Schema: testSchema, Mem: mem}

	base := batch.NewVector(schema.String, 4)
	for _, snap := range []mvcc.Snapshot{10, 20, 21} {
		window := tracker.NewWindow(snap)
		if err := window.Prepare(0, 4); err != nil {
			fmt.Println(err)
		}
		for i := range 4 {
			base.SetCell(i, []byte("base"))
		}
		selection := batch.MakeBitmap(4)
		selection.SetRange(0, 4)
		window.ApplyDeletes(selection)
		window.ApplyColumn(12, base)
		fmt.Print("t < ", uint64(snap), ":")
		for i := selection.Next(0); i >= 0; i = selection.Next(i + 1) {
			fmt.Printf(" %d=%s", i, base.Cell(i))
		}
		fmt.Println()
	}
	// Output:
	// t < 10: 0=base 1=base 2=base 3=base
	// t < 20: 0=base 1=first 2=base 3=base
	// t < 21: 0=base 1=second 3=base
}
