package rewrite

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// files returns a rowset of one row of testSchema, val 1 and nullable NULL, inserted at 5, with a
// redo file for each list of changes.
func files(t *testing.T, redos ...[]change.Delta) (*disk, *rowset.DiskRowSet) {
	t.Helper()
	res := must.Get(run(testSchema, mvcc.Min, 0, oneRow("k", 1, null, []change.Delta{deletion(5)}, nil)))(t)
	row := *res.rows[0]
	for _, list := range redos {
		row.Redo = append(row.Redo, res.disk.deltaFile(t, list)...)
		for _, d := range list {
			row.MaxTimestamp = max(row.MaxTimestamp, d.TS)
		}
	}
	return res.disk, reopen(t, res.disk, testSchema, &row)
}

func (d *disk) deltaFile(t *testing.T, list []change.Delta) []block.ID {
	t.Helper()
	out := deltaFile{creation: d}
	for _, x := range list {
		must.Do(t, out.append(x))
	}
	var bytes int64
	return must.Get(out.finish(&bytes))(t)
}

func reopen(t *testing.T, d *disk, s *schema.Schema, row *rowset.Metadata) *rowset.DiskRowSet {
	t.Helper()
	set := must.Get(rowset.Open(s, row, rowset.Options{Blocks: d}))(t)
	if id, err := set.CheckFiles(); err != nil {
		t.Fatalf("block %d: %v", id, err)
	}
	return set
}

func (d *disk) job(set *rowset.DiskRowSet, retained mvcc.Retained) DeltaJob {
	return DeltaJob{Set: set, State: set.State(), Creation: d, Retained: retained}
}

// textOf returns the rowset in the form of result.text.
func textOf(set *rowset.DiskRowSet) string { return (&result{sets: []*rowset.DiskRowSet{set}}).text() }

// only returns an update of val or of nullable, or a reinsert with one of them.
func only(kind change.Kind, id schema.ColumnID, v int) change.List {
	return change.AppendColumn(change.AppendUpdateHeader(nil, kind), id, cellOf(v))
}

