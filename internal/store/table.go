package store

import (
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/tablet"
)

// Table is a table of a store, with its handle.
type Table struct {
	*tablet.Tablet
	Kept sync.Map // values that callers keep with the table, by keys of theirs
	face any

	indexes atomic.Pointer[[]*Table] // the tables with the entries of the table's indexes, by name of the index
	noted   atomic.Bool              // Background.Grown has woken the scheduler since the last operation on the table ended
}

// Indexes returns the tables with the entries of the table's indexes, by name of the index. The caller must
// not modify the result.
func (t *Table) Indexes() []*Table {
	if list := t.indexes.Load(); list != nil {
		return *list
	}
	return nil
}
