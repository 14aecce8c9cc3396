package tablet

import (
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/rowset"
)

// compactLoose runs a major compaction of one column, a minor one and a major one of all columns on
// each rowset of a table without a store.
func compactLoose(t *testing.T, tab *Tablet) {
	t.Helper()
	o := &rowset.Overlay{Base: tab.opts.RowSets.Blocks}
	var sets []*rowset.DiskRowSet
	done := 0
	for _, d := range tab.state.Load().tree.Sets {
		job := func() rewrite.DeltaJob { return rewrite.DeltaJob{Set: d, State: d.State(), Creation: o} }
		for _, step := range []func() (*rowset.Metadata, error){
			func() (*rowset.Metadata, error) {
				cols := rewrite.UpdatedColumns(d.Schema, d.Tracker())
				return rewrite.Major(t.Context(), job(), append([]int{}, cols[:min(1, len(cols))]...))
			},
			func() (*rowset.Metadata, error) { return rewrite.Minor(t.Context(), job()) },
			func() (*rowset.Metadata, error) { return rewrite.Major(t.Context(), job(), nil) },
		} {
			row, err := step()
			if err == nil && row != nil {
				done++
				d, err = rowset.Open(d.Schema, row, rowset.Options{Blocks: o})
			}
			if err == nil {
				var id block.ID
				id, err = d.CheckFiles()
				must.Do(t, err, "block", id)
			}
			must.Do(t, err)
		}
		sets = append(sets, d)
	}
	t.Logf("%d delta compactions", done)
	tab.install(newState(tab.Schema(), tab.newMem(tab.Schema()), nil, sets, 0))
}
