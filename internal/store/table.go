package store

import (
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/tablet"
)

// Table is a table of a store, with its handle.
type Table struct {
	*tablet.Tablet
	Kept  sync.Map // values that callers keep with the table, by keys of theirs
	face  any
	noted atomic.Bool // Background.Grown has woken the scheduler since the last operation on the table ended
}
