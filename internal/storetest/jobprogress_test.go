package storetest

import (
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// A flush and a merging compaction report how many rows they have read, up to the number of all
// rows.
func TestProgressOfFlushAndCompactionEndsWithAllRows(t *testing.T) {
	type report struct{ rows, of int64 }
	var list []report
	store, err := oribi.Open(t.TempDir(), &oribi.Options{Manual: true, Progress: func(table string, rows, of int64) {
		if table != "numbers" {
			t.Errorf("table %q", table)
		}
		list = append(list, report{rows, of})
	}})
	must.Do(t, err)
	defer store.Close()
	table := numbersTable(t, store, "numbers")
	const rows = 10_000
	check := func(what string, of int64) {
		t.Helper()
		last := int64(0)
		for _, p := range list {
			if p.of != of || p.rows <= last || p.rows > of {
				t.Fatalf("%s: %v", what, list)
			}
			last = p.rows
		}
		if last != of || len(list) < 2 {
			t.Errorf("%s of %d rows: %v", what, of, list)
		}
		list = nil
	}
	for half := range 2 {
		b := store.NewBatch()
		for i := range rows {
			b.Insert(table, oribi.Row{"k": 2*i + half, "v": i})
		}
		must.Get(b.Commit(t.Context()))(t)
		must.Do(t, table.Flush(t.Context()))
		check("flush", rows)
	}
	must.Do(t, table.Compact(t.Context()))
	check("compact", 2*rows)
}