// Tablet spec §14.2: base, undos and redos after a major compaction of all columns and of one.
func TestMajorBringsRedosOfColumnsIntoTheBase(t *testing.T) {
	updates := []change.Delta{changed(7, set(change.Update, 2, 3)), changed(8, only(change.Update, 11, 4)),
		changed(9, only(change.Update, 12, 5))}
	dropped := only(change.Update, 77, 1)
	for _, test := range []struct {
		name  string
		redos [][]change.Delta
		cols  []int
		floor mvcc.Timestamp
		want  string // "" = nothing to do
	}{
		{"no redo", nil, nil, 0, ""},
		{"deletes alone", [][]change.Delta{{deletion(7)}}, nil, 0, ""},
		{"all columns", [][]change.Delta{updates}, nil, 0,
			"val=4 nullable=5; UNDO [@9 SET nullable=3, @8 SET val=2, @7 SET val=1,nullable=NULL, @5 DELETE]; REDO []"},
		{"files of several flushes", [][]change.Delta{updates[:1], updates[1:2], updates[2:]}, nil, 0,
			"val=4 nullable=5; UNDO [@9 SET nullable=3, @8 SET val=2, @7 SET val=1,nullable=NULL, @5 DELETE]; REDO []"},
		{"one column", [][]change.Delta{updates}, []int{1}, 0,
			"val=4 nullable=NULL; UNDO [@8 SET val=2, @7 SET val=1, @5 DELETE]; REDO [@7 SET nullable=3, " +
				"@9 SET nullable=5]"},
		{"the other column", [][]change.Delta{updates}, []int{2}, 0,
			"val=1 nullable=5; UNDO [@9 SET nullable=3, @7 SET nullable=NULL, @5 DELETE]; REDO [@7 SET " +
				"val=2, @8 SET val=4]"},
		{"a column without redos", [][]change.Delta{updates[1:2]}, []int{2}, 0, ""},
		{"a delete stays", [][]change.Delta{updates[:1], {deletion(9)}}, nil, 0,
			"val=2 nullable=3; UNDO [@7 SET val=1,nullable=NULL, @5 DELETE]; REDO [@9 DELETE]"},
		{"changes of one batch in their order",
			[][]change.Delta{{changed(7, only(change.Update, 11, 2)), changed(7, only(change.Update, 11, 3))}}, nil, 0,
			"val=3 nullable=NULL; UNDO [@7 SET val=2, @7 SET val=1, @5 DELETE]; REDO []"},
		{"to NULL", [][]change.Delta{{changed(7, only(change.Update, 12, 3)),
			changed(8, only(change.Update, 12, null))}}, nil, 0,
			"val=1 nullable=NULL; UNDO [@8 SET nullable=3, @7 SET nullable=NULL, @5 DELETE]; REDO []"},
		// Undos that no read needs are not written; the undo of the insertion stays in its file.
		{"ancient changes", [][]change.Delta{updates}, nil, 8,
			"val=4 nullable=5; UNDO [@9 SET nullable=3, @5 DELETE]; REDO []"},
		{"a change at the floor", [][]change.Delta{updates[:1]}, nil, 7, "val=2 nullable=3; UNDO [@5 DELETE]; REDO []"},
		{"dropped column", [][]change.Delta{{changed(7, dropped)}}, nil, 0,
			"val=1 nullable=NULL; UNDO [@5 DELETE]; REDO []"},
		{"dropped column and another",
			[][]change.Delta{{changed(7, append(slices.Clone(dropped), updates[1].List[1:]...))}}, nil, 0,
			"val=4 nullable=NULL; UNDO [@7 SET val=1, @5 DELETE]; REDO []"},
		// Redos have no REINSERT except in files of other programs: it stays, with the time in
		// which the row did not exist.
		{"reinsert", [][]change.Delta{{deletion(7), changed(9, set(change.Reinsert, 2, 3))}}, nil, 0,
			"val=2 nullable=3; UNDO [@9 SET val=1,nullable=NULL, @5 DELETE]; REDO [@7 DELETE, @9 REINSERT]"},
		{"reinsert, of one column", [][]change.Delta{{deletion(7), changed(9, set(change.Reinsert, 2, 3))}},
			[]int{1}, 0,
			"val=2 nullable=NULL; UNDO [@9 SET val=1, @5 DELETE]; REDO [@7 DELETE, @9 REINSERT nullable=3]"},
		{"reinsert of nothing", [][]change.Delta{{deletion(7), changed(9, change.List{byte(change.Reinsert)})},
			{changed(10, only(change.Update, 11, 4))}}, nil, 0,
			"val=4 nullable=NULL; UNDO [@10 SET val=1, @5 DELETE]; REDO [@7 DELETE, @9 REINSERT]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, set := files(t, test.redos...)
			row := must.Get(Major(t.Context(), d.job(set, mvcc.Retained{Floor: test.floor}), test.cols))(t)
			if test.want == "" {
				must.Equal(t, row, nil, "did something")
				return
			}
			after := reopen(t, d, testSchema, row)
			must.Equal(t, textOf(after), "k "+test.want+"\n", "k")
			for snap := mvcc.AsOf(test.floor); snap < 14; snap++ {
				checkSame(t, set, after, snap)
			}
			old := set.Metadata()
			if row.Bloom != old.Bloom || row.Columns[0] != old.Columns[0] ||
				row.IncludedLSN != old.IncludedLSN || row.LiveRows != old.LiveRows || len(row.Redo) > 1 {
				t.Errorf("row %+v, was %+v", row, old)
			}
		})
	}
}

// checkSame compares the results of a scan and of lookups before and after.
func checkSame(t *testing.T, before, after *rowset.DiskRowSet, snap mvcc.Snapshot) {
	t.Helper()
	want, err1 := (&result{sets: []*rowset.DiskRowSet{before}}).at(testSchema, snap)
	got, err2 := (&result{sets: []*rowset.DiskRowSet{after}}).at(testSchema, snap)
	if err1 != nil || err2 != nil || len(got) != len(want) || !sameCells(got["k"], want["k"]) {
		t.Errorf("at %d: %x, want %x (%v, %v)", snap, got, want, err1, err2)
	}
	cells, live, err := after.Get(bloom.MakeProbe([]byte("k")), snap, []int{0, 1, 2}, nil)
	if err != nil || live != (want["k"] != nil) || live && !sameCells(cells, want["k"]) {
		t.Errorf("row at %d: %x, %t, %v, want %x", snap, cells, live, err, want["k"])
	}
}

