package oribi

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Alteration is one alteration of a table, an argument of Alter: AddColumn, DropColumn,
// RenameColumn, SetType, SetDefault, SetEncoding, SetCompression, SetBlockSize, SetImmutable,
// SetColumnComment, SetComment, SetHistory, SetRowFile, SetExpires, ClearExpires, AddIndex, AddUnique,
// DropIndex. A nil Alteration has no effect.
type Alteration func(*draft) error

// draft is the table's next metadata row while Alter builds it.
type draft struct {
	row     *meta.Table
	schema  *schema.Editor
	retypes []tablet.Retype
	index   *indexEdit // nil: none
	n       int        // alterations so far
}

// Alter changes the table's schema and settings, durably: all changes in their order, or none. It
// increments the schema version by one.
//
// The table's rows in memory are flushed first, and its writers wait for the last of that, about 1
// MiB. Only SetType rewrites rows, while writers wait. Running reads keep the columns that they
// began with. Later reads, also of earlier timestamps, find columns by their new names. A write
// batch that was filled before is converted when it is committed: cells follow a renamed column,
// cells of a dropped column are removed, and an added column is not set; after a SetType it is
// ErrConflict.
//
// A column is identified by an ID that is never reused, so the values of a dropped column do not
// return with a new column of the same name. Compactions reclaim their space.
//
// Errors: ErrNoColumn for a column that the table does not have; ErrExists for a name that is in
// use; ErrSchema for an impossible change, such as to drop a key column, or to add a column that is
// not nullable and has no default; ErrRow and ErrUnsupported, see SetType; ctx.Err(); ErrReadOnly;
// ErrNoSpace; ErrPoisoned; ErrClosed.
func (t *Table) Alter(ctx context.Context, changes ...Alteration) error {
	if err := t.store.enterWriting(); err != nil {
		return err
	}
	defer t.store.leave()
	err := ctx.Err()
	if err == nil && len(changes) == 0 {
		return nil
	}
	var d draft
	if err == nil {
		row := *t.tab.Metadata()
		d, err = draftOf(&row, changes)
	}
	switch {
	case err != nil:
	case d.index != nil:
		err = t.alterIndex(ctx, d.index)
	default:
		err = t.alter(ctx, &d, changes)
	}
	if err != nil {
		return fmt.Errorf("oribi: alter table %q: %w", t.tab.Name(), err)
	}
	return nil
}

// alter carries out changes of the schema and the settings. d is their first draft.
func (t *Table) alter(ctx context.Context, d *draft, changes []Alteration) (err error) {
	if d.endsRule() {
		err = t.purge(ctx) // of most rows, while writers continue
	}
	if err == nil {
		err = t.tab.Alter(ctx, func(row *meta.Table) ([]tablet.Retype, error) {
			before := *row
			d, err := draftOf(row, changes)
			if err == nil {
				err = t.keepsIndexes(&before, row)
			}
			return d.retypes, err
		})
	}
	if err == nil {
		err = t.alterIndexes(ctx)
	}
	return err
}

// draftOf applies changes to a metadata row.
func draftOf(row *meta.Table, changes []Alteration) (d draft, err error) {
	d = draft{row: row, schema: row.Schema.Edit(row.NextColumnID)}
	for _, c := range changes {
		if c == nil {
			continue
		}
		if err := c(&d); err != nil {
			return d, err
		}
		d.n++
	}
	if d.index != nil && d.n > 1 {
		return d, fmt.Errorf("an index is added or dropped by an Alter of its own: %w", fault.ErrSchema)
	}
	row.NextColumnID = d.schema.NextID
	row.Schema, err = d.schema.Schema()
	return d, err
}

// AddColumn adds a column after the last one. Existing rows have its default, or NULL. The default is a Go
// value as in Row, if one is given, or the cell c.Default. c.ID is ignored: the table assigns one.
//
//	err := t.Alter(ctx, oribi.AddColumn(schema.Column{Name: "visits", Type: schema.Int64}, 0))
func AddColumn(c schema.Column, value ...any) Alteration {
	value = slices.Clone(value)
	return func(d *draft) error {
		c := c
		c.Default = bytes.Clone(c.Default)
		if err := setDefault(&c, value); err != nil {
			return fmt.Errorf("column %q: %w", c.Name, err)
		}
		return d.schema.Add(c)
	}
}

// setDefault sets the default of a new column to a value, which may be missing, and checks it.
func setDefault(c *schema.Column, value []any) error {
	switch {
	case len(value) > 1 || len(value) == 1 && c.Default != nil:
		return fmt.Errorf("more than one default: %w", fault.ErrSchema)
	case !c.Type.Valid() || c.Type == schema.Array && !c.Element.Scalar() || len(value) == 0 && c.Default == nil:
		return nil // the column is checked when it is added
	case len(value) == 1:
		cell, err := bind.Append(nil, c, value[0])
		if err != nil {
			return fmt.Errorf("default: %w: %w", err, fault.ErrSchema)
		}
		c.Default = bytes.Clone(cell)
	}
	return checkDefault(c)
}

