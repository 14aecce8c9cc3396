package carbondata

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
)

// goldenFilter is a line of filters.jsonl: a filter and the rows that it selects, as pairs of the
// first one and how many.
type goldenFilter struct {
	Filter json.RawMessage
	Count  int
	Rows   [][2]int
}

func goldenFilters(t *testing.T, dir string) (filters []goldenFilter) {
	paths, err := filepath.Glob(filepath.Join(dir, "filters.jsonl*"))
	if err != nil || len(paths) == 0 {
		return nil
	}
	for _, line := range corpustest.Lines(t, filepath.Join(dir, "filters.jsonl")) {
		var f goldenFilter
		must.Do(t, json.Unmarshal([]byte(line), &f))
		filters = append(filters, f)
	}
	return filters
}

// TestGoldenFilters compares the rows that filters select with the right answers of the corpus.
func TestGoldenFilters(t *testing.T) {
	total := 0
	goldenFolders(t, func(t *testing.T, g goldenFolder, dir string) {
		filters := goldenFilters(t, dir)
		if len(filters) == 0 {
			return
		}
		table := must.Get(Open(dir))(t)
		defer table.Close()
		all := scanRows(t, table, ScanOptions{})
		for _, golden := range filters {
			total++
			f := must.Get(ParseFilter(golden.Filter))(t)
			var want [][]any
			for _, r := range golden.Rows {
				want = append(want, all[r[0]:r[0]+r[1]]...)
			}
			got := scanRows(t, table, ScanOptions{Filter: f})
			if len(got) != golden.Count || len(want) != golden.Count || !sameRows(got, want) {
				t.Errorf("%s: %d rows, want %d", golden.Filter, len(got), golden.Count)
			}
		}
	})
	if total < 612 && !invariant.Race { // see goldenFolders
		t.Errorf("%d filters", total)
	}
}
