package cli

import (
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// fields is one record of named values, in order. JSON prints it as one object; the table form and
// CSV print a line per field.
type fields struct {
	names  []string
	values [][]byte // JSON
}

// json adds a field that is already JSON.
func (f *fields) json(name string, value []byte) {
	f.names, f.values = append(f.names, name), append(f.values, value)
}

// text adds a string.
func (f *fields) text(name string, value string) { f.json(name, quote(value)) }

// plain adds a number or a boolean.
func (f *fields) plain(name string, value any) { f.json(name, fmt.Append(nil, value)) }

// part adds a nested record: an object in JSON, elsewhere fields whose names join both names.
func (f *fields) part(name string, p *fields, form output.Format) {
	if form == output.JSON || form == output.JSONL {
		f.json(name, p.appendJSON(nil))
		return
	}
	for i, inner := range p.names {
		f.json(name+" "+inner, p.values[i])
	}
}

// appendJSON appends the object.
func (f *fields) appendJSON(dst []byte) []byte {
	for i, name := range f.names {
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		dst = append(append(append(append(dst, before), quote(name)...), ':'), f.values[i]...)
	}
	if len(f.names) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// printFields prints one record.
func (a *app) printFields(f *fields, form output.Format) error {
	if form == output.JSON || form == output.JSONL {
		_, err := a.stdout.Write(append(f.appendJSON(nil), '\n'))
		return err
	}
	b := batch.New([]schema.Column{{Name: "field", Type: schema.String}, {Name: "value", Type: schema.String}},
		len(f.names))
	for i, name := range f.names {
		b.Columns[0].SetCell(i, []byte(name))
		value := f.values[i]
		if n := len(value); n >= 2 && value[0] == '"' {
			value = value[1 : n-1]
		}
		b.Columns[1].SetCell(i, value)
	}
	w := output.New(a.stdout, form, b.Schema)
	style := a.style()
	style.Bare, style.Width = true, 0 // one record: its values are not cut
	style.Figure = func(row int64, column int) bool { return column == 1 && isFigure(f.values[row]) }
	w.Style(style)
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}

// isFigure reports whether a value is a number or a size, which tables align to the right.
func isFigure(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// rounded returns x rounded to a number of decimals: measurements are not more exact.
func rounded(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}
