package schema

import (
	"fmt"
	"math"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
)

// Editor makes the next version of a schema by one change after the other; each sees what those
// before it did. A change that is refused leaves the editor of no more use: several changes are
// made all or none. For one goroutine.
//
// IDs stay with their columns whatever they are called, and are never given twice: a column that is
// dropped and added again under its old name is another column. Source: tablet spec §2.3.
type Editor struct {
	NextID ColumnID // of the next column that is added

	columns []Column
	keys    int
}

// Edit begins the next version of s; next is above the ID of every column that the table ever had.
func (s *Schema) Edit(next ColumnID) *Editor {
	return &Editor{NextID: next, columns: slices.Clone(s.Columns), keys: s.Keys}
}

// Schema is what the changes have made. Errors: ErrSchema for what a schema cannot be, such as too
// many columns.
func (e *Editor) Schema() (*Schema, error) { return New(e.columns, e.keys) }

// Add puts a column behind all others. Its ID is the editor's to give; rows that are there already
// have its default, or NULL. Errors: ErrExists; ErrSchema for what cannot be a column, and for one
// that must not be NULL and has no default.
func (e *Editor) Add(c Column) error {
	switch {
	case e.find(c.Name) != nil:
		return fmt.Errorf("column %q: %w", c.Name, fault.ErrExists)
	case c.Required():
		return schemaError("column %q: a new column that cannot be NULL needs a default, for the rows that are there", c.Name)
	case e.NextID == math.MaxInt32:
		return schemaError("column %q: all %d column ids were given", c.Name, int32(math.MaxInt32))
	}
	c.ID, c.ReadDefault = e.NextID, c.Default
	if err := c.check(false); err != nil {
		return err
	}
	e.NextID++
	e.columns = append(e.columns, c)
	return nil
}

// Drop takes a column away, with all its cells. Errors: ErrNoColumn; ErrSchema for a key column.
func (e *Editor) Drop(name string) error {
	i := slices.IndexFunc(e.columns, func(c Column) bool { return c.Name == name })
	switch {
	case i < 0:
		return errNoColumn(name)
	case i < e.keys:
		return schemaError("column %q is in the key and cannot be dropped", name)
	}
	e.columns = slices.Delete(e.columns, i, i+1)
	return nil
}

// Rename gives a column another name; its cells stay. Errors: ErrNoColumn, ErrExists, ErrSchema.
func (e *Editor) Rename(from, to string) error {
	if e.find(from) == nil {
		return errNoColumn(from)
	}
	if e.find(to) != nil {
		return fmt.Errorf("column %q cannot become %q: column %q: %w", from, to, to, fault.ErrExists)
	}
	return e.Set(from, func(c *Column) error {
		c.Name = to
		return nil
	})
}

// Set has set change what it likes of a column but its identity: ID, type, whether it can be NULL,
// and the default that older rows have. Encoding, compression and block size hold for files that
// are written from then on, the default for rows. Errors: ErrNoColumn, ErrSchema, what set returns.
func (e *Editor) Set(name string, set func(c *Column) error) error {
	c := e.find(name)
	if c == nil {
		return errNoColumn(name)
	}
	old := *c
	if err := set(c); err != nil {
		return fmt.Errorf("column %q: %w", name, err)
	}
	c.ID, c.ReadDefault = old.ID, old.ReadDefault
	if c.Type != old.Type || c.Element != old.Element || c.Nullable != old.Nullable || c.Precision != old.Precision || c.Scale != old.Scale || c.Length != old.Length {
		return schemaError("column %q: type and nullability cannot be changed", name)
	}
	return c.check(slices.IndexFunc(e.columns, func(c Column) bool { return c.ID == old.ID }) < e.keys)
}

// find returns the column of that name, nil if there is none.
func (e *Editor) find(name string) *Column {
	for i := range e.columns {
		if e.columns[i].Name == name {
			return &e.columns[i]
		}
	}
	return nil
}

func errNoColumn(name string) error { return fmt.Errorf("column %q: %w", name, fault.ErrNoColumn) }

// Created is the schema of a table that is made with s: the one default of each column is its read
// default too.
func (s *Schema) Created() (*Schema, error) {
	e := s.Edit(0)
	for i := range e.columns {
		e.columns[i].ReadDefault = e.columns[i].Default
	}
	return e.Schema()
}
