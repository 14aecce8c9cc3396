package tablet

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
)

// The next state of a follower keeps the stores that the writer's edits have not replaced, and says
// from which LSN on the others need the log.
func TestNextKeepsStoresThatHaveNotChanged(t *testing.T) {
	type state struct {
		mem    bool   // the MemRowSet is kept
		deltas []bool // the delta mem stores of rowsets 1 and 2 are kept
		from   lsn.LSN
	}
	for name, c := range map[string]struct {
		hasUpTo lsn.LSN
		change  func(f *editFixture, row *meta.Table, sets []*rowset.Metadata)
		want    state
	}{
		"no rowset": {20, func(_ *editFixture, row *meta.Table, _ []*rowset.Metadata) { row.HistoryFloor = 35 },
			state{true, []bool{true, true}, lsn.Max}},
		"delta compaction": {20, func(f *editFixture, _ *meta.Table, sets []*rowset.Metadata) {
			sets[0] = f.rewritten(0, func(m *rowset.Metadata) { m.Redo = nil })
		}, state{true, []bool{true, true}, lsn.Max}},
		"delta flush": {20, func(f *editFixture, _ *meta.Table, sets []*rowset.Metadata) {
			sets[0] = f.rewritten(0, func(m *rowset.Metadata) { m.IncludedLSN, m.Redo = 17, append(m.Redo, 41) })
		}, state{true, []bool{false, true}, 18}},
		"flush": {20, func(_ *editFixture, row *meta.Table, _ []*rowset.Metadata) { row.FlushedLSN = 19 },
			state{false, []bool{true, true}, 20}},
		"schema": {20, func(f *editFixture, row *meta.Table, _ []*rowset.Metadata) {
			row.Schema, row.SchemaVersion = renamedSchema(f.t), 1
		}, state{false, []bool{false, false}, 1}},
		"nothing is kept": {0, func(*editFixture, *meta.Table, []*rowset.Metadata) {},
			state{false, []bool{false, false}, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEditFixture(t)
			f.st.frozen, f.st.mems = nil, f.st.mems[:1]
			tab := &Tablet{Number: 3}
			tab.opts.RowSets = f.options()
			tab.metadata.Store(f.row)
			tab.install(f.st)
			row, changed := *f.row, map[uint64]bool{}
			var sets []*rowset.Metadata
			for _, d := range f.sets {
				sets = append(sets, d.Metadata())
			}
			c.change(f, &row, sets)
			for i, d := range f.sets {
				changed[d.Metadata().ID] = sets[i] != d.Metadata()
			}
			for _, end := range []func(*Next){(*Next).Abort, (*Next).Install} {
				n := must.Get(tab.Next(&row, sets, changed, c.hasUpTo))(t)
				got := state{mem: n.st.mem == f.mem, from: n.From()}
				for i, d := range n.st.tree.Sets[:2] {
					got.deltas = append(got.deltas, d.Tracker().Mem == f.sets[i].Tracker().Mem)
				}
				must.Equal(t, fmt.Sprint(got), fmt.Sprint(c.want), "kept")
				end(n)
			}
			if tab.Metadata() != &row || tab.state.Load().floor != row.HistoryFloor || len(tab.RowSetMetadata()) != 3 {
				t.Errorf("installed %+v", tab.Metadata())
			}
		})
	}
}
