package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// Alteration is one change of a table's schema. Columns are told by their places, as they are after
// the alterations before it.
type Alteration struct {
	What   string        // add, drop, rename, default
	Column int           // all but add
	Name   string        // rename: the new one
	Cell   []byte        // default: the new one; nil = none
	Add    schema.Column // add
}

// Change is what the store is asked, for a table of the given columns.
func (a *Alteration) Change(columns []schema.Column) oribi.Change {
	switch a.What {
	case "add":
		return oribi.AddColumn(a.Add)
	case "drop":
		return oribi.DropColumn(columns[a.Column].Name)
	case "rename":
		return oribi.RenameColumn(columns[a.Column].Name, a.Name)
	}
	return oribi.SetDefaultCell(columns[a.Column].Name, a.Cell)
}

// Apply gives the columns after the alteration, and source, the place that each had before all of
// them; −1 for one that was added.
func (a *Alteration) Apply(columns []schema.Column, source []int) ([]schema.Column, []int) {
	switch a.What {
	case "add":
		c := a.Add
		for i := range columns {
			c.ID = max(c.ID, columns[i].ID+1) // of the model alone
		}
		return append(columns, c), append(source, -1)
	case "drop":
		columns = slices.Delete(columns, a.Column, a.Column+1)
		if source != nil {
			source = slices.Delete(source, a.Column, a.Column+1)
		}
	case "rename":
		columns[a.Column].Name = a.Name
	case "default":
		columns[a.Column].Default = a.Cell
	}
	return columns, source
}

// print writes the alteration as a line of a script.
func (a *Alteration) print(b *strings.Builder) {
	switch a.What {
	case "add":
		printColumn(b, "add", &a.Add)
	case "rename":
		fmt.Fprintf(b, "\n  rename %d %s", a.Column, a.Name)
	case "drop":
		fmt.Fprintf(b, "\n  drop %d", a.Column)
	default:
		fmt.Fprintf(b, "\n  default %d %s", a.Column, cellText(a.Cell, a.Cell != nil))
	}
}

// alteration reads what print wrote; ok is false for other lines.
func (f fields) alteration() (a Alteration, ok bool) {
	a.What = f.words[0]
	switch a.What {
	case "add":
		a.Add = f.column()
		return a, true
	case "drop", "rename", "default":
	default:
		return a, false
	}
	var err error
	a.Column, err = strconv.Atoi(f.words[1])
	check(err)
	switch a.What {
	case "rename":
		a.Name = f.words[2]
	case "default":
		a.Cell, _ = parseCell(f.words[2])
	}
	return a, true
}
