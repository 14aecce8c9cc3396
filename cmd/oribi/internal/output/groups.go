package output

import (
	"io"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// Group is a group of columns of a record. JSON prints an object under the group's name, or plain
// members if the name is empty. The other forms print columns with the group's name and a dot as
// prefix.
type Group struct {
	Name    string // empty: the columns have no prefix
	Columns []schema.Column
	Raw     bool // text columns contain JSON values, such as numbers
	Omit    bool // JSON has no member of the group's name where it would be null
}

// Flat returns the columns of all groups in order, which the batches for a writer of groups have.
// An object is null if its first column, which is never NULL otherwise, is NULL.
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

// NewGroups returns a writer of records made of groups of columns.
func NewGroups(out io.Writer, f Format, groups []Group) *Writer {
	w := New(out, f, Flat(groups))
	switch r := w.rows.(type) {
	case *jsonRows:
		w.rows = &jsonGroups{jsonRows: r, groups: slices.Clone(groups)}
	case *tableRows:
		next := r.seen
		for _, g := range groups {
			for i := range g.Columns {
				next[i].cut = next[i].cut && !g.Raw // digits missing from a number would change it
			}
			next = next[len(g.Columns):]
		}
	}
	return w
}

// jsonGroups prints one object per record, with nested objects.
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
		if g.Omit && cells[0].IsNull(i) {
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

// appendMembers appends the columns of a group by name; before precedes the first.
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