// Undos of columns that were folded into the base earlier are younger than redos of others: a merge
// sorts them.
func TestMergeAfterAMajorOfOneColumnPutsUndosInOrder(t *testing.T) {
	d, before := files(t, []change.Delta{changed(7, set(change.Update, 2, 3)),
		changed(8, only(change.Update, 11, 4)), changed(9, only(change.Update, 12, 5)), deletion(10)})
	row := must.Get(Major(t.Context(), d.job(before, mvcc.Retained{}), []int{1}))(t)
	h := must.Get(reopen(t, d, testSchema, row).Histories(mvcc.Everything))(t)
	res := must.Get(runOn(d, testSchema, mvcc.Retained{}, 0, h))(t)
	const want = "k val=4 nullable=5; UNDO [@9 SET nullable=3, @8 SET val=2, @7 SET nullable=NULL, @7 SET " +
		"val=1, @5 DELETE]; REDO [@10 DELETE]\n"
	must.Equal(t, res.text(), want)
	for snap := mvcc.Snapshot(1); snap < 13; snap++ {
		checkSame(t, before, res.sets[0], snap)
	}
}

// Tablet spec §14.1: every delta is kept. Deltas of one row and timestamp stay in the order of
// files, and within a file in its order.
func TestMinorKeepsEveryDeltaInOrder(t *testing.T) {
	first := []change.Delta{changed(7, only(change.Update, 11, 2)), changed(7, only(change.Update, 77, 1)),
		changed(9, only(change.Update, 11, 6))}
	second := []change.Delta{changed(7, only(change.Update, 11, 4)), changed(7, only(change.Update, 11, 5)),
		changed(8, only(change.Update, 12, 1))}
	third := []change.Delta{changed(9, only(change.Update, 11, 7)), deletion(11),
		changed(12, change.List{byte(change.Reinsert)})}
	d, before := files(t, first, second, third)
	row := must.Get(Minor(t.Context(), d.job(before, mvcc.Retained{Floor: mvcc.Max})))(t)
	after := reopen(t, d, testSchema, row)
	const want = "k val=1 nullable=NULL; UNDO [@5 DELETE]; REDO [@7 SET val=2, @7 SET =1, @7 SET val=4, " +
		"@7 SET val=5, @8 SET nullable=1, " +
		"@9 SET val=6, @9 SET val=7, @11 DELETE, @12 REINSERT]\n"
	must.Equal(t, textOf(after), want)
	for snap := mvcc.Snapshot(1); snap < 15; snap++ {
		checkSame(t, before, after, snap)
	}
	if old := before.Metadata(); len(row.Redo) != 1 || !slices.Equal(row.Columns, old.Columns) ||
		!slices.Equal(row.Undo, old.Undo) {
		t.Errorf("row %+v, was %+v", row, old)
	}
	for _, n := range []int{0, 1} {
		d, set := files(t, [][]change.Delta{first}[:n]...)
		must.Equal(t, must.Get(Minor(t.Context(), d.job(set, mvcc.Retained{Floor: 0})))(t), nil, n, "files")
	}
}

// Only files without needed undos are dropped, whatever their positions.
func TestDropUndosTakesWholeFilesAtOrBelowTheFloor(t *testing.T) {
	d, set := files(t, []change.Delta{changed(7, set(change.Update, 2, 3))},
		[]change.Delta{changed(9, only(change.Update, 12, 5))})
	row, err := Major(t.Context(), d.job(set, mvcc.Retained{Floor: 0}), []int{2}) // undos of 9 and 7
	must.Do(t, err)
	set = reopen(t, d, testSchema, row)
	if row, err = Major(t.Context(), d.job(set, mvcc.Retained{Floor: 0}), nil); err != nil { // undo of 7, first in the list
		t.Fatal(err)
	}
	set = reopen(t, d, testSchema, row)
	must.Equal(t, len(row.Undo), 3, "undo files", row.Undo)
	for _, test := range []struct {
		floor mvcc.Timestamp
		keep  []block.ID
	}{{4, row.Undo}, {5, row.Undo[:2]}, {6, row.Undo[:2]}, {7, row.Undo[1:2]}, {8, row.Undo[1:2]},
		{9, nil}, {99, nil}} {
		got := DropUndos(set.State(), test.floor)
		if len(test.keep) == 3 {
			must.Equal(t, got, nil, "floor", test.floor)
			continue
		}
		if got == nil || !slices.Equal(got.Undo, test.keep) {
			t.Fatalf("floor %d: %+v, want undo files %v", test.floor, got, test.keep)
		}
		after := reopen(t, d, testSchema, got)
		for snap := mvcc.AsOf(test.floor); snap < 12; snap++ {
			checkSame(t, set, after, snap)
		}
	}
}

