package oribi

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/schema"
)

// Change is one change that Alter makes of a table: AddColumn, DropColumn, RenameColumn,
// SetDefault, SetEncoding, SetCompression, SetBlockSize, SetImmutable, SetColumnComment,
// SetComment, SetHistory.
type Change func(*draft) error

// draft is the table's next row of metadata in the making.
type draft struct {
	row    *meta.Table
	schema *schema.Editor
}

// Alter changes the table's schema and settings: all changes, in their order, or none, durably. The
// schema version grows by one.
//
// What memory holds goes to disk first, and writers of the table wait while the last of it does, 1
// MiB or so; no row is rewritten. Reads that run go on with the columns that they began with; later
// ones, also of times before the change, find columns by today's names. A write batch that holds
// rows of the table is committed by the columns as they are then: cells follow their column to its
// new name, those of a dropped column vanish, an added column is one that the rows do not set.
//
// A column's identity is an ID that is never given again, so the values of a dropped column do not
// come back with another of its name. Their space does when compactions rewrite the rowsets.
//
// Errors: ErrNoColumn for a column that the table does not have; ErrExists for a name that is; ErrSchema for
// what cannot be, such as a dropped key column or a new one that cannot be NULL and has no default;
// ctx's; ErrReadOnly; ErrNoSpace; ErrPoisoned; ErrClosed.
func (t *Table) Alter(ctx context.Context, changes ...Change) error {
	if err := t.store.enterWriting(); err != nil {
		return err
	}
	defer t.store.leave()
	if len(changes) == 0 {
		return nil
	}
	err := t.tab.Alter(ctx, func(row *meta.Table) (err error) {
		d := draft{row: row, schema: row.Schema.Edit(row.NextColumnID)}
		for _, c := range changes {
			if err := c(&d); err != nil {
				return err
			}
		}
		row.NextColumnID = d.schema.NextID
		row.Schema, err = d.schema.Schema()
		return err
	})
	if err != nil {
		return fmt.Errorf("oribi: alter table %q: %w", t.tab.Name(), err)
	}
	return nil
}

// AddColumn puts a column behind all others. Rows that are there have its default, or NULL; its ID
// is given.
func AddColumn(c schema.Column) Change {
	return func(d *draft) error {
		c.Default = bytes.Clone(c.Default)
		if err := d.schema.Add(c); err != nil {
			return err
		}
		if err := checkDefault(&c); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
		return nil
	}
}

// DropColumn takes a column, which is not in the key, away with all its values, old ones too.
func DropColumn(name string) Change {
	return func(d *draft) error { return d.schema.Drop(name) }
}

// RenameColumn gives a column another name.
func RenameColumn(from, to string) Change {
	return func(d *draft) error { return d.schema.Rename(from, to) }
}

// SetDefault changes what new rows have that do not set the column; nil = no default. Rows that are
// there stay as they are, also those that were written before the column was added. value is a Go
// value as in Row.
func SetDefault(column string, value any) Change {
	return setColumn(column, func(c *schema.Column) error {
		var buf []byte
		cell, err := appendValue(&buf, c, value)
		if err != nil {
			return fmt.Errorf("default: %w: %w", err, fault.ErrSchema)
		}
		c.Default = bytes.Clone(cell)
		return checkDefault(c)
	})
}

// SetDefaultCell is SetDefault with the cell of the default.
func SetDefaultCell(column string, cell []byte) Change {
	return setColumn(column, func(c *schema.Column) error {
		c.Default = bytes.Clone(cell)
		return checkDefault(c)
	})
}

// SetEncoding changes how files that are written from now on hold the column.
func SetEncoding(column string, e schema.Encoding) Change {
	return setColumn(column, func(c *schema.Column) error { c.Encoding = e; return nil })
}

// SetCompression changes how files that are written from now on compress the column.
func SetCompression(column string, k schema.Compression) Change {
	return setColumn(column, func(c *schema.Column) error { c.Compression = k; return nil })
}

// SetBlockSize changes the size of the column's cblocks in files that are written from now on,
// bytes; 0 = 256 KiB, and 32 KiB of byte strings that are not codes of a dictionary.
func SetBlockSize(column string, n int32) Change {
	return setColumn(column, func(c *schema.Column) error { c.BlockBytes = n; return nil })
}

// SetImmutable makes a column immutable, or no longer so. It holds for operations that are
// committed from then on.
func SetImmutable(column string, immutable bool) Change {
	return setColumn(column, func(c *schema.Column) error { c.Immutable = immutable; return nil })
}

// SetColumnComment changes the text that stands with a column.
func SetColumnComment(column, text string) Change {
	return setColumn(column, func(c *schema.Column) error { c.Comment = text; return nil })
}

// SetComment changes the text that stands with the table.
func SetComment(text string) Change {
	return func(d *draft) error { return Comment(text).apply(d.row) }
}

// SetHistory changes how long old versions are kept, or HistoryForever. A longer time brings
// nothing back: what was dropped before stays ErrTooOld.
func SetHistory(keep time.Duration) Change {
	return func(d *draft) error { return History(keep).apply(d.row) }
}

func setColumn(name string, set func(*schema.Column) error) Change {
	return func(d *draft) error { return d.schema.Set(name, set) }
}

// checkDefault tells whether the default is a cell that the column may have. Errors: ErrSchema.
func checkDefault(c *schema.Column) error {
	if err := checkCell(c, c.Default); err != nil {
		return fmt.Errorf("default: %w: %w", err, fault.ErrSchema)
	}
	return nil
}
