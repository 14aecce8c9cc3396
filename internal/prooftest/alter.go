package prooftest

import (
	"fmt"
	"math/rand/v2"
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

// alter changes a table's schema, in the store and then in the model.
func (r *Runner) alter(st *Step) error {
	t, err := r.store.Table(st.Table)
	if err != nil {
		return err
	}
	var changes []oribi.Change
	columns := slices.Clone(r.Model.Tables[st.Table].Schema.Columns)
	for i := range st.Alter {
		changes = append(changes, st.Alter[i].change(columns))
		columns, _ = st.Alter[i].apply(columns, nil)
	}
	r.state.Lock()
	if r.altering == nil { // else an earlier one failed, nobody knows how far, and the store takes no other
		r.altering, r.alteredFrom = st, t.Properties().SchemaVersion
	}
	r.state.Unlock()
	if err := t.Alter(r.ctx, changes...); err != nil {
		return err
	}
	r.state.Lock()
	defer r.state.Unlock()
	if r.altering != st {
		return fmt.Errorf("a change of table %s is taken, after one of %s failed", st.Table, r.altering.Table)
	}
	r.altering = nil
	r.Model.alter(st)
	r.Model.flushed(r.Model.Tables[st.Table], len(r.Model.Commits))
	return nil
}

// change is what the store is asked, for a table of the given columns.
func (a *Alteration) change(columns []schema.Column) oribi.Change {
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

// apply gives the columns after the alteration, and source, the place that each had before all of
// them; −1 for one that was added.
func (a *Alteration) apply(columns []schema.Column, source []int) ([]schema.Column, []int) {
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

// alter brings a table and all versions of its rows to another schema.
func (m *Model) alter(st *Step) {
	t := m.Tables[st.Table]
	columns, source := slices.Clone(t.Schema.Columns), make([]int, len(t.Schema.Columns))
	for i := range source {
		source[i] = i
	}
	added := map[schema.ColumnID][]byte{} // what older rows have
	for i := range st.Alter {
		columns, source = st.Alter[i].apply(columns, source)
		if st.Alter[i].What == "add" {
			added[columns[len(columns)-1].ID] = st.Alter[i].Add.Default
		}
	}
	s, err := schema.New(columns, t.Schema.Keys)
	if err != nil {
		panic(err) // the generator is wrong
	}
	t.Schema = s
	clear(t.digests)
	for _, r := range t.order {
		for i := range r.versions {
			if old := r.versions[i].cells; old != nil {
				cells := make([][]byte, len(columns))
				for c, from := range source {
					if from >= 0 {
						cells[c] = old[from]
					} else {
						cells[c] = added[columns[c].ID]
					}
				}
				r.versions[i].cells = cells
			}
		}
	}
}

// alterations makes one to three changes that are fit for a table. Names that were given up are
// given again now and then.
func (g *Generator) alterations(t *Table) (out []Alteration) {
	columns := slices.Clone(t.Schema.Columns)
	for range 1 + g.r.IntN(3) {
		a := randomAlteration(g.r, columns, t.Schema.Keys)
		columns, _ = a.apply(columns, nil)
		out = append(out, a)
	}
	return out
}

const maxAltered = 12 // columns

func randomAlteration(r *rand.Rand, columns []schema.Column, keys int) Alteration {
	what := []string{"add", "add", "drop", "rename", "default"}[r.IntN(5)]
	if len(columns) == keys && (what != "rename" || len(columns) == 1) {
		what = "add"
	}
	if len(columns) >= maxAltered && what == "add" {
		what = "drop"
	}
	a := Alteration{What: what}
	switch what {
	case "add":
		c := &a.Add
		c.Name, c.Type, c.Nullable = freeName(r, columns), allTypes[r.IntN(len(allTypes))], r.IntN(2) == 0
		randomAttributes(r, c)
		c.Immutable = r.IntN(20) == 0
		if !c.Nullable || r.IntN(2) == 0 {
			c.Default = randomCell(r, c)
		}
	case "rename":
		a.Column, a.Name = r.IntN(len(columns)), freeName(r, columns)
		for columns[a.Column].AutoIncrement { // there is no other name for it
			a.Column = r.IntN(len(columns))
		}
	default:
		a.Column = keys + r.IntN(len(columns)-keys)
		if what == "default" && r.IntN(4) > 0 {
			a.Cell = randomCell(r, &columns[a.Column])
		}
	}
	return a
}

// freeName is a letter that no column has.
func freeName(r *rand.Rand, columns []schema.Column) string {
	for {
		name := string(rune('a' + r.IntN(2*maxAltered)))
		if !slices.ContainsFunc(columns, func(c schema.Column) bool { return c.Name == name }) {
			return name
		}
	}
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
