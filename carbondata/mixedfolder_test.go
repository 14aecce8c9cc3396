package carbondata

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// mixedFolder writes several folders with the same columns, some of them left out, and other sort
// columns, encodings, and page sizes, and puts their files together. The last one, of which the
// schema is, has all columns. Rows are deleted from some of the files.
func mixedFolder(t *testing.T, r *randomRows) string {
	dir := t.TempDir()
	for n := range 3 {
		part := &randomRows{Rand: r.Rand}
		for i, c := range r.columns {
			if n == 2 || r.IntN(4) > 0 {
				part.columns, part.narrow = append(part.columns, c), append(part.narrow, (r.narrow[i]+r.IntN(2))%6)
			}
		}
		if len(part.columns) == 0 {
			part.columns, part.narrow = r.columns[:1], r.narrow[:1]
		}
		o := r.options()
		o.FileBytes = 0
		o.Task, o.Time = fmt.Sprint("task", n), time.UnixMilli(int64(1700000000000+n))
		for _, i := range r.Perm(len(part.columns)) {
			if c := part.columns[i]; c.Type.Sortable() && len(o.SortColumns) < n {
				o.SortColumns = append(o.SortColumns, c.Name)
				if c.Type == String {
					o.InvertedIndex = append(o.InvertedIndex, c.Name)
				}
			}
		}
		var rows [][]any
		for range 20 + r.IntN(200) {
			rows = append(rows, part.row())
		}
		from := writeFolder(t, part.columns, o, rows)
		for _, name := range namesIn(t, from) {
			must.Do(t, os.Rename(filepath.Join(from, name), filepath.Join(dir, name)))
			if filepath.Ext(name) == dataSuffix && r.IntN(2) == 0 {
				writeDelta(t, dir, blockName(name), "1800000000000", []int{0})
			}
		}
	}
	return dir
}

// TestFilesOfMixedFolders compares filters, with and without bounds, dictionaries, and searches,
// and batches with the rows of folders whose files differ.
func TestFilesOfMixedFolders(t *testing.T) {
	seeds := seedtest.Rounds(uint64(6), 2)
	first := seedtest.Seed(t) + 999
	for seed := first; seed < first+seeds; seed++ {
		r := newRandomRows(seed)
		table := must.Get(Open(mixedFolder(t, r)))(t)
		all := scanRows(t, table, ScanOptions{})
		must.Do(t, table.Verify(t.Context()), seed)
		checkFilters(t, table, all, 10)
		random := &randomFilters{rand.New(rand.NewPCG(3, seed)), table.Schema(), all}
		for range 5 {
			f := random.filter(2)
			columns := slices.Clone(table.Schema())
			r.Shuffle(len(columns), func(i, k int) { columns[i], columns[k] = columns[k], columns[i] })
			o := ScanOptions{Columns: []string{}, Filter: f}
			for _, c := range columns {
				o.Columns = append(o.Columns, c.Name)
			}
			want := scanRows(t, table, o)
			if got, _ := batchRows(t, table, o, columns); !sameRows(got, want) {
				t.Fatalf("seed %d: %s: %d rows, want %d", seed, filterText(f), len(got), len(want))
			}
		}
		table.Close()
	}
}
