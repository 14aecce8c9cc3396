package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// Alteration is one alteration of a table's schema. It names a column by its index in the schema
// that the alterations before it leave.
type Alteration struct {
	What string // add, drop, rename, default, type, rowfile, expires, index, unindex
	// drop, rename, default, type, index: index of the column; rowfile: 1 = on; expires: index of the
	// column + 1, or 0 for none
	Column int
	Age    time.Duration // expires
	Name   string        // rename: the new name; index, unindex: of the index
	Cell   []byte        // default: the new default; nil = none
	Add    schema.Column // add: the new column; type: the one with another type
}

// RowFiles is the alteration that changes which rowsets have row files.
const RowFiles = "rowfile"

// Expires is the alteration that makes rows expire by another rule. It comes last.
const Expires = "expires"

// Index and Unindex are the alterations that add and drop an index. They are alone in their step.
const (
	Index   = "index"
	Unindex = "unindex"
)

// ForTable returns the alteration as an argument of Table.Alter, for a table with the given
// columns.
func (a *Alteration) ForTable(columns []schema.Column) oribi.Alteration {
	switch a.What {
	case "add":
		return oribi.AddColumn(a.Add)
	case "drop":
		return oribi.DropColumn(columns[a.Column].Name)
	case "rename":
		return oribi.RenameColumn(columns[a.Column].Name, a.Name)
	case "type":
		return oribi.SetType(columns[a.Column].Name, a.Add)
	case RowFiles:
		return oribi.SetRowFile(schema.RowFile(a.Column % 3))
	case Expires:
		if a.Column == 0 {
			return oribi.ClearExpires()
		}
		return oribi.SetExpires(columns[a.Column-1].Name, a.Age)
	}
	return oribi.SetDefaultCell(columns[a.Column].Name, a.Cell)
}

// Apply applies the alteration to columns, in place, and returns the result. source has, for each
// column, its index in the original schema, −1 for an added column. Apply updates it likewise.
func (a *Alteration) Apply(columns []schema.Column, source []int) ([]schema.Column, []int) {
	switch a.What {
	case "add":
		c := a.Add
		for i := range columns {
			c.ID = max(c.ID, columns[i].ID+1) // used only by the model
		}
		return append(columns, c), append(source, -1)
	case "drop":
		columns = slices.Delete(columns, a.Column, a.Column+1)
		if source != nil {
			source = slices.Delete(source, a.Column, a.Column+1)
		}
	case "rename":
		columns[a.Column].Name = a.Name
	case "type":
		c := a.Add
		c.Name, c.ID = columns[a.Column].Name, 0
		for i := range columns {
			c.ID = max(c.ID, columns[i].ID+1) // used only by the model
		}
		columns[a.Column] = c
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
	case "type":
		printColumn(b, fmt.Sprintf("type %d", a.Column), &a.Add)
	case "rename", Index, Unindex:
		fmt.Fprintf(b, "\n  %s %d %s", a.What, a.Column, a.Name)
	case Expires:
		fmt.Fprintf(b, "\n  %s %d %v", a.What, a.Column, a.Age)
	case "drop", RowFiles:
		fmt.Fprintf(b, "\n  %s %d", a.What, a.Column)
	default:
		fmt.Fprintf(b, "\n  default %d %s", a.Column, cellText(a.Cell, a.Cell != nil))
	}
}

// alteration parses a line that print wrote; ok is false for other lines.
func (f fields) alteration() (a Alteration, ok bool) {
	a.What = f.words[0]
	switch a.What {
	case "add":
		a.Add = f.column()
		return a, true
	case "type":
		var err error
		a.Column, err = strconv.Atoi(f.words[1])
		check(err)
		f.words = f.words[1:]
		a.Add = f.column()
		return a, true
	case "drop", "rename", "default", RowFiles, Expires, Index, Unindex:
	default:
		return a, false
	}
	var err error
	a.Column, err = strconv.Atoi(f.words[1])
	check(err)
	switch a.What {
	case "rename", Index, Unindex:
		a.Name = f.words[2]
	case "default":
		a.Cell, _ = parseCell(f.words[2])
	case Expires:
		a.Age, err = time.ParseDuration(f.words[2])
		check(err)
	}
	return a, true
}
