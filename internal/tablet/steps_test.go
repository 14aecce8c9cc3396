package tablet

import (
	"fmt"
	"math"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
)

// A merge of overlapping rowsets takes several steps if they do not fit into memory, and gives the
// same rows. A step has more than two rowsets over one key only if they fit, and few steps rewrite
// one row.
func TestMergeInSteps(t *testing.T) {
	const sets, rows = 12, 30
	for _, fit := range []int{0, 1, 2, 3, 7, 11, 12, 1000} { // rowsets; 0 means any number
		t.Run(fmt.Sprint(fit), func(t *testing.T) {
			w := newTestStore(t, testSchema)
			for s := range sets {
				var ops []Op
				for i := range rows {
					ops = append(ops, w.op(Insert, i*sets+s, s, "some text"))
				}
				w.mustCommit(ops...)
				w.flush()
			}
			want := w.scan(latest, true)
			most, counted := int64(0), int64(0)
			var all []uint64
			for _, d := range w.tab.state.Load().tree.Sets {
				n := must.Get(d.HistoriesBytes())(t)
				most, all = max(most, n), append(all, d.Metadata().ID)
			}
			if fit > 0 {
				w.tab.opts.FitMerge = func(fits func(int64) (int64, error)) error {
					n, err := fits(int64(fit) * most)
					counted += n
					return err
				}
				w.tab.opts.GrowMerge = func(n int64) { counted += n }
			}
			w.events = nil
			must.Do(t, w.tab.Merge(t.Context(), compaction.Choice{RowSets: all, Why: "a test"}))
			must.Equal(t, len(w.events) == 1, fit == 0 || fit >= sets, len(w.events), "steps")
			read := int64(0)
			for i, e := range w.events {
				for _, in := range e.Inputs {
					read += in.Rows
				}
				l := compaction.Layout{RowSets: e.Inputs}
				if n := l.MaxHeight(); fit > 0 && n > max(2, fit) || e.Kind != compaction.Merge || e.Err != nil {
					t.Errorf("step %d: %v, %d rowsets over one key; %v", i, e.Kind, n, e.Err)
				}
			}
			if fit > 0 {
				passes := math.Ceil(math.Log(sets)/math.Log(float64(max(2, fit)))) + 2 // merged rowsets are larger
				if times := float64(read) / (sets * rows); times > passes {
					t.Errorf("each row was rewritten %.1f times, want at most %v", times, passes)
				}
			}
			must.Equal(t, w.scan(latest, true), want, "rows after the merge", len(want))
			must.Equal(t, w.tab.Info().MaxHeight(), 1, "height after the merge")
			must.Equal(t, counted, 0, "bytes that are still counted")
			w.checkFree()
		})
	}
}
