package delta

import (
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/schema"
)

// A Numbering gives each column another ID. ok is false for a column whose changes are left out.
type Numbering func(id schema.ColumnID) (other schema.ColumnID, ok bool)

// Keeps reports whether Renumber has nothing to change in f, by its statistics.
func (n Numbering) Keeps(f *File) bool {
	if f.stats.Reinserts > 0 {
		return false // the statistics need not count their columns
	}
	for _, c := range f.stats.Columns {
		if other, ok := n(c.ID); !ok || other != c.ID {
			return false
		}
	}
	return true
}

// Renumber copies a file of undos or of redos to sink, with other column IDs, and returns the
// number of deltas. If it is 0, sink is no file. Change lists are checked against s, the schema of
// f. Errors: ErrCorrupt; the errors of sink.
func Renumber(sink block.Sink, f *File, undo bool, s *schema.Schema, ids Numbering) (int64, error) {
	w, err := NewWriter(sink, undo)
	if err != nil {
		return 0, err
	}
	var list []byte
	err = f.Changes(s, func(d change.Delta) error {
		kind := d.List.Kind()
		if kind == change.Delete {
			return w.Append(d)
		}
		list = change.AppendUpdateHeader(list[:0], kind)
		columns := d.List.Columns()
		for id, cell, ok := columns.Next(); ok; id, cell, ok = columns.Next() {
			if other, keep := ids(id); keep {
				list = change.AppendColumn(list, other, cell)
			}
		}
		if kind == change.Update && len(list) == 1 {
			return nil // it changed no other column
		}
		d.List = list
		return w.Append(d)
	})
	if err != nil || w.Len() == 0 {
		return 0, err
	}
	_, err = w.Finish()
	return w.Len(), err
}