func TestRowSetOfOldDeletesIsDropped(t *testing.T) {
	_, dead := files(t, []change.Delta{changed(7, only(change.Update, 11, 2)), deletion(9)})
	row := *dead.Metadata()
	row.LiveRows = 0
	state := &rowset.State{Meta: &row, Deltas: dead.Tracker()}
	for floor, want := range map[mvcc.Timestamp]bool{0: false, 8: false, 9: true, 10: true} {
		must.Equal(t, Gone(state, floor), want, "floor", floor)
	}
	must.Equal(t, Gone(dead.State(), 10), false, "a rowset with a live row is gone")
	mem := delta.NewMemStore(nil, nil)
	state.Deltas = &delta.Tracker{Redo: state.Deltas.Redo, Mem: mem}
	must.Equal(t, Gone(state, 10), true, "a store without a change keeps a rowset")
	row.LiveRows = 2
	mem.Apply(0, 10, 7, change.AppendDelete(nil))
	must.Equal(t, Gone(state, 11), false, "a rowset with a live row is gone")
	mem.Apply(1, 11, 8, change.AppendDelete(nil))
	must.Equal(t, Gone(state, 10), false, "a rowset that a read at the floor sees is gone")
	must.Equal(t, Gone(state, 11), true, "deletes in memory keep a rowset")
}

func TestDeltaCompactionsRefuseDamagedFiles(t *testing.T) {
	redo := []change.Delta{changed(7, set(change.Update, 2, 3)), changed(8, only(change.Update, 11, 4))}
	beyond := []change.Delta{{Row: 1, TS: 9, List: only(change.Update, 11, 4)}}
	work := map[string]func(context.Context, DeltaJob) (*rowset.Metadata, error){
		"minor": Minor,
		"major": func(ctx context.Context, job DeltaJob) (*rowset.Metadata, error) { return Major(ctx, job, nil) },
	}
	for name, do := range work {
		d, set := files(t, redo, redo)
		id := set.Metadata().Redo[1]
		d.blocks[id].Bytes[40] ^= 1
		damaged, err := rowset.Open(testSchema, set.Metadata(), rowset.Options{Blocks: d})
		if err == nil {
			_, err = do(t.Context(), d.job(damaged, mvcc.Retained{}))
		}
		must.Fail(t, err, fault.ErrCorrupt, name, "of a damaged file")

		d, set = files(t, redo)
		row := *set.Metadata()
		row.Redo = append(row.Redo, d.deltaFile(t, beyond)...)
		if set, err = rowset.Open(testSchema, &row, rowset.Options{Blocks: d}); err == nil {
			_, err = do(t.Context(), d.job(set, mvcc.Retained{Floor: 0}))
		}
		must.Fail(t, err, fault.ErrCorrupt, name, "of a change of no row")

		d, set = files(t, redo, redo)
		must.Fail(t, must.Err(do(t.Context(),
			DeltaJob{Set: set, State: set.State(), Creation: noDisk{}})), errNoDisk, name, "without a disk")
	}
	d, set := files(t, redo, redo)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Fail(t, must.Err(Major(ctx, d.job(set, mvcc.Retained{Floor: 0}), nil)), context.Canceled, "major after its end")
}

// compactDeltas runs a delta compaction, or a delta flush, of a rowset of the table.
func (t *table) compactDeltas(i int) (what string, err error) {
	d := t.sets[i]
	var row *rowset.Metadata
	switch n := t.r.IntN(8); n {
	case 0, 1:
		return "delta flush", t.flushDeltas(i)
	case 2, 3:
		what = "minor"
		row, err = Minor(context.Background(), t.disk.job(d, t.Retained))
	case 4:
		what = "undo gc"
		row = DropUndos(d.State(), t.First())
	default:
		var cols []int
		for c := t.schema.Keys; n > 5 && c < len(t.schema.Columns); c++ {
			if t.r.IntN(2) == 0 {
				cols = append(cols, c)
			}
		}
		what = fmt.Sprintf("major of %v", cols)
		row, err = Major(context.Background(), t.disk.job(d, t.Retained), cols)
	}
	if err != nil || row == nil {
		return what, err
	}
	next, err := d.Successor(row)
	if err != nil {
		return what, err
	}
	t.sets[i] = next
	id, err := next.CheckFiles()
	if err != nil {
		err = fmt.Errorf("block %d: %w", id, err)
	}
	return what, err
}

