package rewrite

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

const example = "hello 0000000000"

// exampleInputs are the three rowsets of tablet spec §13.8.
func exampleInputs() []Input {
	return []Input{
		oneRow(example, 0, 0, []change.Delta{deletion(1)}, []change.Delta{deletion(11)}),
		oneRow(example, 0, 0, []change.Delta{deletion(21)},
			[]change.Delta{changed(31, set(change.Update, 1, 1)), deletion(41)}),
		oneRow(example, 0, 0, []change.Delta{deletion(51)}, []change.Delta{changed(61, set(change.Update, 2, null))}),
	}
}

// Tablet spec §13.8, with the rowsets in every order.
func TestGhostsOfThreeRowSetsBecomeOneHistory(t *testing.T) {
	const want = example +
		" val=2 nullable=NULL; UNDO [@61 SET val=0,nullable=0, @51 DELETE, @41 REINSERT val=1,nullable=1, " +
		"@31 SET val=0,nullable=0, @21 DELETE, @11 REINSERT val=0,nullable=0, @1 DELETE]; REDO []\n"
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		in := exampleInputs()
		res := must.Get(run(testSchema, mvcc.Min, 0, in[order[0]], in[order[1]], in[order[2]]))(t)
		must.Equal(t, res.text(), want, "order", order)
		must.Equal(t, res.stats, (Stats{RowsRead: 3, RowsWritten: 1}), "order", order)
		must.Equal(t, res.rows[0].LiveRows, 1, "order", order, "live")
		for snap, val := range map[mvcc.Snapshot]string{45: "", 35: "1", 31: "0", 1: "", 2: "0", 11: "0",
			12: "", 52: "0", 61: "0", 62: "2", mvcc.Everything: "2"} {
			cells, live := must.Get2(res.sets[0].Get(bloom.MakeProbe([]byte(example)), snap, []int{1}, nil))(t)
			if live != (val != "") || live && number(cells[0]) != val {
				t.Errorf("at %d: live %t, %x, want %q", snap, live, cells, val)
			}
		}
	}
}

func TestCompactionKeepsVersionsReadableAtTheFloor(t *testing.T) {
	for floor, want := range map[mvcc.Timestamp]string{
		0: "[@61 SET val=0,nullable=0, @51 DELETE, @41 REINSERT val=1,nullable=1, @31 SET " +
			"val=0,nullable=0, @21 DELETE, @11 REINSERT val=0,nullable=0, @1 DELETE]",
		1: "[@61 SET val=0,nullable=0, @51 DELETE, @41 REINSERT val=1,nullable=1, @31 SET " +
			"val=0,nullable=0, @21 DELETE, @11 REINSERT val=0,nullable=0]",
		21: "[@61 SET val=0,nullable=0, @51 DELETE, @41 REINSERT val=1,nullable=1, @31 SET val=0,nullable=0]",
		40: "[@61 SET val=0,nullable=0, @51 DELETE, @41 REINSERT val=1,nullable=1]",
		41: "[@61 SET val=0,nullable=0, @51 DELETE]",
		51: "[@61 SET val=0,nullable=0]",
		60: "[@61 SET val=0,nullable=0]",
		61: "[]",
		99: "[]",
	} {
		res := must.Get(run(testSchema, floor, 0, exampleInputs()...))(t)
		must.Equal(t, res.text(), fmt.Sprintf("%s val=2 nullable=NULL; UNDO %s; REDO []\n", example,
			want), "floor", floor)
		// A read at the floor, whose bound is one above it, has the same result as before.
		whole := must.Get(run(testSchema, mvcc.Min, 0, exampleInputs()...))(t)
		for snap := mvcc.AsOf(floor); snap < 70; snap++ {
			got, err1 := res.at(testSchema, snap)
			want, err2 := whole.at(testSchema, snap)
			if err1 != nil || err2 != nil || len(got) != len(want) || !sameCells(got[example], want[example]) {
				t.Errorf("floor %d: at %d %v, want %v (%v, %v)", floor, snap, got, want, err1, err2)
			}
		}
	}
}

