package tablet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

// editFixture is a state to edit, without a store:
//
//	rowset 1      keys a–b, blocks 11 to 15, redo 16, a delta mem store, first LSN 15
//	rowset 2      keys c–d, blocks 21 to 25, undo 27, a delta mem store, first LSN 9
//	rowset 3      keys e–f, blocks 31 to 35, no delta mem store
//	frozen        a MemRowSet, first LSN 12
//	mem           a MemRowSet, first LSN 20
//
// Delta files are blocks in memory; no other file is ever opened.
type editFixture struct {
	t      *testing.T
	files  map[block.ID]*block.Memory
	row    *meta.Table
	sets   []*rowset.DiskRowSet
	mem    *memrowset.MemRowSet
	frozen *frozen
	st     *tabletState
}

func (f *editFixture) OpenBlock(id block.ID) (rowset.Block, error) {
	if m := f.files[id]; m != nil {
		return memoryBlock{m}, nil
	}
	return nil, fmt.Errorf("block %d: %w", id, fault.ErrNotFound)
}

func (f *editFixture) options() rowset.Options {
	return rowset.Options{Blocks: f, Grow: func(int64) {}}
}

func newEditFixture(t *testing.T) *editFixture {
	f := &editFixture{t: t, files: map[block.ID]*block.Memory{}}
	for _, id := range []block.ID{16, 27, 41} {
		f.addDeltaFile(id, id == 27)
	}
	f.row = &meta.Table{Number: 3, Name: "t", Schema: testSchema, HistorySec: meta.KeepForever, NextRowSetID: 4,
		NextColumnID: 5,
		FlushedLSN:   8, HistoryFloor: 30, AutoIncrement: 5}
	one, two := editRowSet(1), editRowSet(2)
	one.Redo, two.Undo = []block.ID{16}, []block.ID{27}
	f.sets = []*rowset.DiskRowSet{f.open(one), f.open(two), f.open(editRowSet(3))}
	f.sets[0].Adopt(f.deltaStore(15))
	f.sets[1].Adopt(f.deltaStore(9))
	f.mem = f.memRowSet(20)
	f.frozen = &frozen{f.memRowSet(12), cutover{lsn: 18, snap: 181, auto: 7}}
	f.frozen.mem.Freeze()
	f.st = newState(newTableSchema(testSchema, 0), f.mem, f.frozen, f.sets, 30)
	return f
}

// editRowSet returns a rowset's metadata row with blocks 10·id+1 to 10·id+5.
func editRowSet(id uint64) *rowset.Metadata {
	b := block.ID(10 * id)
	first := []byte{byte('a' + 2*(id-1))}
	return &rowset.Metadata{ID: id, MinKey: first, MaxKey: []byte{first[0] + 1}, Rows: 10, LiveRows: 10, Bloom: b + 5,
		Columns: []rowset.ColumnBlock{{ID: 1, Block: b + 1}, {ID: 2, Block: b + 2}, {ID: 3, Block: b + 3},
			{ID: 4, Block: b + 4}}}
}

// addDeltaFile makes a delta file with one DELETE.
func (f *editFixture) addDeltaFile(id block.ID, undo bool) {
	f.t.Helper()
	m := &block.Memory{Number: id}
	w := must.Get(delta.NewWriter(m, undo))(f.t)
	must.Do(f.t, w.Append(change.Delta{Row: 1, TS: 40, List: deleteList}))
	must.Do(f.t, must.Err(w.Finish()))
	f.files[id] = m
}

func (f *editFixture) open(m *rowset.Metadata) *rowset.DiskRowSet {
	f.t.Helper()
	return must.Get(rowset.Open(testSchema, m, f.options()))(f.t)
}

// deltaStore returns a delta mem store with one change.
func (f *editFixture) deltaStore(lsn lsn.LSN) *delta.MemStore {
	m := delta.NewMemStore(nil, func(int64) {})
	m.Apply(2, timestampOf(lsn), lsn, deleteList)
	return m
}

