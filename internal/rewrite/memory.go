package rewrite

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/memrowset"
)

// memInput is a MemRowSet as the input of a flush.
type memInput struct {
	it   *memrowset.HistoryIterator
	rows int // of a window
}

// NewMemInput returns the rows of a MemRowSet as the input of a flush. It is a Keeper.
func NewMemInput(it *memrowset.HistoryIterator) Input {
	return &memInput{it, batch.RowsOf(batch.RowBytes(it.Schema().Columns))}
}

func (m *memInput) Next() (*change.Rows, error) { return m.it.Next(m.rows) }
func (m *memInput) Keeps() int                  { return m.it.Keeps() }
