package oribi

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/schema"
)

type blockID = block.ID

// History keeps old versions of the table's rows for d, or HistoryForever. The default is that of
// the store, Options.History.
func History(d time.Duration) TableOption {
	return TableOption{apply: func(t *meta.Table) (err error) {
		if t.HistorySec, err = historySeconds(d); err != nil {
			return fmt.Errorf("%w: %w", err, fault.ErrSchema)
		}
		return nil
	}}
}

const maxCommentBytes = 256 // as of a column. Source: tablet spec §20

// Comment stores a text with the table, at most 256 bytes.
func Comment(text string) TableOption {
	return TableOption{apply: func(t *meta.Table) error {
		if !utf8.ValidString(text) || len(text) > maxCommentBytes {
			return fmt.Errorf("the comment is longer than %d bytes or not valid UTF-8: %w", maxCommentBytes,
				fault.ErrSchema)
		}
		t.Comment = text
		return nil
	}}
}

// RowFile decides which rowsets repeat their rows in row files, so that a read of a row that is not
// in memory reads one page of a few kilobytes instead of a place of each column. The default is
// schema.AutoRowFile: rowsets whose columns pack well have one, which takes about a quarter of the
// bytes of the columns. A table that is only scanned saves them with schema.NoRowFile.
func RowFile(f schema.RowFile) TableOption {
	return TableOption{apply: func(t *meta.Table) error {
		if !f.Valid() {
			return fmt.Errorf("row file: unknown value %d: %w", f, fault.ErrSchema)
		}
		t.RowFile = f
		return nil
	}}
}

// CreateTable creates an empty table, durably. columns is made by schema.New or SchemaOf.
//
// Errors: ErrExists; ErrSchema, for a bad name too; ErrReadOnly; ErrNoSpace; ErrPoisoned;
// ErrClosed.
func (s *Store) CreateTable(name string, columns *schema.Schema, opts ...TableOption) (*Table, error) {
	tables, err := s.CreateTables(NewTable{name, columns, opts})
	if err != nil {
		return nil, err
	}
	return tables[0], nil
}

// NewTable is an argument of CreateTables: the arguments of CreateTable for one table.
type NewTable struct {
	Name    string
	Columns *schema.Schema
	Options []TableOption
}

// CreateTables creates empty tables, durably: all or none. It makes one metadata commit, so that
// thousands of tables take little longer than one. The result has the tables in the order of the
// arguments. Errors: as for CreateTable; ErrExists also for two tables with one name. The text names
// the first table that cannot be created.
func (s *Store) CreateTables(tables ...NewTable) ([]*Table, error) {
	if err := s.enterWriting(); err != nil {
		return nil, err
	}
	defer s.leave()
	rows, names := make([]*meta.Table, 0, len(tables)), make(map[string]bool, len(tables))
	made := map[*schema.Schema]*schema.Schema{} // tables with the same columns share a schema
	created := func(columns *schema.Schema) (c *schema.Schema, err error) {
		if c = made[columns]; c == nil {
			c, err = columns.Created()
			made[columns] = c
		}
		return c, err
	}
	for _, n := range tables {
		row, err := s.newTable(n.Name, n.Columns, created, n.Options)
		if err == nil && names[n.Name] {
			err = fault.ErrExists
		}
		var indexes []*meta.Table
		if err == nil {
			indexes, err = newIndexes(row, n.Options)
		}
		if err != nil {
			return nil, fmt.Errorf("oribi: create table %q: %w", n.Name, err)
		}
		rows, names[n.Name] = append(append(rows, row), indexes...), true
	}
	if len(rows) == 0 {
		return nil, nil
	}
	handles, err := s.core.Writer.Create(rows)
	if err != nil {
		return nil, fmt.Errorf("oribi: create %s: %w", tablesText(len(tables), rows[0].Name), err)
	}
	list := make([]*Table, 0, len(tables))
	for i, t := range handles {
		if rows[i].Index == nil {
			list = append(list, t.(*Table))
		}
	}
	return list, nil
}

// tablesText returns the name of a single table, or how many tables there are.
func tablesText(n int, first string) string {
	if n == 1 {
		return fmt.Sprintf("table %q", first)
	}
	return fmt.Sprintf("%d tables", n)
}

