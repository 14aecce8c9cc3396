package rowset

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/delta"
)

// takeBirths adds the births among undos to the metadata and returns the other undos.
func (w *Writer) takeBirths(undos []change.Delta, first uint32) (rest []change.Delta) {
	w.row.Births, rest = delta.MakeBirths(w.row.Births, undos, w.undos, first)
	if len(rest) < len(undos) {
		w.undos = rest
		for _, d := range undos {
			w.row.MaxTimestamp = max(w.row.MaxTimestamp, d.TS)
		}
	}
	return rest
}

// joinBirths adds the births of stored rows to the metadata and returns the undos that belong in a
// file. Births are as they were, unless there would be too many or their rows have other undos.
func (w *Writer) joinBirths(rows *StoredRows, first uint32) (undos []change.Delta) {
	if len(rows.Undo) == 0 {
		births, ok := delta.JoinBirths(w.row.Births, rows.Births, first)
		if ok {
			w.row.Births = births
			for _, b := range rows.Births {
				w.row.MaxTimestamp = max(w.row.MaxTimestamp, b.TS)
			}
			return nil
		}
	}
	w.withBirths = delta.AddBirths(append(w.withBirths[:0], rows.Undo...), rows.Births)
	return w.takeBirths(w.withBirths, first)
}
