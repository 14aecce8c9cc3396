package blockmanager

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// A walk over each of many prefixes takes a logarithmic lookup per prefix and one step per row, not
// a pass over all rows per prefix. The test counts comparisons of keys.
func TestPrefixIterationVisitsOnlyMatchingRows(t *testing.T) {
	const tables, rowsPerTable = 2000, 3
	compared := 0
	rows := newCallerRowsBy(func(a, b callerRow) bool {
		compared++
		return a.key < b.key
	})
	for table := range tables {
		for row := range rowsPerTable {
			rows.put(fmt.Sprintf("%06d/%d", table, row), nil)
		}
	}
	compared = 0
	for table := range tables {
		must.Equal(t, len(rows.withPrefix(fmt.Sprintf("%06d/", table))), rowsPerTable, "table", table, "rows")
	}
	most := tables * (rowsPerTable + 2*bits.Len(tables*rowsPerTable))
	if compared > most {
		t.Errorf("%d walks compared keys %d times, want at most %d", tables, compared, most)
	}
}