// memRowSet returns a MemRowSet with one row.
func (f *editFixture) memRowSet(lsn lsn.LSN) *memrowset.MemRowSet {
	m := memrowset.New(testSchema, nil)
	row := change.NewRowFormat(testSchema).AppendRow(nil, [][]byte{int64Cell(1), int32Cell(1), nil, int32Cell(7)})
	m.Insert([]byte{'k', byte(lsn)}, timestampOf(lsn), lsn, row)
	return m
}

// rewritten returns the metadata row of the i-th rowset after change has modified a copy.
func (f *editFixture) rewritten(i int, change func(m *rowset.Metadata)) *rowset.Metadata {
	m := *f.sets[i].Metadata()
	m.Columns, m.Redo, m.Undo = slices.Clone(m.Columns), slices.Clone(m.Redo), slices.Clone(m.Undo)
	change(&m)
	return &m
}

// flushed replaces the i-th rowset by one whose changes are in the delta file 41, and mem has the
// changes since.
func (f *editFixture) flushed(i int, mem *delta.MemStore) Replaced {
	row := f.rewritten(i, func(m *rowset.Metadata) { m.Redo = append(m.Redo, 41) })
	return Replaced{Set: f.sets[i], Flush: true, Row: row, Mem: mem}
}

// text describes everything derived from an edit of the fixture's state.
func (f *editFixture) text(e *Edit) string {
	f.t.Helper()
	var b strings.Builder
	row := e.tableRow(f.row, 50)
	fmt.Fprintf(&b, "table: version %d, next rowset %d, floor %d, flushed %d, auto %d\n",
		row.SchemaVersion, row.NextRowSetID, row.HistoryFloor, row.FlushedLSN, row.AutoIncrement)
	out := e.metadata(row)
	key := func(key []byte) string {
		kind, table, id, err := meta.ParseKey(key)
		switch {
		case err != nil || table != f.row.Number:
			f.t.Fatalf("key %x: %v", key, err)
		case kind == meta.TableRow:
			return " table"
		}
		return fmt.Sprint(" ", id)
	}
	b.WriteString("delete:")
	for _, k := range out.Delete {
		b.WriteString(key(k))
	}
	b.WriteString("\nput:")
	for _, r := range out.Put {
		b.WriteString(key(r.Key))
	}
	fmt.Fprintf(&b, "\ndead: %v\n", out.Dead)
	if out.Confirm {
		b.WriteString("confirm\n")
	}
	if first := e.firstLSN(f.st); first == lsn.Max {
		b.WriteString("first LSN: none\n")
	} else {
		fmt.Fprintf(&b, "first LSN: %d\n", first)
	}
	ev := e.event()
	ids := func(infos []compaction.RowSetInfo) (ids []uint64) {
		for _, i := range infos {
			ids = append(ids, i.ID)
		}
		return ids
	}
	fmt.Fprintf(&b, "event: %s, %v to %v\n", ev.Kind, ids(ev.Inputs), ids(ev.Outputs))
	fmt.Fprintf(&b, "dropped stores: %d\n", len(e.dropped(f.st)))
	st := must.Get(e.apply(f.st, f.options()))(f.t)
	b.WriteString("rowsets:")
	for _, d := range st.tree.Sets {
		m := d.Metadata()
		fmt.Fprintf(&b, " %d", m.ID)
		if tr := d.Tracker(); len(tr.Redo) != len(m.Redo) || len(tr.Undo) != len(m.Undo) ||
			d.Schema != st.schema.Schema {
			f.t.Errorf("rowset %d is open with %d redos and %d undos, metadata %+v", m.ID, len(tr.Redo),
				len(tr.Undo), m)
		} else if tr.Mem != nil {
			fmt.Fprintf(&b, "@%d", tr.Mem.FirstLSN())
		}
	}
	fmt.Fprintf(&b, "\nmemory: %d", st.mem.FirstLSN())
	if st.frozen != nil {
		fmt.Fprintf(&b, ", frozen %d", st.frozen.mem.FirstLSN())
	}
	fmt.Fprintf(&b, "\nfloor: %d\n", st.floor)
	if first := e.firstLSN(f.st); st.firstLSN() != first {
		f.t.Errorf("the state's first LSN is %d, the edit's %d", st.firstLSN(), first)
	}
	return b.String()
}

