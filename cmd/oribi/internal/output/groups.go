package output

import (
	"io"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// Group is columns that stand together in a record: in JSON as an object under a name, or beside
// the groups when there is none; in the other forms as columns whose names begin with the group's
// and a dot.
type Group struct {
	Name    string // empty: the columns stand for themselves
	Columns []schema.Column
	Raw     bool // text columns that are JSON values as they stand, such as numbers
}

// Flat is the columns of all groups in order, of which the batches that a writer of groups takes
// are made. An object is null where its first column, which else never is, is NULL.
func Flat(groups []Group) []schema.Column {
	var out []schema.Column
	for _, g := range groups {
		for _, c := range g.Columns {
			if g.Name != "" {
				c.Name = g.Name + "." + c.Name
			}
			out = append(out, c)
		}
	}
	return out
}

// NewGroups makes a writer of records made of groups of columns.
func NewGroups(out io.Writer, f Format, groups []Group) *Writer {
	w := New(out, f, Flat(groups))
	switch r := w.rows.(type) {
	case *jsonRows:
		w.rows = &jsonGroups{jsonRows: r, groups: slices.Clone(groups)}
	case *tableRows:
		next := r.seen
		for _, g := range groups {
			for i := range g.Columns {
				next[i].cut = next[i].cut && !g.Raw // half a number would be another
			}
			next = next[len(g.Columns):]
		}
	}
	return w
}

// jsonGroups prints one object a record, with objects in it.
type jsonGroups struct {
	*jsonRows
	groups []Group
}

func (r *jsonGroups) row(dst []byte, vectors []*batch.Vector, i int) []byte {
	if r.array && r.some {
		dst = append(dst, ",\n"...)
	}
	r.some = true
	before := byte('{')
	for _, g := range r.groups {
		cells := vectors[:len(g.Columns)]
		vectors = vectors[len(g.Columns):]
		if g.Name == "" {
			dst = appendMembers(dst, &g, cells, i, before)
			before = ','
			continue
		}
		dst = append(celltext.AppendQuoted(append(dst, before), []byte(g.Name)), ':')
		before = ','
		if cells[0].IsNull(i) {
			dst = append(dst, "null"...)
			continue
		}
		dst = append(appendMembers(dst, &g, cells, i, '{'), '}')
	}
	if r.array {
		return append(dst, '}')
	}
	return append(dst, "}\n"...)
}

// appendMembers appends the columns of a group by name; before stands in front of the first.
func appendMembers(dst []byte, g *Group, cells []*batch.Vector, i int, before byte) []byte {
	for k, v := range cells {
		c := &g.Columns[k]
		dst = append(celltext.AppendQuoted(append(dst, before), []byte(c.Name)), ':')
		if cell := v.Cell(i); g.Raw && cell != nil {
			dst = append(dst, cell...)
		} else {
			dst = celltext.AppendJSON(dst, c, cell)
		}
		before = ','
	}
	return dst
}
