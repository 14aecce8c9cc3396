package carbonlines

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// AppendColumn appends a column as a JSON object.
func AppendColumn(dst []byte, c *carbondata.Column) []byte {
	dst = celltext.AppendQuoted(append(dst, `{"name":`...), []byte(c.Name))
	dst = celltext.AppendQuoted(append(dst, `,"type":`...), []byte(c.TypeName()))
	return append(strconv.AppendBool(append(dst, `,"sort":`...), c.Sort), '}')
}

// ReadColumns reads the columns in the file name, one object per line or as one array. Whether they
// are sort columns is ignored. Errors name the file and the line.
func ReadColumns(name string, in io.Reader) (columns []carbondata.Column, err error) {
	records := jsonin.NewRecords(in, maxLineBytes)
	for {
		text, err := records.Next()
		if err == io.EOF {
			break
		}
		var c carbondata.Column
		if err == nil {
			c, err = column(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, records.Line, err)
		}
		c.Ordinal = len(columns)
		columns = append(columns, c)
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("%s: no columns", name)
	}
	return columns, nil
}

// column parses a column.
func column(text []byte) (c carbondata.Column, err error) {
	if text[0] != '{' {
		return c, fmt.Errorf("want an object, not %s", jsonin.Kind(text))
	}
	fields := map[string]string{}
	for w := jsonin.Walk(text); w.Next(); {
		name := string(w.Name)
		switch {
		case name == "sort" && (w.Value[0] == 't' || w.Value[0] == 'f'):
		case name == "sort":
			return c, fmt.Errorf("sort: want true or false, not %s", jsonin.Kind(w.Value))
		case name != "name" && name != "type":
			return c, fmt.Errorf("unknown field %q%s", name, nearest.Hint(name, []string{"name", "type", "sort"}))
		case w.Value[0] != '"':
			return c, fmt.Errorf("%s: want a string, not %s", name, jsonin.Kind(w.Value))
		default:
			fields[name] = string(jsonin.String(w.Value))
		}
	}
	for _, name := range []string{"name", "type"} {
		if fields[name] == "" {
			return c, fmt.Errorf("%q is missing", name)
		}
	}
	c, err = ParseType(fields["type"])
	if err != nil {
		return c, fmt.Errorf("column %q: %w", fields["name"], err)
	}
	c.Name = fields["name"]
	return c, nil
}

// ParseType parses what carbondata.Column.TypeName returns, in any case, into a column without a
// name. The element of an ARRAY has no name; the children of a MAP are key and value.
func ParseType(text string) (carbondata.Column, error) {
	p := typeParser{text: text}
	c, err := p.column(0)
	if err == nil && strings.Trim(p.text, " ") != "" {
		err = p.unexpected("the end")
	}
	return c, err
}

var typeNames = func() map[string]carbondata.Type {
	names := map[string]carbondata.Type{}
	for _, t := range []carbondata.Type{carbondata.Array, carbondata.Binary, carbondata.Boolean, carbondata.Byte,
		carbondata.Date, carbondata.Decimal,
		carbondata.Double, carbondata.Float, carbondata.Int, carbondata.Long, carbondata.Map,
		carbondata.Short, carbondata.String,
		carbondata.Struct, carbondata.Timestamp, carbondata.Varchar} {
		names[t.String()] = t
	}
	return names
}()

// maxDepth bounds the nesting of types, as package carbondata does.
const maxDepth = 32

// typeParser parses a type from the beginning of text and removes it.
type typeParser struct{ text string }

func (p *typeParser) unexpected(want string) error {
	if p.text == "" {
		return fmt.Errorf("want %s, not the end of the type", want)
	}
	return fmt.Errorf("want %s before %q", want, p.text)
}

// accept removes a symbol, with blanks before it.
func (p *typeParser) accept(symbol string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.text, " "), symbol)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *typeParser) expect(symbol string) error {
	if !p.accept(symbol) {
		return p.unexpected(strconv.Quote(symbol))
	}
	return nil
}

// until removes the text before any of some symbols.
func (p *typeParser) until(symbols string) string {
	end := strings.IndexAny(p.text, symbols)
	if end < 0 {
		end = len(p.text)
	}
	word := strings.Trim(p.text[:end], " ")
	p.text = p.text[end:]
	return word
}

func (p *typeParser) column(depth int) (c carbondata.Column, err error) {
	if depth > maxDepth {
		return c, fmt.Errorf("more than %d levels of nesting", maxDepth)
	}
	name := p.until("<>(),:")
	t, ok := typeNames[strings.ToUpper(name)]
	if !ok {
		return c, fmt.Errorf("unknown type %q%s", name, nearest.Hint(strings.ToUpper(name), nearest.Keys(typeNames)))
	}
	c.Type = t
	if t == carbondata.Decimal {
		return c, p.decimal(&c)
	}
	if scalar(t) {
		return c, nil
	}
	if err := p.expect("<"); err != nil {
		return c, err
	}
	for {
		field := ""
		if t == carbondata.Struct {
			if field = p.until("<>(),:"); field == "" {
				return c, p.unexpected("the name of a field")
			}
			if err := p.expect(":"); err != nil {
				return c, err
			}
		}
		child, err := p.column(depth + 1)
		if err != nil {
			return c, err
		}
		child.Name = field
		c.Children = append(c.Children, child)
		if t == carbondata.Array || t == carbondata.Map && len(c.Children) == 2 || !p.accept(",") {
			break
		}
	}
	if t == carbondata.Map {
		if len(c.Children) < 2 {
			return c, p.unexpected(`","`)
		}
		c.Children[0].Name, c.Children[1].Name = "key", "value"
		c.Children = []carbondata.Column{{Type: carbondata.Struct, Children: c.Children}}
	}
	return c, p.expect(">")
}

func (p *typeParser) decimal(c *carbondata.Column) error {
	for _, part := range []struct {
		before string
		n      *int
	}{{"(", &c.Precision}, {",", &c.Scale}} {
		if err := p.expect(part.before); err != nil {
			return err
		}
		digits := p.until(",)")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return fmt.Errorf("want a number, not %q", digits)
		}
		*part.n = n
	}
	if c.Precision < 1 || c.Precision > schema.MaxPrecision || c.Scale < 0 || c.Scale > c.Precision {
		return fmt.Errorf("DECIMAL(%d,%d): want 1 ≤ precision ≤ %d and 0 ≤ scale ≤ precision",
			c.Precision, c.Scale, schema.MaxPrecision)
	}
	return p.expect(")")
}
