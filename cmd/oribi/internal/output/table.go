package output

import (
	"unicode"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

const (
	lookRows  = 500 // rows seen before the widths are fixed; later ones that are wider stick out
	mostWidth = 60  // a wider cell sticks out, so that it does not push its column apart
)

// tableRows prints aligned columns under a header: numbers to the right, all else to the left.
type tableRows struct {
	columns []schema.Column
	widths  []int
	held    [][]string // the header, then rows, until the widths are fixed; nil from then on
	text    []byte
}

func newTableRows(columns []schema.Column) *tableRows {
	r := &tableRows{columns: columns, widths: make([]int, len(columns))}
	header := make([]string, len(columns))
	for i := range columns {
		header[i] = printable([]byte(columns[i].Name))
	}
	r.held = [][]string{header}
	return r
}

func (r *tableRows) begin(dst []byte) []byte { return dst }

func (r *tableRows) row(dst []byte, vectors []*batch.Vector, i int) []byte {
	line := make([]string, len(vectors))
	for k, v := range vectors {
		value := v.Cell(i)
		if value == nil {
			line[k] = "NULL"
			continue
		}
		r.text = celltext.AppendText(r.text[:0], &r.columns[k], value)
		line[k] = printable(r.text)
	}
	if r.held == nil {
		return r.appendLine(dst, line)
	}
	if r.held = append(r.held, line); len(r.held) > lookRows {
		return r.end(dst)
	}
	return dst
}

// end prints the rows held back.
func (r *tableRows) end(dst []byte) []byte {
	for _, line := range r.held {
		for i, s := range line {
			if n := utf8.RuneCountInString(s); n <= mostWidth {
				r.widths[i] = max(r.widths[i], n)
			}
		}
	}
	for _, line := range r.held {
		dst = r.appendLine(dst, line)
	}
	r.held = nil
	return dst
}

func (r *tableRows) appendLine(dst []byte, line []string) []byte {
	for i, s := range line {
		if i > 0 {
			dst = append(dst, "  "...)
		}
		pad := r.widths[i] - utf8.RuneCountInString(s)
		right := toTheRight(r.columns[i].Type)
		if right {
			dst = appendBlanks(dst, pad)
		}
		dst = append(dst, s...)
		if !right && i < len(line)-1 {
			dst = appendBlanks(dst, pad)
		}
	}
	return append(dst, '\n')
}

func appendBlanks(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, ' ')
	}
	return dst
}

func toTheRight(t schema.Type) bool { return !t.Variable() && t != schema.Date && t != schema.Bool }

// printable is text with what would move the cursor, or worse, written as an escape.
func printable(text []byte) string {
	plain := utf8.Valid(text)
	for i := 0; plain && i < len(text); i++ {
		plain = text[i] >= ' ' && text[i] < utf8.RuneSelf && text[i] != 0x7f
	}
	if plain {
		return string(text)
	}
	var out []byte
	for _, c := range string(text) {
		if unicode.IsPrint(c) {
			out = utf8.AppendRune(out, c)
		} else {
			escaped := celltext.AppendQuoted(nil, []byte(string(c)))
			if len(escaped) > 2 && escaped[1] == '\\' {
				out = append(out, escaped[1:len(escaped)-1]...)
			} else {
				out = utf8.AppendRune(out, unicode.ReplacementChar)
			}
		}
	}
	return string(out)
}