// DropColumn removes a column that is not in the key, with all its values, also in earlier
// versions. Rows must not expire by it, also not in the table's history.
func DropColumn(name string) Alteration {
	return func(d *draft) error {
		if err := d.keepsExpiry(name); err != nil {
			return err
		}
		return d.schema.Drop(name)
	}
}

// RenameColumn renames a column.
func RenameColumn(from, to string) Alteration {
	return func(d *draft) error { return d.schema.Rename(from, to) }
}

// SetDefault changes the value of the column in new rows that do not set it; nil removes the
// default. Existing rows do not change, not even those from before the column was added. value is a
// Go value as in Row.
func SetDefault(column string, value any) Alteration {
	return setColumn(column, func(c *schema.Column) error {
		cell, err := bind.Append(nil, c, value)
		if err != nil {
			return fmt.Errorf("default: %w: %w", err, fault.ErrSchema)
		}
		c.Default = bytes.Clone(cell)
		return checkDefault(c)
	})
}

// SetDefaultCell is like SetDefault, with the default as a cell.
func SetDefaultCell(column string, cell []byte) Alteration {
	return setColumn(column, func(c *schema.Column) error {
		c.Default = bytes.Clone(cell)
		return checkDefault(c)
	})
}

// SetEncoding changes the encoding of the column in files that are written from now on.
func SetEncoding(column string, e schema.Encoding) Alteration {
	return setColumn(column, func(c *schema.Column) error { c.Encoding = e; return nil })
}

// SetCompression changes the compression of the column in files that are written from now on.
func SetCompression(column string, k schema.Compression) Alteration {
	return setColumn(column, func(c *schema.Column) error { c.Compression = k; return nil })
}

// SetBlockSize changes the size of the column's cblocks, in bytes, in files that are written from
// now on. 0 means 256 KiB, or 16 KiB for byte strings that are not dictionary-encoded.
func SetBlockSize(column string, n int32) Alteration {
	return setColumn(column, func(c *schema.Column) error { c.BlockBytes = n; return nil })
}

// SetImmutable makes a column immutable or mutable, for operations that are committed from then on.
func SetImmutable(column string, immutable bool) Alteration {
	return setColumn(column, func(c *schema.Column) error { c.Immutable = immutable; return nil })
}

// SetColumnComment changes a column's comment.
func SetColumnComment(column, text string) Alteration {
	return setColumn(column, func(c *schema.Column) error { c.Comment = text; return nil })
}

// SetComment changes the table's comment.
func SetComment(text string) Alteration {
	return func(d *draft) error { return Comment(text).apply(d.row) }
}

// SetHistory changes how long old versions are kept; HistoryForever keeps all of them. A longer
// time restores nothing: a read of history that was already dropped stays ErrTooOld.
func SetHistory(keep time.Duration) Alteration {
	return func(d *draft) error { return History(keep).apply(d.row) }
}

// SetRowFile changes which rowsets have row files, as the table option RowFile decides. Flushes and
// compactions do as it says from then on; with schema.FullRowFile, Compact writes row files for all
// rows. With schema.NoRowFile, all row files are removed at once.
func SetRowFile(f schema.RowFile) Alteration {
	return func(d *draft) error { return RowFile(f).apply(d.row) }
}

func setColumn(name string, set func(*schema.Column) error) Alteration {
	return func(d *draft) error { return d.schema.Set(name, set) }
}

// checkDefault checks that the default is a cell that the column may contain. Errors: ErrSchema.
func checkDefault(c *schema.Column) error {
	if err := bind.Check(c, c.Default); err != nil {
		return fmt.Errorf("default: %w: %w", err, fault.ErrSchema)
	}
	return nil
}

// keepsExpiry returns an error if rows expire by a column, or did so in the table's history.
func (d *draft) keepsExpiry(name string) error {
	return d.schema.Set(name, func(c *schema.Column) error {
		if d.row.Expiry.Names(c.ID) {
			return fmt.Errorf("rows expire by it, or did so in the table's history: %w", fault.ErrSchema)
		}
		return nil
	})
}

// endsRule reports whether the draft ends the rule by which rows expire now.
func (d *draft) endsRule() bool {
	n := len(d.row.Expiry)
	if n == 0 || d.row.Expiry[n-1].From != mvcc.Max {
		return false
	}
	_, ok := d.row.Expiry[:n-1].Current()
	return ok
}