// An edit determines everything that its job needs: metadata rows, dead blocks, first LSN, event,
// and the next state.
func TestEditYieldsMetadataStateFirstLSNAndEvent(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(f *editFixture) Edit
		want string
	}{
		{"nothing", func(f *editFixture) Edit { return Edit{} }, `
table: version 0, next rowset 50, floor 30, flushed 8, auto 5
delete:
put: table
dead: []
first LSN: 9
event: , [] to []
dropped stores: 0
rowsets: 1@15 2@9 3
memory: 20, frozen 12
floor: 30
`},
		{"flush of the MemRowSet and the delta mem stores", func(f *editFixture) Edit {
			return Edit{Kind: compaction.Flush, Frozen: f.frozen, FlushedLSN: 18, AutoIncrement: 7, Retained: mvcc.Retained{Floor: 35},
				Added:    []Added{{Row: editRowSet(4)}},
				Replaced: []Replaced{f.flushed(0, nil), f.flushed(1, nil)}}
		}, `
table: version 0, next rowset 50, floor 35, flushed 18, auto 7
delete:
put: 4 1 2 table
dead: []
first LSN: 20
event: flush, [] to [4 1 2]
dropped stores: 3
rowsets: 1 2 3 4
memory: 20
floor: 35
`},
		{"flush with concurrent changes", func(f *editFixture) Edit {
			return Edit{Kind: compaction.Flush, Frozen: f.frozen, FlushedLSN: 18,
				Added:    []Added{{Row: editRowSet(4), Mem: f.deltaStore(19)}},
				Replaced: []Replaced{f.flushed(0, f.deltaStore(22)), f.flushed(1, nil)}}
		}, `
table: version 0, next rowset 50, floor 30, flushed 18, auto 5
delete:
put: 4 1 2 table
dead: []
first LSN: 19
event: flush, [] to [4 1 2]
dropped stores: 3
rowsets: 1@22 2 3 4@19
memory: 20
floor: 30
`},
		{"delta flush next to a frozen MemRowSet", func(f *editFixture) Edit {
			return Edit{Kind: compaction.DeltaFlush, Replaced: []Replaced{f.flushed(1, nil)}}
		}, `
table: version 0, next rowset 50, floor 30, flushed 8, auto 5
delete:
put: 2 table
dead: []
first LSN: 12
event: delta-flush, [] to [2]
dropped stores: 1
rowsets: 1@15 2 3
memory: 20, frozen 12
floor: 30
`},
		{"delta flush with concurrent changes", func(f *editFixture) Edit {
			return Edit{Kind: compaction.DeltaFlush, Replaced: []Replaced{f.flushed(1, f.deltaStore(10))}}
		}, `
table: version 0, next rowset 50, floor 30, flushed 8, auto 5
delete:
put: 2 table
dead: []
first LSN: 10
event: delta-flush, [] to [2]
dropped stores: 1
rowsets: 1@15 2@10 3
memory: 20, frozen 12
floor: 30
`},
		{"merge", func(f *editFixture) Edit {
			return Edit{Kind: compaction.Merge, Retained: mvcc.Retained{Floor: 20}, Removed: f.sets[1:],
				Added: []Added{{Row: editRowSet(4), Mem: f.deltaStore(13)}}}
		}, `
table: version 0, next rowset 50, floor 30, flushed 8, auto 5
delete: 2 3
put: 4 table
dead: [21 22 23 24 27 25 31 32 33 34 35]
first LSN: 12
event: merge, [2 3] to [4]
dropped stores: 1
rowsets: 1@15 4@13
memory: 20, frozen 12
floor: 30
`},
		{"merge that leaves no row", func(f *editFixture) Edit {
			return Edit{Kind: compaction.Merge, Retained: mvcc.Retained{Floor: 40}, Removed: f.sets, Frozen: f.frozen}
		}, `
table: version 0, next rowset 50, floor 40, flushed 8, auto 5
delete: 1 2 3
put: table
dead: [11 12 13 14 16 15 21 22 23 24 27 25 31 32 33 34 35]
first LSN: 20
event: merge, [1 2 3] to []
dropped stores: 3
rowsets:
memory: 20
floor: 40
`},
		{"major delta compaction keeps the delta mem store", func(f *editFixture) Edit {
			return Edit{Kind: compaction.MajorDelta,
				Replaced: []Replaced{{Set: f.sets[0], Row: f.rewritten(0, func(m *rowset.Metadata) {
					m.Columns[1].Block, m.Redo, m.Undo = 42, nil, []block.ID{27}
				})}}}
		}, `
table: version 0, next rowset 50, floor 30, flushed 8, auto 5
delete:
put: 1 table
dead: [12 16]
first LSN: 9
event: major, [1] to [1]
dropped stores: 0
rowsets: 1@15 2@9 3
memory: 20, frozen 12
floor: 30
`},
		{"undo GC", func(f *editFixture) Edit {
			return Edit{Kind: compaction.UndoGC, Retained: mvcc.Retained{Floor: 90}, Removed: f.sets[2:],
				Replaced: []Replaced{{Set: f.sets[1], Row: f.rewritten(1, func(m *rowset.Metadata) { m.Undo = nil })}}}
		}, `
table: version 0, next rowset 50, floor 90, flushed 8, auto 5
delete: 3
put: 2 table
dead: [31 32 33 34 35 27]
first LSN: 9
event: undo-gc, [3 2] to [2]
dropped stores: 0
rowsets: 1@15 2@9
memory: 20, frozen 12
floor: 90
`},
		{"ingest", func(f *editFixture) Edit {
			return Edit{Kind: compaction.Ingest, Confirm: true, AutoIncrement: 100,
				Added: []Added{{Row: editRowSet(4)}, {Row: editRowSet(5)}}}
		}, `
table: version 0, next rowset 50, floor 30, flushed 8, auto 100
delete:
put: 4 5 table
dead: []
confirm
first LSN: 9
event: ingest, [] to [4 5]
dropped stores: 0
rowsets: 1@15 2@9 3 4 5
memory: 20, frozen 12
floor: 30
`},
		{"alteration", func(f *editFixture) Edit {
			row := *f.row
			row.SchemaVersion, row.Schema = 1, renamedSchema(f.t)
			return Edit{Kind: compaction.Flush, Confirm: true, Frozen: f.frozen, FlushedLSN: 18,
				Added:    []Added{{Row: editRowSet(4)}},
				Alter:    &alteration{row: &row, schema: newTableSchema(row.Schema, 1)},
				Mem:      memrowset.New(row.Schema, nil),
				Replaced: []Replaced{f.flushed(0, nil), f.flushed(1, nil)}}
		}, `
table: version 1, next rowset 50, floor 30, flushed 18, auto 5
delete:
put: 4 1 2 table
dead: []
confirm
first LSN: none
event: flush, [] to [4 1 2]
dropped stores: 4
rowsets: 1 2 3 4
memory: 0
floor: 30
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newEditFixture(t)
			e := test.edit(f)
			must.Equal(t, f.text(&e), strings.TrimPrefix(test.want, "\n"))
		})
	}
}

// renamedSchema returns testSchema with one column renamed.
func renamedSchema(t *testing.T) *schema.Schema {
	t.Helper()
	columns := slices.Clone(testSchema.Columns)
	columns[1].Name = "renamed"
	return must.Get(schema.New(columns, 1))(t)
}

// An edit whose files cannot be opened changes neither the state, nor the references to its
// rowsets, nor their delta stores.
func TestApplyThatFailsLeavesTheState(t *testing.T) {
	missing := func(m *rowset.Metadata) { m.Redo = append(m.Redo, 77) }
	for name, edit := range map[string]func(f *editFixture) Edit{
		"flush": func(f *editFixture) Edit {
			return Edit{Replaced: []Replaced{f.flushed(0, nil),
				{Set: f.sets[1], Flush: true, Row: f.rewritten(1, missing)}}}
		},
		"delta compaction": func(f *editFixture) Edit {
			return Edit{Replaced: []Replaced{{Set: f.sets[0], Row: f.rewritten(0, missing)}}}
		},
		"added": func(f *editFixture) Edit {
			m := editRowSet(4)
			missing(m)
			return Edit{Removed: f.sets[:1], Added: []Added{{Row: editRowSet(5)}, {Row: m}}}
		},
		"alteration": func(f *editFixture) Edit {
			delete(f.files, 16)
			return Edit{Alter: &alteration{row: f.row, schema: newTableSchema(testSchema, 1)},
				Mem: memrowset.New(testSchema, nil)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEditFixture(t)
			e := edit(f)
			states := make([]*rowset.State, len(f.sets))
			for i, d := range f.sets {
				states[i] = d.State()
			}
			must.Fail(t, must.Err(e.apply(f.st, f.options())), fault.ErrNotFound)
			for i, d := range f.sets {
				must.Equal(t, d.State() == states[i], true, "the stores of rowset", d.Metadata().ID, "were replaced")
				if d.Unref(); d.Shared() { // the fixture's reference; the state has the other one
					t.Errorf("rowset %d has one reference too many", d.Metadata().ID)
				}
			}
		})
	}
}

// Releasing an uncommitted edit frees the changes that were caught up, and nothing that the state
// needs.
func TestReleaseOfAnUncommittedEditKeepsTheState(t *testing.T) {
	f := newEditFixture(t)
	grown := int64(0)
	caughtUp := func() *delta.MemStore {
		m := delta.NewMemStore(nil, func(n int64) { grown += n })
		m.Apply(1, mvcc.Timestamp(200), 20, deleteList)
		return m
	}
	e := Edit{Frozen: f.frozen, Added: []Added{{Row: editRowSet(4), Mem: caughtUp()}, {Row: editRowSet(5)}},
		Replaced: []Replaced{{Set: f.sets[0], Flush: true, Mem: caughtUp()}, {Set: f.sets[1], Flush: true}}}
	e.release()
	must.Equal(t, grown, 0, "bytes are not released")
	must.Equal(t, f.st.firstLSN(), 9, "first LSN of the state")
}

// An alteration that first flushes much memory does not lower the history floor that the flush has
// raised, even if it lengthens the history.
func TestAlterKeepsTheFloorOfItsFlush(t *testing.T) {
	w := newTestStore(t, testSchema)
	var ops []Op
	for k := range 1000 {
		ops = append(ops, w.op(Insert, k, 1, strings.Repeat("x", 2000)))
	}
	w.mustCommit(ops...)
	w.mustCommit(w.op(Update, 1, 2, "b"))
	w.floor = timestampOf(w.lsn)
	must.Do(t, w.tab.Alter(t.Context(),
		func(row *meta.Table) ([]Retype, error) { row.HistorySec = 3600; return nil, nil }))
	n := w.reopened(0)
	must.Equal(t, n.tab.Metadata().HistoryFloor, w.floor, "history begins")
	must.Fail(t, must.Err(n.tab.View(Snapshot{At: mvcc.AsOf(timestampOf(1))})), fault.ErrTooOld,
		"a read before the floor")
}

type memoryBlock struct{ *block.Memory }

func (memoryBlock) Close() error { return nil }
