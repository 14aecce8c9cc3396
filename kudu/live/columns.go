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

// pairs returns, by the IDs of a table's columns, the IDs of the target's columns with the same names.
func pairs(from, to *schema.Schema) map[uint32]uint32 {
	m := make(map[uint32]uint32, len(from.Columns))
	for i := range from.Columns {
		if at := to.Index(from.Columns[i].Name); at >= 0 {
			m[uint32(from.Columns[i].ID)] = uint32(to.Columns[at].ID)
		}
	}
	return m
}

// sameColumns reports whether rows of two tables mean the same: both have the same columns, with the same
// names and types.
func sameColumns(a, b []schema.Column) bool {
	return slices.EqualFunc(a, b, func(c, d schema.Column) bool {
		return c.ID == d.ID && c.Name == d.Name && c.Type == d.Type
	})
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

// next is the next alteration of a target.
type next struct {
	steps []client.Alteration // none: the target has all columns
	adds  bool                // the steps add columns
	// adopted: the target has another column of the name of one that is new, or that it was given.
	adopted bool
}

// alteration returns the next of the alterations that give a target the columns that a table of a store
// has now, when known are the target's columns of those that it was given so far. What the target shows is
// left out: columns of the target are known by IDs, which are never used again.
//
// One alteration drops, renames, or adds. Then a request that is made twice fails the second time, and
// no column is dropped and added: Kudu 1.18.1 loses what is written to it after that.
func alteration(now *schema.Schema, known map[uint32]uint32, target *schema.Schema) (n next) {
	names := namesAt(target, known)
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if name := names[id]; now.IndexID(schema.ColumnID(id)) < 0 && name != "" {
			n.steps = append(n.steps, client.DropColumn(name))
		}
	}
	if n.steps == nil {
		n.steps = renames(now, names, target)
	}
	if n.steps != nil {
		return n
	}
	for i := range now.Columns {
		c := now.Columns[i]
		_, given := known[uint32(c.ID)]
		switch {
		case names[uint32(c.ID)] != "":
		case target.Index(c.Name) >= 0:
			n.adopted = true
		case !given: // else it was dropped there
			c.Default = c.ReadDefault // of rows that exist; those that are written have all cells
			n.steps, n.adds = append(n.steps, client.AddColumn(c)), true
		}
	}
	return n
}

// namesAt returns the names at a target of the columns that it was given.
func namesAt(target *schema.Schema, known map[uint32]uint32) map[uint32]string {
	names := map[uint32]string{}
	for id, there := range known {
		if at := target.IndexID(schema.ColumnID(there)); at >= 0 {
			names[id] = target.Columns[at].Name
		}
	}
	return names
}

// renames returns the renames of columns to names that are free. If no such name is free, one of the columns
// gives up its name.
func renames(now *schema.Schema, names map[uint32]string, target *schema.Schema) (steps []client.Alteration) {
	var blocked []client.Alteration
	for i := range now.Columns {
		c := &now.Columns[i]
		switch name := names[uint32(c.ID)]; {
		case name == "" || name == c.Name:
		case target.Index(c.Name) < 0:
			steps = append(steps, client.RenameColumn(name, c.Name))
		default:
			blocked = append(blocked, client.RenameColumn(name, fmt.Sprintf("%s (column %d)", c.Name, c.ID)))
		}
	}
	if steps == nil && blocked != nil {
		return blocked[:1]
	}
	return steps
}
