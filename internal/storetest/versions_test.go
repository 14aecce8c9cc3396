package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// GetManyCells returns the same cells as GetCells for each key, of rows on disk, changed and in
// memory, more than fit in one chunk of memory. It returns nil for absent rows, and rows without
// cells if no column is requested.
func TestGetManyCellsEqualsGetCells(t *testing.T) {
	ctx := context.Background()
	store, table := conditionStore(t)
	for k := range 300 {
		putNumber(t, store, table, k, 10*k)
		if k == 200 {
			must.Do(t, table.Compact(ctx))
			putNumber(t, store, table, 100, -1)
		}
	}
	var keys []any
	for i := range 600 {
		keys = append(keys, i*7%500)
	}
	for name, opts := range map[string][]oribi.GetOption{"all": nil,
		"one": {oribi.Columns("v")}, "none": {oribi.Columns()}} {
		columns, rows := must.Get2(table.GetManyCells(ctx, keys, opts...))(t)
		must.Equal(t, len(rows), len(keys), name, "rows")
		for i, key := range keys {
			wantColumns, want, err := table.GetCells(ctx, key, opts...)
			if errors.Is(err, oribi.ErrNotFound) {
				if rows[i] != nil {
					t.Errorf("%s: key %v: %x, want no row", name, key, rows[i])
				}
				continue
			}
			if err != nil || rows[i] == nil || fmt.Sprint(rows[i]) != fmt.Sprint(want) ||
				fmt.Sprint(columns) != fmt.Sprint(wantColumns) {
				t.Errorf("%s: key %v: %x of %v, want %x of %v, %v", name, key, rows[i], columns, want, wantColumns, err)
			}
		}
	}
	if columns, rows, err := table.GetManyCells(ctx, nil); err != nil || len(rows) != 0 || len(columns) != 2 {
		t.Errorf("no keys: %v, %v, %v", columns, rows, err)
	}
}
