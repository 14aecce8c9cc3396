package history

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// alter changes a table's schema, in the store and then in the model.
func (r *Runner) alter(st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	if a := &st.Alter[0]; a.What == script.Index || a.What == script.Unindex {
		return r.index(t, a)
	}
	if !keepsIndexes(t, st.Alter) {
		return nil // the step that drops an index was removed
	}
	var changes []oribi.Alteration
	columns := slices.Clone(r.Model.Tables[st.Table].Schema.Columns)
	for i := range st.Alter {
		changes = append(changes, st.Alter[i].ForTable(columns))
		columns, _ = st.Alter[i].Apply(columns, nil)
	}
	if err := r.beforeChange(st); err != nil {
		return err
	}
	r.alteredFrom = t.Properties().SchemaVersion
	return r.change(st, func() error { return t.Alter(r.ctx, changes...) })
}

// change alters or renames a table, in the store and then in the model. After a failure the change
// may or may not be made.
func (r *Runner) change(st *script.Step, do func() error) error {
	r.State.Lock()
	if r.Altering == nil { // else an earlier one failed with unknown result, and the store refuses others
		r.Altering = st
	}
	r.State.Unlock()
	if err := do(); err != nil {
		return err
	}
	since := mvcc.Min // a rule by which rows expire has begun
	if st.Kind == script.Alter {
		t, err := r.Store.Table(st.Table)
		if err != nil {
			return err
		}
		since = t.Properties().Expiry.Since
	}
	r.State.Lock()
	defer r.State.Unlock()
	if r.Altering != st {
		return fmt.Errorf("a change of table %s was accepted after one of %s had failed", st.Table, r.Altering.Table)
	}
	r.Altering = nil
	r.Model.Since = since
	r.Model.Change(st)
	if st.Kind == script.Rename {
		for _, open := range r.txs {
			open.model.Renamed(st.Table, st.Name)
		}
	}
	if st.Kind == script.Alter {
		r.Model.Flushed(r.Model.Tables[st.Table], len(r.Model.Commits))
	}
	return nil
}

// alterations returns one to three valid alterations of a table, which has the given indexes. It sometimes
// reuses names of dropped columns.
func (g *Generator) alterations(t *model.Table, in []oribi.IndexInfo) (out []script.Alteration) {
	if g.r.IntN(2) == 0 {
		if a, ok := g.indexAlteration(t, in); ok {
			return []script.Alteration{a}
		}
	}
	columns := slices.Clone(t.Schema.Columns)
	dates := t.Dates(len(columns))
	for i := range columns {
		dates[i] = dates[i] || indexed(in, columns[i].Name)
	}
	for range 1 + g.r.IntN(3) {
		a := randomAlteration(g.r, columns, t.Schema.Keys)
		for (a.What == "drop" || a.What == "type") && dates[a.Column] {
			a = randomAlteration(g.r, columns, t.Schema.Keys)
		}
		if dates = slices.Clone(dates); a.What == "drop" {
			dates = slices.Delete(dates, a.Column, a.Column+1)
		} else if a.What == "add" {
			dates = append(dates, false)
		}
		columns, _ = a.Apply(columns, nil)
		out = append(out, a)
	}
	if len(out) == 3 {
		out = append(out, script.Alteration{What: script.RowFiles, Column: len(columns) % 3})
	}
	if g.o.Hybrid && len(in) == 0 && g.r.IntN(2) == 0 {
		out = append(out, g.expiryOf(columns))
	}
	return out
}

const maxAltered = 12 // columns

func randomAlteration(r *rand.Rand, columns []schema.Column, keys int) script.Alteration {
	what := []string{"add", "add", "drop", "rename", "default", "type"}[r.IntN(6)]
	if len(columns) == keys && (what != "rename" || len(columns) == 1) {
		what = "add"
	}
	if len(columns) >= maxAltered && what == "add" {
		what = "drop"
	}
	a := script.Alteration{What: what}
	if what == "type" {
		a.Column = keys + r.IntN(len(columns)-keys)
		to, ok := values.RandomRetype(r, &columns[a.Column])
		if !ok {
			return randomAlteration(r, columns, keys)
		}
		a.Add = to
		return a
	}
	switch what {
	case "add":
		c := &a.Add
		c.Name, c.Type, c.Nullable = freeName(r, columns), values.AllTypes[r.IntN(len(values.AllTypes))], r.IntN(2) == 0
		values.RandomAttributes(r, c)
		c.Immutable = r.IntN(20) == 0
		if !c.Nullable || r.IntN(2) == 0 {
			c.Default = values.RandomCell(r, c)
		}
	case "rename":
		a.Column, a.Name = r.IntN(len(columns)), freeName(r, columns)
		for columns[a.Column].AutoIncrement { // it cannot be renamed
			a.Column = r.IntN(len(columns))
		}
	default:
		a.Column = keys + r.IntN(len(columns)-keys)
		if what == "default" && r.IntN(4) > 0 {
			a.Cell = values.RandomCell(r, &columns[a.Column])
		}
	}
	return a
}

// freeName returns a letter that is not the name of a column.
func freeName(r *rand.Rand, columns []schema.Column) string {
	for {
		name := string(rune('a' + r.IntN(2*maxAltered)))
		if !slices.ContainsFunc(columns, func(c schema.Column) bool { return c.Name == name }) {
			return name
		}
	}
}
