package carbondata

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// TestRandomFoldersReadBack reads folders of ours: all rows, and those that pass filters.
func TestRandomFoldersReadBack(t *testing.T) {
	n := seedtest.Rounds(40, 5)
	randomFolders(t, n, func(t *testing.T, f *randomFolder) {
		rows := f.readOurs(t)
		lines := sdkTexts(rows)
		rnd := rand.New(rand.NewPCG(4, uint64(len(rows))))
		for range 5 {
			filter, ok := f.randomFilter(rnd, rows, 2)
			if !ok {
				break
			}
			var want []string
			for i, row := range rows {
				if filter.match(row) {
					want = append(want, lines[i])
				}
			}
			compareLines(t, filter.text, f.filtered(t, filter), want)
		}
	})
}

// TestSDKReadsRandomFolders has the SDK's row reader read folders of ours: all rows, and those that
// pass filters, which it pushes down.
func TestSDKReadsRandomFolders(t *testing.T) {
	n, program := corpustest.NeedCarbonReader(t)
	j := newSDKReader(t, program)
	filters, found := 0, 0
	randomFolders(t, n, func(t *testing.T, f *randomFolder) {
		j.t = t
		rows := f.readOurs(t)
		lines, refused := j.ask(f.dir)
		must.Equal(t, refused, "")
		want := sdkTexts(rows)
		compareLines(t, "rows of the SDK", lines, want)
		rnd := rand.New(rand.NewPCG(3, uint64(len(rows))))
		for range 4 {
			filter, ok := f.randomFilter(rnd, rows, 2)
			if !ok {
				break
			}
			filters++
			found += f.compareFilter(t, j, filter, rows, want)
		}
	})
	t.Logf("%d filters passed %d rows", filters, found)
}

// compareFilter compares the rows that pass a filter, in the SDK and in this package, with the
// right answer. It returns the number of rows.
func (f *randomFolder) compareFilter(t *testing.T, j *sdkReader, filter plainFilter, rows [][]any, lines []string) int {
	t.Helper()
	table := must.Get(Open(f.dir))(t)
	files := table.Files()
	table.Close()
	var want []string
	first, everywhere := 0, true // rows of each file pass
	for _, file := range files {
		before := len(want)
		for i := first; i < first+int(file.Rows); i++ {
			if filter.match(rows[i]) {
				want = append(want, lines[i])
			}
		}
		first += int(file.Rows)
		everywhere = everywhere && len(want) > before
	}
	compareLines(t, filter.text+" of ours", f.filtered(t, filter), want)
	if len(files) > 1 {
		if !everywhere {
			return 0 // the SDK ends at a file without rows
		}
		slices.Sort(want)
	}
	got, refused := j.ask("--filter-json", filter.sdk, f.dir)
	must.Equal(t, refused, "", filter.text)
	if len(files) > 1 { // the SDK reads them in any order
		slices.Sort(got)
	}
	compareLines(t, filter.text+" of the SDK", got, want)
	return len(want)
}

// filtered returns the rows that this package reads with a filter.
func (f *randomFolder) filtered(t *testing.T, filter plainFilter) (lines []string) {
	t.Helper()
	parsed, err := ParseFilter([]byte(filter.text))
	must.Do(t, err, filter.text)
	table := must.Get(Open(f.dir))(t)
	defer table.Close()
	for row, err := range table.Rows(t.Context(), ScanOptions{Filter: parsed}) {
		must.Do(t, err, filter.text)
		lines = append(lines, string(appendJSON(nil, sdkValue(row))))
	}
	return lines
}
