package carbondata

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/nearest"
)

// ScanOptions says which part of a table a scan returns.
type ScanOptions struct {
	Columns []string // names, in the order of the result; nil means all, in the user's order
	Filter  Filter   // zero: every row

	Stats *ScanStats // set while the scan reads; may be nil

	noPruning bool // for tests
}

// ScanStats says how much of a table a scan has read. A page here is a group of rows with the pages
// of all columns, as Info counts them.
type ScanStats struct {
	Files, Blocklets, Pages             int64 // of the table
	FilesRead, BlockletsRead, PagesRead int64 // those that were not skipped
}

// project returns the indexes of the scan's columns in the table's schema.
func (t *Table) project(o ScanOptions) ([]int, error) {
	var places []int
	if o.Columns == nil {
		for i := range t.columns {
			places = append(places, i)
		}
	}
	for _, name := range o.Columns {
		i, err := t.column(name)
		if err != nil {
			return nil, err
		}
		places = append(places, i)
	}
	return places, nil
}

// column returns the index of the column with the given name.
func (t *Table) column(name string) (int, error) {
	i := slices.IndexFunc(t.columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return 0, nearest.Error(fmt.Errorf("column %q: %w", name, ErrNoColumn), name, func() []string {
			var names []string
			for i := range t.columns {
				names = append(names, t.columns[i].Name)
			}
			return names
		})
	}
	return i, nil
}
