package tablet

import (
	"fmt"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/internal/rowunion"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// RowHistory is rowunion.History of a table, whose name its errors have.
type RowHistory struct {
	*rowunion.History
	table string
}

// RowVersion is the content of a row from one timestamp until its next version.
type RowVersion = rowunion.RowVersion

// History returns the versions of the row with an encoded key that are visible to v, or at any
// earlier time down to since. Of the older versions, only the newest is returned, as the state at
// the beginning of the history. Cells are never overwritten. Errors: ErrCorrupt.
func (v View) History(key []byte, since mvcc.Timestamp, cols []int) (*RowHistory, error) {
	h, err := v.state.union().History(rowunion.HistoryOptions{Key: key, Snapshot: v.snap,
		Since: min(max(since, v.state.floor), v.snap.Newest()), Cols: cols,
		Expiry: v.Expiry, NewPast: newPast})
	if err != nil {
		return nil, fmt.Errorf("table %q: %w", v.of.Name(), err)
	}
	return &RowHistory{h, v.of.Name()}, nil
}

func newPast(s *schema.Schema, cells [][]byte, undo, redo []change.Delta) (rowunion.Past, error) {
	return rewrite.NewPast(s, cells, undo, redo)
}

// Next returns the next older version; ok is false after the last one.
func (h *RowHistory) Next() (v RowVersion, ok bool, err error) {
	if v, ok, err = h.History.Next(); err != nil {
		err = fmt.Errorf("table %q: %w", h.table, err)
	}
	return v, ok, err
}