// Tablet spec §13.4: the effect of each change on base, undos and redos. Rows were inserted at 5
// with val 1, nullable NULL.
func TestRedosBecomeUndos(t *testing.T) {
	del := change.List(change.AppendDelete(nil))
	only := func(id schema.ColumnID, cells ...int) change.List {
		l := change.AppendUpdateHeader(nil, change.Update)
		for _, c := range cells {
			l = change.AppendColumn(l, id, cellOf(c))
		}
		return l
	}
	for _, test := range []struct {
		name string
		redo []change.Delta
		want string // without the undo of the insertion
		redoText,
		base string
	}{
		{"none", nil, "", "", "val=1 nullable=NULL"},
		{"update", []change.Delta{changed(7, set(change.Update, 2, 3))}, "@7 SET val=1,nullable=NULL, ", "",
			"val=2 nullable=3"},
		{"update to NULL", []change.Delta{changed(7, only(12, 4)), changed(8, only(12, null))},
			"@8 SET nullable=4, @7 SET nullable=NULL, ", "", "val=1 nullable=NULL"},
		{"updates of one batch", []change.Delta{changed(7, only(11, 2)), changed(7, only(11, 3))},
			"@7 SET val=2, @7 SET val=1, ", "", "val=3 nullable=NULL"},
		{"update to the same", []change.Delta{changed(7, only(11, 1))}, "@7 SET val=1, ", "", "val=1 nullable=NULL"},
		{"column twice in a list", []change.Delta{changed(7, only(11, 2, 3, 4))}, "@7 SET val=1, ", "",
			"val=4 nullable=NULL"},
		{"dropped column", []change.Delta{changed(7, only(77, 2))}, "", "", "val=1 nullable=NULL"},
		{"dropped column and another", []change.Delta{changed(7, append(only(77, 2), only(11, 5)[1:]...))},
			"@7 SET val=1, ", "", "val=5 nullable=NULL"},
		{"delete", []change.Delta{changed(7, del)}, "", "@7 DELETE", "val=1 nullable=NULL"},
		{"update, delete", []change.Delta{changed(7, only(11, 2)), changed(8, del)}, "@7 SET val=1, ",
			"@8 DELETE", "val=2 nullable=NULL"},
		{"delete, reinsert", []change.Delta{changed(7, del), changed(9, set(change.Reinsert, 5, 6))},
			"@9 DELETE, @7 REINSERT val=1,nullable=NULL, ", "", "val=5 nullable=6"},
		{"delete and reinsert of one batch", []change.Delta{changed(7, del), changed(7, set(change.Reinsert, 5, 6))},
			"@7 DELETE, @7 REINSERT val=1,nullable=NULL, ", "", "val=5 nullable=6"},
		{"delete, reinsert, update, delete",
			[]change.Delta{changed(7, del), changed(9, set(change.Reinsert, 5, null)), changed(10, only(12, 8)),
				changed(12, del)},
			"@10 SET nullable=NULL, @9 DELETE, @7 REINSERT val=1,nullable=NULL, ", "@12 DELETE", "val=5 nullable=8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res := must.Get(
				run(testSchema, mvcc.Min, 0, oneRow("k", 1, null, []change.Delta{deletion(5)}, test.redo)))(t)
			want := fmt.Sprintf("k %s; UNDO [%s@5 DELETE]; REDO [%s]\n", test.base, test.want, test.redoText)
			must.Equal(t, res.text(), want)
			must.Equal(t, int64(len(res.rows))-res.rows[0].LiveRows == 1, test.redoText != "",
				res.rows[0].LiveRows, "live rows")
		})
	}
}

func TestReinsertOfAKeyOnlyRow(t *testing.T) {
	s := mustSchema([]schema.Column{{ID: 10, Name: "key", Type: schema.String}}, 1)
	in := oneRow("k", 0, 0, []change.Delta{deletion(5)},
		[]change.Delta{deletion(7), changed(9, change.AppendUpdateHeader(nil, change.Reinsert))})
	in.rows[0].Batch.Columns = in.rows[0].Batch.Columns[:1]
	res := must.Get(run(s, mvcc.Min, 0, in))(t)
	for snap, want := range map[mvcc.Snapshot]int{5: 0, 6: 1, 7: 1, 8: 0, 9: 0, 10: 1} {
		must.Equal(t, len(must.Get(res.at(s, snap))(t)), want, "at", snap, "rows")
	}
}

// Two copies of a key end at one timestamp if a batch deletes the row, inserts the key again and
// deletes that row too. The copy that the batch began is newer, whatever the order of the rowsets.
// The batch does not begin a new copy if it finds a ghost. Here the ghost is older than the other
// copy, because an ingest does not look for ghosts in memory:
//
//	MemRowSet  |ins 3--del 4|                 |ins 7, del 7|
//	ingested                 |ins 5-----del 7|
func TestCopiesThatEndInOneBatchKeepTheirOrder(t *testing.T) {
	const want = "k val=3 nullable=3; UNDO [@7 DELETE, @7 REINSERT val=2,nullable=2, @5 DELETE, @4 " +
		"REINSERT val=1,nullable=1, @3 DELETE]; REDO [@7 DELETE]\n"
	again := func() Input {
		return oneRow("k", 3, 3, []change.Delta{deletion(7), changed(4, set(change.Reinsert, 1, 1)),
			deletion(3)}, []change.Delta{deletion(7)})
	}
	ingested := func() Input { return oneRow("k", 2, 2, []change.Delta{deletion(5)}, []change.Delta{deletion(7)}) }
	for name, inputs := range map[string][]Input{"again first": {again(), ingested()},
		"ingested first": {ingested(), again()}} {
		res := must.Get(run(testSchema, mvcc.Min, 0, inputs...))(t)
		must.Equal(t, res.text(), want, name)
		for snap, val := range map[mvcc.Snapshot]string{3: "", 4: "1", 5: "", 6: "2", 7: "2", 8: ""} {
			rows := must.Get(res.at(testSchema, snap))(t)
			if cells, live := rows["k"]; live != (val != "") || live && number(cells[1]) != val {
				t.Errorf("%s: at %d: live %t, %v, want %q", name, snap, live, cells, val)
			}
		}
	}
}

