package batch

import (
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Windows of wide tables have fewer rows, so that their cells take about as much memory as those of
// narrow ones.
func TestWindowsOfWideTablesHaveFewerRows(t *testing.T) {
	for _, c := range []struct{ numbers, texts, want int }{
		{1, 0, 4096}, {9, 3, 4096}, {64, 0, 4096}, {65, 0, 2048}, {0, 22, 2048}, {200, 100, 512}, {0, 300, 256},
	} {
		var columns []schema.Column
		for range c.numbers {
			columns = append(columns, schema.Column{Type: schema.Int64})
		}
		for range c.texts {
			columns = append(columns, schema.Column{Type: schema.String})
		}
		must.Equal(t, RowsOf(RowBytes(columns)), c.want, c.numbers, "numbers and", c.texts, "texts")
	}
	must.Equal(t, RowsOf(1<<20), leastRows)
	must.Equal(t, RowsOf(0), WindowRows)
}
