package live

import (
	"fmt"
	"maps"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kudurow"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/schema"
)

// Unsuitable returns what of a table of a store a cluster cannot have, a sentence each: columns whose
// types Kudu does not know, and rows that expire. It is nil for a table that can be copied.
func Unsuitable(t *oribi.Table) (list []string) {
	s := t.Schema()
	for i := range s.Columns {
		one := &schema.Schema{Columns: s.Columns[i : i+1]}
		if i < s.Keys {
			one.Keys = 1
		}
		if err := kudurow.Check(one); err != nil {
			list = append(list, err.Error())
		}
	}
	if e := t.Properties().Expiry; e.Column != "" {
		list = append(list, fmt.Sprintf("rows expire by column %q, without a write that a copy could follow", e.Column))
	}
	return list
}

// columnsOf returns the columns of a table by ID.
func columnsOf(s *schema.Schema) map[uint32]string {
	m := make(map[uint32]string, len(s.Columns))
	for i := range s.Columns {
		m[uint32(s.Columns[i].ID)] = s.Columns[i].Name
	}
	return m
}

// mismatch returns an error unless the rows of a table can be written to another one: both have the
// same key, and columns with the same names, types, and nullability. The target may have further
// columns that are nullable or have a default.
func mismatch(from, to *schema.Schema) error {
	if from.Keys != to.Keys {
		return fmt.Errorf("the key has %d columns, at the other end %d", from.Keys, to.Keys)
	}
	for i := range from.Columns {
		c := &from.Columns[i]
		at := to.Index(c.Name)
		switch {
		case at < 0:
			return fmt.Errorf("column %q is missing at the other end", c.Name)
		case i < from.Keys && at != i:
			return fmt.Errorf("column %q is column %d of the key, at the other end column %d", c.Name, i+1, at+1)
		}
		d := &to.Columns[at]
		if c.Type != d.Type || c.TypeName() != d.TypeName() {
			return fmt.Errorf("column %q is a %s, at the other end a %s", c.Name, c.TypeName(), d.TypeName())
		}
		if c.Nullable && !d.Nullable {
			return fmt.Errorf("column %q is nullable, at the other end it is not", c.Name)
		}
	}
	for i := range to.Columns {
		if c := &to.Columns[i]; from.Index(c.Name) < 0 && c.Required() {
			return fmt.Errorf("column %q is at the other end only, is not nullable, and has no default", c.Name)
		}
	}
	return nil
}

// alterations returns the steps that give a target the columns that a table of a store has now, when
// known are those that it was given so far. Steps that the target shows are left out.
func alterations(now *schema.Schema, known map[uint32]string, target *schema.Schema) (steps []client.Alteration) {
	there := map[string]bool{}
	for i := range target.Columns {
		there[target.Columns[i].Name] = true
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if name := known[id]; now.IndexID(schema.ColumnID(id)) < 0 && there[name] {
			delete(there, name)
			steps = append(steps, client.DropColumn(name))
		}
	}
	for i := range now.Columns {
		c := &now.Columns[i]
		switch name, given := known[uint32(c.ID)]; {
		case given && name != c.Name && there[name] && !there[c.Name]:
			steps = append(steps, client.RenameColumn(name, c.Name))
			delete(there, name)
			there[c.Name] = true
		case !given && !there[c.Name]:
			steps = append(steps, client.AddColumn(*c))
		}
	}
	return steps
}
