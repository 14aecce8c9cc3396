package bind

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// String returns p in the syntax of SQL. A Bloom filter prints as bloom(n bits) and a Cell as
// hexadecimal bytes.
func (p *Predicate) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

var comparisonTexts = map[Kind]string{Eq: " = ", Ne: " <> ", Lt: " < ", Le: " <= ", Gt: " > ", Ge: " >= ",
	Null: " IS NULL", NotNull: " IS NOT NULL"}

func (p *Predicate) write(b *strings.Builder) {
	p = p.only()
	name := QuoteName(p.Column)
	switch p.Kind {
	case And, Or:
		p.writeJoined(b)
	case Not:
		b.WriteString("NOT (")
		p.Children[0].write(b)
		b.WriteString(")")
	case In:
		fmt.Fprintf(b, "%s IN (", name)
		for i, v := range p.Values {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(Literal(v))
		}
		b.WriteString(")")
	case Between:
		fmt.Fprintf(b, "%s BETWEEN %s AND %s", name, Literal(p.Values[0]), Literal(p.Values[1]))
	case Prefix:
		if s, ok := p.Values[0].(string); ok {
			fmt.Fprintf(b, "%s LIKE %s", name, Literal(likeEscapes.Replace(s)+"%"))
		} else {
			fmt.Fprintf(b, "starts_with(%s, %s)", name, Literal(p.Values[0]))
		}
	case Like:
		p.writeLike(b, name)
	case InBloom:
		bits := uint(0)
		if p.Bloom != nil {
			bits = p.Bloom.Cap()
		}
		fmt.Fprintf(b, "%s IN bloom(%d bits)", name, bits)
	default:
		b.WriteString(name)
		b.WriteString(comparisonTexts[p.Kind])
		if len(p.Values) > 0 {
			b.WriteString(Literal(p.Values[0]))
		}
	}
}

// writeLike writes a pattern, and a pattern of values that are not text as a call.
func (p *Predicate) writeLike(b *strings.Builder, name string) {
	pattern := make([]string, len(p.Values))
	for i, v := range p.Values {
		s, ok := v.(string)
		if !ok {
			fmt.Fprintf(b, "like(%s", name)
			for _, v := range p.Values {
				b.WriteString(", " + Literal(v))
			}
			b.WriteString(")")
			return
		}
		pattern[i] = likeEscapes.Replace(s)
	}
	fmt.Fprintf(b, "%s LIKE %s", name, Literal(strings.Join(pattern, "%")))
}

func (p *Predicate) writeJoined(b *strings.Builder) {
	between, empty := " AND ", "TRUE"
	if p.Kind == Or {
		between, empty = " OR ", "FALSE"
	}
	if len(p.Children) == 0 {
		b.WriteString(empty)
	}
	for i := range p.Children {
		if i > 0 {
			b.WriteString(between)
		}
		c := p.Children[i].only()
		if (c.Kind == And || c.Kind == Or) && c.Kind != p.Kind && len(c.Children) > 0 {
			b.WriteString("(")
			c.write(b)
			b.WriteString(")")
		} else {
			c.write(b)
		}
	}
}

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Readable returns p with the values of columns in place of cells, for String.
func (p *Predicate) Readable(s *schema.Schema) Predicate {
	out := *p
	out.Values, out.Children = slices.Clone(p.Values), slices.Clone(p.Children)
	for i, v := range p.Values {
		if cell, ok := v.(batch.Cell); ok {
			out.Values[i] = shownValue(&s.Columns[s.Index(p.Column)], cell)
		}
	}
	for i := range p.Children {
		out.Children[i] = p.Children[i].Readable(s)
	}
	return out
}

// TestText returns a predicate on the cells of a column in the syntax of SQL.
func TestText(s *schema.Schema, p *batch.Predicate) string {
	c := &s.Columns[s.IndexID(p.ID)]
	name := QuoteName(c.Name)
	switch p.Op {
	case batch.IsNull, batch.NotNull:
		return name + " " + strings.ToUpper(p.Op.String())
	case batch.InFilter:
		return fmt.Sprintf("%s IN bloom(%d bits)", name, p.Filter.Cap())
	case batch.In:
		return name + " IN (" + listText(c, p.Values) + ")"
	case batch.Like:
		like := Predicate{Kind: Like, Column: c.Name}
		for _, part := range p.Values {
			like.Values = append(like.Values, shownValue(c, part))
		}
		return like.String()
	case batch.Ne:
		return name + " <> " + cellText(c, p.Values[0])
	}
	return name + " " + p.Op.String() + " " + cellText(c, p.Values[0])
}

// listText returns the values of a list. It shortens a long list.
func listText(c *schema.Column, cells [][]byte) string {
	const most = 8
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most-1 && len(cells) > most {
			fmt.Fprintf(&b, "… %d values", len(cells))
			break
		}
		b.WriteString(cellText(c, cell))
	}
	return b.String()
}

// cellText returns a cell in the syntax of SQL, shortened.
func cellText(c *schema.Column, cell []byte) string {
	return Clip(Literal(shownValue(c, cell)))
}

// shownValue returns the value of a cell. The value of a date is text without a time of day.
func shownValue(c *schema.Column, cell []byte) any {
	v := Value(c, cell)
	if t, ok := v.(time.Time); ok && c.Type == schema.Date {
		return t.Format(time.DateOnly)
	}
	return v
}
