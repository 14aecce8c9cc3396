package history

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// The model knows no indexes: they change no answer. Verify compares them with their tables.

// index adds or drops an index. It does nothing if steps were removed that made it possible.
func (r *Runner) index(t *oribi.Table, a *script.Alteration) error {
	known := slices.ContainsFunc(t.Indexes(), func(x oribi.IndexInfo) bool { return x.Name == a.Name })
	columns := t.Schema().Columns
	m := r.Model.Tables[t.Name()]
	if err := r.rollbackAll(func(x *model.Tx) bool { return x.UsesIndexes(m) }); err != nil {
		return err
	}
	switch {
	case a.What == script.Unindex && known:
		return t.Alter(r.ctx, oribi.DropIndex(a.Name))
	case a.What == script.Unindex || known || a.Column >= len(columns) || !columns[a.Column].Type.Keyable():
		return nil
	case a.Name[0] == 'u': // no two rows are equal in their keys
		names := []string{columns[a.Column].Name}
		for i := range t.Schema().Keys {
			if i != a.Column {
				names = append(names, columns[i].Name)
			}
		}
		return t.Alter(r.ctx, oribi.AddUnique(a.Name, names...))
	}
	return t.Alter(r.ctx, oribi.AddIndex(a.Name, columns[a.Column].Name))
}

const maxIndexed = 3 // indexes of a table

// indexAlteration returns an alteration that adds or drops an index.
func (g *Generator) indexAlteration(t *model.Table, in []oribi.IndexInfo) (a script.Alteration, ok bool) {
	if len(in) == maxIndexed || len(in) > 0 && g.r.IntN(3) == 0 {
		return script.Alteration{What: script.Unindex, Name: in[g.r.IntN(len(in))].Name}, true
	}
	a = script.Alteration{What: script.Index, Column: g.r.IntN(len(t.Schema.Columns))}
	for n := 0; ; n++ {
		a.Name = fmt.Sprintf("%c%d", "iu"[g.r.IntN(2)], n)
		if !slices.ContainsFunc(in, func(x oribi.IndexInfo) bool { return x.Name == a.Name }) {
			break
		}
	}
	return a, t.Schema.Columns[a.Column].Type.Keyable()
}

// indexed reports whether a column is in an index.
func indexed(in []oribi.IndexInfo, column string) bool {
	return slices.ContainsFunc(in, func(x oribi.IndexInfo) bool { return slices.Contains(x.Columns, column) })
}

// keepsIndexes reports whether a table's indexes allow alterations.
func keepsIndexes(t *oribi.Table, alterations []script.Alteration) bool {
	in, columns := t.Indexes(), slices.Clone(t.Schema().Columns)
	names := map[string]string{} // of columns, before
	for _, c := range columns {
		names[c.Name] = c.Name
	}
	for i := range alterations {
		a := &alterations[i]
		switch a.What {
		case "drop", "type":
			if indexed(in, names[columns[a.Column].Name]) {
				return false
			}
		case "rename":
			names[a.Name] = names[columns[a.Column].Name]
		case script.Expires:
			if len(in) > 0 {
				return false
			}
		}
		columns, _ = a.Apply(columns, nil)
	}
	return true
}
