package console

import (
	"fmt"
	"math"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/schema"
)

// Fields is one record of named values, in order. JSON prints it as one object; the table form and
// CSV print a line per field.
type Fields struct {
	Names  []string
	Values [][]byte // JSON
}

// JSON adds a field that is already JSON.
func (f *Fields) JSON(name string, value []byte) {
	f.Names, f.Values = append(f.Names, name), append(f.Values, value)
}

// Text adds a string.
func (f *Fields) Text(name string, value string) { f.JSON(name, Quote(value)) }

// Plain adds a number or a boolean.
func (f *Fields) Plain(name string, value any) { f.JSON(name, fmt.Append(nil, value)) }

// Add adds fields: name, value, name, value. A string is added as Text, all else as Plain.
func (f *Fields) Add(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		if text, ok := pairs[i+1].(string); ok {
			f.Text(name, text)
		} else {
			f.Plain(name, pairs[i+1])
		}
	}
}

// Part adds a nested record: an object in JSON, elsewhere fields whose names join both names.
func (f *Fields) Part(name string, p *Fields, form output.Format) {
	if form == output.JSON || form == output.JSONL {
		f.JSON(name, p.AppendJSON(nil))
		return
	}
	for i, inner := range p.Names {
		f.JSON(name+" "+inner, p.Values[i])
	}
}

// AppendJSON appends the object.
func (f *Fields) AppendJSON(dst []byte) []byte {
	for i, name := range f.Names {
		before := byte(',')
		if i == 0 {
			before = '{'
		}
		dst = append(append(append(append(dst, before), Quote(name)...), ':'), f.Values[i]...)
	}
	if len(f.Names) == 0 {
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// PrintFields prints one record.
func (a *Console) PrintFields(f *Fields, form output.Format) error {
	if form == output.JSON || form == output.JSONL {
		_, err := a.Stdout.Write(append(f.AppendJSON(nil), '\n'))
		return err
	}
	b := batch.New([]schema.Column{{Name: "field", Type: schema.String}, {Name: "value", Type: schema.String}},
		len(f.Names))
	for i, name := range f.Names {
		b.Columns[0].SetCell(i, []byte(name))
		value := f.Values[i]
		if n := len(value); n >= 2 && value[0] == '"' {
			value = value[1 : n-1]
		}
		b.Columns[1].SetCell(i, value)
	}
	w := output.New(a.Stdout, form, b.Schema)
	style := a.Style()
	style.Bare, style.Width = true, 0 // one record: its values are not cut
	style.Figure = func(row int64, column int) bool { return column == 1 && isFigure(f.Values[row]) }
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

// Rounded returns x rounded to a number of decimals: measurements are not more exact.
func Rounded(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}
