package model

import (
	"slices"

	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/schema"
)

// Change applies an Alter or a Rename.
func (m *Model) Change(st *script.Step) {
	if st.Kind == script.Rename {
		m.Rename(st.Table, st.Name)
	} else {
		m.Alter(st)
	}
}

// Alter applies the alterations of a step to a table's schema and to all versions of its rows.
func (m *Model) Alter(st *script.Step) {
	t := m.Tables[st.Table]
	columns, source := slices.Clone(t.Schema.Columns), make([]int, len(t.Schema.Columns))
	for i := range source {
		source[i] = i
	}
	added := map[schema.ColumnID][]byte{}            // the value in existing rows
	retyped := map[schema.ColumnID][]schema.Column{} // the columns before each change of the type, and the last
	for i := range st.Alter {
		a := &st.Alter[i]
		var old schema.Column
		if a.What == "type" {
			old = columns[a.Column]
		}
		columns, source = a.Apply(columns, source)
		switch a.What {
		case "add":
			added[columns[len(columns)-1].ID] = a.Add.Default
		case "type":
			c := columns[a.Column]
			steps := retyped[old.ID]
			if len(steps) == 0 {
				steps = []schema.Column{old}
			}
			retyped[c.ID] = append(slices.Clone(steps), c)
			added[c.ID] = added[old.ID]
		}
	}
	s, err := schema.New(columns, t.Schema.Keys)
	if err != nil {
		panic(err) // the generator is wrong
	}
	t.Schema = s
	clear(t.digests)
	for i := range t.rules {
		if t.rules[i].column >= 0 {
			t.rules[i].column = slices.Index(source, t.rules[i].column)
		}
	}
	for _, r := range t.Order {
		for i := range r.Versions {
			if old := r.Versions[i].cells; old != nil {
				cells := make([][]byte, len(columns))
				for c, from := range source {
					if from >= 0 {
						cells[c] = old[from]
					} else {
						cells[c] = added[columns[c].ID]
					}
					steps := retyped[columns[c].ID]
					for k := 1; k < len(steps); k++ {
						cells[c] = values.Retyped(&steps[k-1], &steps[k], cells[c])
					}
				}
				r.Versions[i].cells = cells
			}
		}
	}
	for i := range st.Alter {
		if st.Alter[i].What == script.Expires {
			t.setRule(&st.Alter[i], m.Since)
		}
	}
}