// newTable returns the metadata row of a new table, without its number and its flushed LSN. It
// checks the name, the columns and the options. checked returns the table's schema, or what is
// wrong with the columns.
func (s *Store) newTable(
	name string, columns *schema.Schema, checked func(*schema.Schema) (*schema.Schema, error), opts []TableOption,
) (*meta.Table, error) {
	if err := schema.CheckName(name); err != nil {
		return nil, err
	}
	if columns == nil {
		return nil, fmt.Errorf("no schema: %w", fault.ErrSchema)
	}
	columns, err := checked(columns)
	if err != nil {
		return nil, err
	}
	for i := range columns.Columns {
		c := &columns.Columns[i]
		for _, value := range [2][]byte{c.Default, c.ReadDefault} {
			if err := bind.Check(c, value); err != nil {
				return nil, fmt.Errorf("column %q: default: %w: %w", c.Name, err, fault.ErrSchema)
			}
		}
	}
	row := &meta.Table{Name: name, Schema: columns, HistorySec: s.core.Stored().DefaultHistorySec}
	identify(row)
	for i := range columns.Columns {
		row.NextColumnID = max(row.NextColumnID, columns.Columns[i].ID+1)
	}
	for _, o := range opts {
		if o.apply == nil {
			continue
		}
		if err := o.apply(row); err != nil {
			return nil, err
		}
	}
	return row, s.checkFree(name)
}

// checkFree returns an error if there is a table with a name.
func (s *Store) checkFree(name string) error {
	if s.core.Face(name) != nil {
		return fault.ErrExists
	}
	return nil
}

// addTable adds a table, durably. edit, called when row has its number, returns the metadata commit
// with the row, and the table's rowsets.
func (s *Store) addTable(row *meta.Table, edit func() (blockmanager.Edit, []*rowset.Metadata)) (*Table, error) {
	t, err := s.core.Writer.Add(row, edit)
	if err != nil {
		return nil, err
	}
	return t.(*Table), nil
}

// Table returns a table by name. Errors: ErrNoTable, with the nearest name; ErrClosed.
func (s *Store) Table(name string) (*Table, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	if t := s.core.Face(name); t != nil {
		return t.(*Table), nil
	}
	return nil, callErr(fmt.Sprintf("table %q", name), s.noTable(name))
}

// noTable returns the ErrNoTable for a name that no table has. Its text suggests the nearest name.
func (s *Store) noTable(name string) error {
	return nearest.Error(fault.ErrNoTable, name, func() (names []string) {
		for _, t := range s.sortedTables() {
			names = append(names, t.Name())
		}
		return names
	})
}

// Tables returns all tables, ordered by name.
func (s *Store) Tables() []*Table { return s.sortedTables() }

// DropTable removes a table with all its rows and versions, durably. It reclaims their space,
// except what running scans still read: these continue to their end. Write batches with operations
// on the table fail. Errors: ErrNoTable; ErrReadOnly; ErrPoisoned; ErrClosed.
func (s *Store) DropTable(name string) error { return s.DropTables(name) }

// DropTables is like DropTable for several tables: it drops all or none, in one metadata commit.
// Errors: as for DropTable; ErrNoTable also for a name that is given twice. The text names the first
// table that cannot be dropped.
func (s *Store) DropTables(names ...string) error {
	if err := s.enterWriting(); err != nil {
		return err
	}
	defer s.leave()
	tables, known := make([]*tablet.Tablet, len(names)), make(map[string]bool, len(names))
	var indexes []*tablet.Tablet
	for i, name := range names {
		t, ok := s.core.Face(name).(*Table)
		if !ok || known[name] {
			return callErr(fmt.Sprintf("drop table %q", name), s.noTable(name))
		}
		tables[i], known[name] = t.tab, true
		indexes = append(indexes, t.tab.Indexes()...)
	}
	if tables = append(tables, indexes...); len(tables) == 0 {
		return nil
	}
	err := s.core.ClaimReserve()
	if err == nil {
		err = s.core.Writer.Drop(tables)
	}
	if err != nil {
		return callErr("drop "+tablesText(len(names), names[0]), err)
	}
	s.core.Reclaim(context.Background())
	return nil
}

// Rename renames the table, durably. Handles, running reads, write batches, and the table's history
// stay valid. Rename does nothing if the table already has that name. It waits for running
// flushes and compactions of the table, and then makes one metadata commit.
//
// Errors: ErrExists if another table has that name; ErrSchema for a name that no table can have;
// ErrNoTable if the table was dropped; ctx.Err(); ErrReadOnly; ErrNoSpace; ErrPoisoned; ErrClosed.
func (t *Table) Rename(ctx context.Context, name string) error {
	s := t.store
	if err := s.enterWriting(); err != nil {
		return err
	}
	defer s.leave()
	old := t.tab.Name()
	err := schema.CheckName(name)
	if err == nil {
		err = s.core.Writer.Rename(ctx, t.tab, name)
	}
	if err != nil {
		return fmt.Errorf("oribi: rename table %q to %q: %w", old, name, err)
	}
	return nil
}

// Name returns the table's present name.
func (t *Table) Name() string { return t.tab.Name() }

// Schema returns the table's present columns. It must not be modified.
func (t *Table) Schema() *schema.Schema { return t.tab.Schema().Schema }

// Layout returns the table's rowsets as a policy sees them.
func (t *Table) Layout() compaction.Layout { return t.tab.Info() }
