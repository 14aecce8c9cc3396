package schema

import (
	"fmt"
	"math"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
)

// Editor builds the next version of a schema from a sequence of alterations; each one applies to
// the result of the previous ones. After an error the editor must be discarded, so the alterations
// take effect together or not at all. Not safe for concurrent use.
//
// A column keeps its ID when it is renamed, and IDs are never reused: a column that is dropped and
// added again under its old name is a different column. Source: tablet spec §2.3.
type Editor struct {
	NextID ColumnID // ID of the next column to be added

	columns []Column
	keys    int
}

// Edit returns an Editor for the next version of s. next is above the IDs of all columns that the
// table has ever had.
func (s *Schema) Edit(next ColumnID) *Editor {
	return &Editor{NextID: next, columns: slices.Clone(s.Columns), keys: s.Keys}
}

// Schema returns the altered schema. Errors: ErrSchema if it is not valid, for example with too
// many columns.
func (e *Editor) Schema() (*Schema, error) { return New(e.columns, e.keys) }

// Add appends a column, with an ID assigned by the editor. Existing rows have its default, or NULL
// without one. Errors: ErrExists; ErrSchema for an invalid column and for a column that is neither
// nullable nor has a default.
func (e *Editor) Add(c Column) error {
	switch {
	case e.find(c.Name) != nil:
		return fmt.Errorf("column %q: %w", c.Name, fault.ErrExists)
	case c.Key:
		return schemaError("column %q: a table's key is chosen when it is created", c.Name)
	case c.Required():
		return schemaError("column %q: a new column that cannot be NULL needs a default for existing rows", c.Name)
	case e.NextID == math.MaxInt32:
		return schemaError("column %q: all %d column ids are used up", c.Name, int32(math.MaxInt32))
	}
	c.ID, c.ReadDefault = e.NextID, c.Default
	if err := c.check(false); err != nil {
		return err
	}
	e.NextID++
	e.columns = append(e.columns, c)
	return nil
}

// Drop removes a column with all its cells. Errors: ErrNoColumn; ErrSchema for a key column.
func (e *Editor) Drop(name string) error {
	i := slices.IndexFunc(e.columns, func(c Column) bool { return c.Name == name })
	switch {
	case i < 0:
		return e.noColumn(name)
	case i < e.keys:
		return schemaError("column %q is in the key and cannot be dropped", name)
	}
	e.columns = slices.Delete(e.columns, i, i+1)
	return nil
}

// Rename renames a column, which keeps its cells. Errors: ErrNoColumn, ErrExists, ErrSchema.
func (e *Editor) Rename(from, to string) error {
	if e.find(from) == nil {
		return e.noColumn(from)
	}
	if e.find(to) != nil {
		return fmt.Errorf("column %q cannot become %q: column %q: %w", from, to, to, fault.ErrExists)
	}
	return e.Set(from, func(c *Column) error {
		c.Name = to
		return nil
	})
}

// Set calls set to change a column. set may change anything but the ID, the key, the type, the
// nullability and the read default. A new encoding, compression or block size applies to files written
// afterwards, a new default to rows written afterwards. Errors: ErrNoColumn, ErrSchema, the errors
// of set.
func (e *Editor) Set(name string, set func(c *Column) error) error {
	c := e.find(name)
	if c == nil {
		return e.noColumn(name)
	}
	old := *c
	if err := set(c); err != nil {
		return fmt.Errorf("column %q: %w", name, err)
	}
	c.ID, c.ReadDefault, c.Key = old.ID, old.ReadDefault, old.Key
	if !c.sameType(&old) || c.Nullable != old.Nullable {
		return schemaError("column %q: type and nullability cannot be changed", name)
	}
	return c.check(slices.IndexFunc(e.columns, func(c Column) bool { return c.ID == old.ID }) < e.keys)
}

// Retype changes the type of a column: to's Type, Element, Precision, Scale, and Length. If it is
// another type, a new column in the same place, with an ID assigned by the editor, replaces the
// column, whose cells the caller converts. convert, if not nil, is called with both columns and may
// set the defaults of the new one, which are nil. If the encoding does not fit the new type, the new
// column has the default encoding. Errors: ErrNoColumn; ErrSchema, also for a key column; the
// errors of convert.
func (e *Editor) Retype(name string, to Column,
	convert func(from, to *Column) error) (from, retyped ColumnID, err error) {
	c := e.find(name)
	if c == nil {
		return 0, 0, e.noColumn(name)
	}
	if slices.IndexFunc(e.columns, func(c Column) bool { return c.Name == name }) < e.keys {
		return 0, 0, schemaError("column %q is in the key, and its type cannot be changed", name)
	}
	next := *c
	next.Type, next.Element, next.Precision, next.Scale, next.Length = to.Type, to.Element, to.Precision,
		to.Scale, to.Length
	if c.sameType(&next) {
		return c.ID, c.ID, nil
	}
	next.ID, next.Default, next.ReadDefault = e.NextID, nil, nil
	if next.Type.Valid() && !next.Encoding.Allowed(next.Stored()) {
		next.Encoding = 0
	}
	if e.NextID == math.MaxInt32 {
		return 0, 0, schemaError("column %q: all %d column ids are used up", name, int32(math.MaxInt32))
	}
	if err := next.check(false); err != nil {
		return 0, 0, err
	}
	if convert != nil {
		if err := convert(c, &next); err != nil {
			return 0, 0, fmt.Errorf("column %q: %w", name, err)
		}
		if err := next.check(false); err != nil {
			return 0, 0, err
		}
	}
	e.NextID++
	from, *c = c.ID, next
	return from, next.ID, nil
}

func (c *Column) sameType(other *Column) bool {
	return c.Type == other.Type && c.Element == other.Element && c.Precision == other.Precision &&
		c.Scale == other.Scale && c.Length == other.Length
}

// find returns the named column, or nil.
func (e *Editor) find(name string) *Column {
	for i := range e.columns {
		if e.columns[i].Name == name {
			return &e.columns[i]
		}
	}
	return nil
}

func (e *Editor) noColumn(name string) error {
	return fmt.Errorf("column %q: %w", name, (&Schema{Columns: e.columns}).NoColumn(name))
}

// Created returns the schema of a table created with s: the default of each column is also its read
// default.
func (s *Schema) Created() (*Schema, error) {
	e := s.Edit(0)
	for i := range e.columns {
		e.columns[i].ReadDefault = e.columns[i].Default
	}
	return e.Schema()
}
