package oribi

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
)

// TableOption is an option of CreateTable: History, Comment, RowFile, Expires, Index, Unique. The zero
// TableOption has no effect.
type TableOption struct {
	apply func(*meta.Table) error                // nil: none
	index func(*meta.Table) (*meta.Table, error) // the row of an index of a table, or nil
}

// Index gives a table an index by columns, in this order: a hidden table that finds rows by their values in
// these columns, also as of the past. It is written in the same write batches as the table, and takes about
// as much disk as these columns and the key. Rows with NULL are in it too.
//
// A table has up to 16 indexes of up to 16 columns each. Columns are of a type that a key may have: not
// floating-point numbers, bools, or arrays.
func Index(name string, columns ...string) TableOption { return indexOption(name, columns, false) }

// Unique is an index by columns in which no two rows have the same values: a row that another row excludes
// is refused with ErrNotUnique. Operations of a write batch take effect in their order, so a row can take a
// value that an earlier operation of the batch has freed. NULL differs from every value and from itself:
// any number of rows may have it.
func Unique(name string, columns ...string) TableOption { return indexOption(name, columns, true) }

func indexOption(name string, columns []string, unique bool) TableOption {
	return TableOption{index: func(row *meta.Table) (*meta.Table, error) { return newIndex(row, name, columns, unique) }}
}

// newIndex returns the metadata row of an index of the table with the row. Errors: ErrSchema, ErrNoColumn.
func newIndex(row *meta.Table, name string, columns []string, unique bool) (*meta.Table, error) {
	x := meta.Index{Name: name, Unique: unique}
	for _, c := range columns {
		i := row.Schema.Index(c)
		if i < 0 {
			return nil, fmt.Errorf("index %q: column %q: %w", name, c, row.Schema.NoColumn(c))
		}
		x.Columns = append(x.Columns, row.Schema.Columns[i].ID)
	}
	t, err := tablet.NewIndex(row, x)
	if err == nil {
		identify(t)
	}
	return t, err
}

// newIndexes returns the metadata rows of the indexes of a new table.
func newIndexes(row *meta.Table, opts []TableOption) (rows []*meta.Table, err error) {
	names := map[string]bool{}
	for _, o := range opts {
		if o.index == nil {
			continue
		}
		x, err := o.index(row)
		if err == nil && names[x.Index.Name] {
			err = fmt.Errorf("two indexes are named %q: %w", x.Index.Name, fault.ErrSchema)
		}
		if err == nil && len(rows) == meta.MaxIndexes {
			err = fmt.Errorf("more than %d indexes: %w", meta.MaxIndexes, fault.ErrSchema)
		}
		if err != nil {
			return nil, err
		}
		names[x.Index.Name] = true
		rows = append(rows, x)
	}
	return rows, nil
}

// IndexInfo describes an index of a table.
type IndexInfo struct {
	Name    string
	Columns []string
	Unique  bool
}

// Indexes returns the table's indexes, ordered by name.
func (t *Table) Indexes() []IndexInfo {
	var list []IndexInfo
	s := t.tab.Schema().Schema
	for _, entry := range t.entry.Indexes() {
		x := entry.Index()
		info := IndexInfo{Name: x.Name, Unique: x.Unique}
		for _, id := range x.Columns {
			if i := s.IndexID(id); i >= 0 {
				info.Columns = append(info.Columns, s.Columns[i].Name)
			}
		}
		list = append(list, info)
	}
	return list
}

// keepsIndexes returns an error if the table's indexes do not fit the table after an alteration.
func (t *Table) keepsIndexes(before, after *meta.Table) error {
	for _, entry := range t.entry.Indexes() {
		x := entry.Index()
		for i := range before.Schema.Columns {
			c := &before.Schema.Columns[i]
			now := after.Schema.IndexID(c.ID)
			if indexed := slices.Contains(x.Columns, c.ID); !indexed && i >= before.Schema.Keys ||
				now >= 0 && after.Schema.Columns[now].Type == c.Type {
				continue
			}
			return fmt.Errorf("column %q is in index %q: drop the index first: %w", c.Name, x.Name, fault.ErrSchema)
		}
		if !slices.Equal(before.Expiry, after.Expiry) {
			return fmt.Errorf("rows expire in index %q as in the table: drop the index first: %w", x.Name, fault.ErrSchema)
		}
	}
	return nil
}

// alterIndexes gives the indexes the settings of the table that they share with it.
func (t *Table) alterIndexes(ctx context.Context) error {
	row := t.tab.Metadata()
	for _, entry := range t.entry.Indexes() {
		x := entry.Metadata()
		if x.HistorySec == row.HistorySec && x.RowFile == row.RowFile {
			continue
		}
		if err := entry.Alter(ctx, func(x *meta.Table) ([]tablet.Retype, error) {
			x.HistorySec, x.RowFile = row.HistorySec, row.RowFile
			return nil, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// index is findIndex for an operation on the table.
func (t *Table) index(name string) (*store.Table, error) {
	entries, err := t.findIndex(name)
	return entries, t.errorf(err)
}

// findIndex returns the entries of the index with a name. Errors: ErrSchema.
func (t *Table) findIndex(name string) (*store.Table, error) {
	for _, entry := range t.entry.Indexes() {
		if entry.Index().Name == name {
			return entry, nil
		}
	}
	return nil, fmt.Errorf("index %q: %w", name, fault.Reworded(fault.ErrSchema, "the table has no such index"))
}

// byRow reports whether ranges of the table must be deleted row by row: what that changes besides the rows, or
// which rows exist, depends on cells.
func (t *Table) byRow() bool { return store.Expires(t.tab) || len(t.tab.Indexes()) > 0 }

// identify gives a new table the random numbers by which other programs know it.
func identify(row *meta.Table) {
	rand.Read(row.TableID[:])
	rand.Read(row.TabletID[:])
}