// flushDeltas writes the older half of a rowset's delta mem store to a file; the rest stays in
// memory.
func (t *table) flushDeltas(i int) error {
	d := t.sets[i]
	mem := d.Tracker().Mem
	if mem == nil {
		return nil
	}
	cut := mvcc.Timestamp(t.r.IntN(int(t.end) + 1))
	out := deltaFile{creation: t.disk}
	var late []change.Delta
	err := mem.Each(mvcc.Everything, func(x change.Delta) error {
		if x.TS >= cut {
			late = append(late, x)
			return nil
		}
		return out.append(x)
	})
	row := *d.Metadata()
	if err == nil {
		var ids []block.ID
		ids, err = out.finish(&row.Bytes)
		row.Redo = append(slices.Clone(row.Redo), ids...)
	}
	if err != nil {
		return err
	}
	next, err := rowset.Open(t.schema, &row, rowset.Options{Blocks: t.disk})
	if err != nil {
		return err
	}
	for _, x := range late {
		next.Apply(batch.Ordinal(x.Row), x.TS, 1, x.List)
	}
	t.sets[i] = next
	return nil
}

// Plan: as TestMergesChangeNoAnswer, with delta flushes, minor and major compactions of any
// columns, and undo GC between the merges.
func TestDeltaCompactionsChangeNoAnswer(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := seedtest.Rounds(35, 15)
	for round := range rounds {
		keys := 1 + r.IntN(12)
		if round%35 == 34 {
			keys = 400
		}
		tab, err := newTable(r, schemas[r.IntN(len(schemas))], 1+r.IntN(4), keys)
		must.Do(t, err)
		var did []string
		for step := range 25 {
			if len(tab.sets) == 0 {
				break
			}
			what := "merge"
			if step%5 == 4 {
				_, err = tab.merge(1 + r.IntN(len(tab.sets)))
			} else {
				if r.IntN(6) == 0 {
					tab.rise(8)
				}
				what, err = tab.compactDeltas(r.IntN(len(tab.sets)))
			}
			did = append(did, what)
			if err == nil {
				err = tab.check()
			}
			must.Do(t, err, "round", round, "retained", tab.Retained, "after", did)
		}
	}
}

// The bytes of the redos belong to the columns by the numbers and sizes of their changes.
func TestDescribeDeltasDividesTheRedos(t *testing.T) {
	redos := []change.Delta{changed(7, set(change.Update, 2, 3)), changed(8, only(change.Update, 11, 4)),
		changed(9, only(change.Update, 77, 1)), deletion(10)}
	_, rowset := files(t, redos[:2], redos[2:])
	sizes := map[block.ID]int64{}
	for _, c := range rowset.Metadata().Columns {
		sizes[c.Block] = int64(c.ID) // the cell of column 11 has 11 bytes
	}
	lengths := func(dst []int64, ids ...block.ID) []int64 {
		for _, id := range ids {
			dst = append(dst, sizes[id])
		}
		return dst
	}
	in := DescribeDeltas(rowset.State(), testSchema, Ages{Now: mvcc.Max}, schema.AutoRowFile, lengths)
	name := func(id schema.ColumnID) string { return testSchema.Columns[testSchema.IndexID(id)].Name }
	part := func(bytes int64) int64 {
		return int64(float64(bytes) / float64(2*(8+11)+(8+12)+8+8) * float64(in.RedoBytes))
	}
	must.Equal(t, in.Updated, []compaction.UpdatedColumn{{Name: name(11), Bytes: 11, Redo: part(2 * (8 + 11))},
		{Name: name(12), Bytes: 12, Redo: part(8 + 12)}, {Redo: part(8)}})
	must.Equal(t, in.Spare, len(testSchema.Columns)/2)
	must.Equal(t, in.LargestRedo < in.RedoBytes && 2*in.LargestRedo >= in.RedoBytes, true)
	must.Equal(t, in.Age > 0, true)
}