func TestHistoriesThatContradictThemselvesAreCorrupt(t *testing.T) {
	born := []change.Delta{deletion(5)}
	for name, inputs := range map[string][]Input{
		"reinsert of a live row": {oneRow("k", 1, 1, born, []change.Delta{changed(7, set(change.Reinsert, 1, 1))})},
		"update of a ghost": {oneRow("k", 1, 1, born,
			[]change.Delta{deletion(7), changed(8, set(change.Update, 1, 1))})},
		"delete of a ghost": {oneRow("k", 1, 1, born, []change.Delta{deletion(7), deletion(8)})},
		"live twice":        {oneRow("k", 1, 1, born, nil), oneRow("k", 2, 2, born, nil)},
		"live twice and a ghost": {oneRow("k", 1, 1, born, nil),
			oneRow("k", 1, 1, born, []change.Delta{deletion(7)}), oneRow("k", 2, 2, []change.Delta{deletion(9)}, nil)},
	} {
		if res, err := run(testSchema, mvcc.Min, 0, inputs...); !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%s: error %v, result %v", name, err, res)
		}
	}
}

// A row that was deleted at or below the floor is not readable and is dropped; a row deleted above
// it stays as a ghost and is never revived.
func TestGhostsBelowTheFloorAreDropped(t *testing.T) {
	inputs := func() []Input {
		return []Input{oneRow("k", 1, 1, []change.Delta{deletion(5)}, []change.Delta{deletion(7)}),
			oneRow("k", 2, 2, []change.Delta{deletion(8)}, []change.Delta{deletion(12)})}
	}
	for floor, want := range map[mvcc.Timestamp]string{
		0:  "k val=2 nullable=2; UNDO [@8 DELETE, @7 REINSERT val=1,nullable=1, @5 DELETE]; REDO [@12 DELETE]\n",
		7:  "k val=2 nullable=2; UNDO [@8 DELETE]; REDO [@12 DELETE]\n",
		11: "k val=2 nullable=2; UNDO []; REDO [@12 DELETE]\n",
		12: "",
		13: "",
	} {
		res := must.Get(run(testSchema, floor, 0, inputs()...))(t)
		must.Equal(t, res.text(), want, "floor", floor)
		if want == "" && (len(res.rows) != 0 || res.stats != (Stats{RowsRead: 2})) {
			t.Errorf("floor %d: %d rowsets, %+v", floor, len(res.rows), res.stats)
		}
	}
}

func TestRunWithoutInputsWritesNothing(t *testing.T) {
	for _, inputs := range [][]Input{nil, {&listInput{}}, {&listInput{}, &listInput{}}} {
		if res, err := run(testSchema, mvcc.Min, 0, inputs...); err != nil || len(res.rows) != 0 ||
			res.stats != (Stats{}) {
			t.Errorf("%d inputs: %v, %v", len(inputs), res, err)
		}
	}
}

// many returns an input of n rows in batches of one.
func many(prefix string, n int) *listInput {
	all := &listInput{}
	for i := range n {
		all.rows = append(all.rows,
			oneRow(fmt.Sprintf("%s%06d", prefix, i), i, i, []change.Delta{deletion(5)}, nil).rows...)
	}
	return all
}

// Rows without redos are written unchanged, unless an undo is at or below the floor.
func TestFloorDropsUndosOfUnchangedRows(t *testing.T) {
	for floor, want := range map[mvcc.Timestamp]string{4: "[@5 DELETE]", 5: "[]"} {
		res := must.Get(run(testSchema, floor, 0, many("a", 2)))(t)
		text := fmt.Sprintf("a000000 val=0 nullable=0; UNDO %s; REDO []\na000001 val=1 nullable=1; UNDO %s; REDO []\n",
			want, want)
		must.Equal(t, res.text(), text, "floor", floor)
	}
}

func TestRunStopsWhenItsContextEnds(t *testing.T) {
	for _, after := range []int{0, 1, 20} {
		ctx, cancel := context.WithCancel(context.Background())
		calls := 0
		a, b := many("a", 1000), many("a0", 1000)
		for _, in := range []*listInput{a, b} {
			in.next = func() {
				if calls++; calls > after {
					cancel()
				}
			}
		}
		w := rowset.NewRollingWriter(newDisk(), testSchema, func() uint64 { return 1 }, 0)
		_, err := Run(ctx, Job{Schema: testSchema, Inputs: []Input{a, b}, Writer: w})
		if !errors.Is(err, context.Canceled) || calls > after+3 {
			t.Errorf("after %d: %v, %d calls", after, err, calls)
		}
		cancel()
	}
}

func TestRunReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 1, 10} {
		in := many("a", n)
		in.err = broken
		must.Fail(t, must.Err(run(testSchema, mvcc.Min, 0, many("b", 5), in)), broken, "after", n, "rows")
	}
	w := rowset.NewRollingWriter(noDisk{}, testSchema, func() uint64 { return 1 }, 0)
	must.Fail(t, must.Err(Run(context.Background(),
		Job{Schema: testSchema, Inputs: []Input{many("a", 3)}, Writer: w})), errNoDisk)
}
