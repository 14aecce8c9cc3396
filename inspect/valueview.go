package inspect

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/schema"
)

// valueView is a cell as pages show it: its value, or the beginning of a long value. It does not
// refer to the cell, which may have megabytes.
type valueView struct {
	Text  string `json:"text"` // with every character visible; empty for NULL
	Null  bool   `json:"-"`
	Bytes int    `json:"bytes"` // of the whole cell, 0 for NULL
	Cut   bool   `json:"cut"`   // Text is only the beginning

	value json.RawMessage // nil: the cell is too long, or no valid JSON can be made of it
	sum   uint64          // of all bytes
}

// maxValueBytes is the size of a cell up to which JSON has it as a value.
const maxValueBytes = 1 << 10

var cellSeed = maphash.MakeSeed()

// viewOf returns the view of a cell, with at most so many characters of its text.
func viewOf(c *schema.Column, cell []byte, chars int) valueView {
	if cell == nil {
		return valueView{Null: true, value: json.RawMessage("null")}
	}
	v := valueView{Bytes: len(cell), sum: maphash.Bytes(cellSeed, cell)}
	v.Text, v.Cut = beginning(c, cell, chars)
	isText := c.Type == schema.String || c.Type == schema.Varchar
	if len(cell) <= max(maxValueBytes, chars) && (!isText || utf8.Valid(cell)) {
		if value := celltext.AppendJSON(nil, c, cell); json.Valid(value) && utf8.Valid(value) {
			v.value = value
		}
	}
	return v
}

// beginning returns the first characters of a cell's text, all of them visible, and reports whether
// there are more.
func beginning(c *schema.Column, cell []byte, chars int) (text string, cut bool) {
	switch most := utf8.UTFMax * chars; {
	case c.Type == schema.Binary && len(cell) > chars:
		cell, cut = cell[:chars], true
	case (c.Type == schema.String || c.Type == schema.Varchar) && len(cell) > most:
		cell, cut = wholeRunes(cell[:most]), true
	}
	text = celltext.Printable(string(celltext.AppendText(nil, c, cell)))
	shorter := firstRunes(text, chars)
	return shorter, cut || len(shorter) < len(text)
}

// wholeRunes removes the bytes of a character that is cut off at the end of a text.
func wholeRunes(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// firstRunes returns the first n characters of a text.
func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// same reports whether two cells of one column have the same value.
func (v *valueView) same(w *valueView) bool {
	return v.Null == w.Null && v.Bytes == w.Bytes && v.sum == w.sum
}

// shorten leaves at most so many characters, and in JSON at most as many bytes as text.
func (v *valueView) shorten(chars int) {
	if text := firstRunes(v.Text, chars); len(text) < len(v.Text) {
		v.Text, v.Cut = text, true
	}
	if len(v.value) > utf8.UTFMax*chars {
		v.value = nil
	}
}

// size returns about how many bytes the cell takes in a page.
func (v *valueView) size() int {
	const tags = 48
	return tags + max(len(html.EscapeString(v.Text)), len(v.value))
}

// MarshalJSON returns the value as the command prints it. A cell that is long, or is not valid
// UTF-8, is an object with the beginning of its text and the number of its bytes.
func (v valueView) MarshalJSON() ([]byte, error) {
	if v.value != nil {
		return v.value, nil
	}
	type plain valueView // without this method
	return json.Marshal(plain(v))
}

// HTML returns the cell for a page.
func (v valueView) HTML() template.HTML {
	switch {
	case v.Null:
		return `<i class="null">NULL</i>`
	case v.Bytes == 0:
		return `<i class="null">empty</i>`
	case v.Cut:
		return template.HTML(`<span class="value">` + html.EscapeString(v.Text) + `…</span> <small class="cut">` +
			figures.Size(int64(v.Bytes)) + `</small>`)
	}
	return template.HTML(`<span class="value">` + html.EscapeString(v.Text) + `</span>`)
}

// fit shortens cells until they take at most so many bytes in a page together.
func fit(cells []*valueView, bytes int) {
	for chars := 4 * gridChars; chars >= 4; chars /= 2 {
		sum := 0
		for _, v := range cells {
			sum += v.size()
		}
		if sum <= bytes {
			return
		}
		for _, v := range cells {
			v.shorten(chars)
		}
	}
}

// Numbers of characters of a cell in a grid. Bytes in hex do not wrap.
const (
	gridChars       = 80
	gridBinaryChars = 26
)

// keyText returns a key as JSON, the form that the parameter "key" takes: a value for a key of one
// column, otherwise an object. Characters that are not printable are escaped, since a form would
// not keep all of them.
func keyText(s *schema.Schema, cells [][]byte) string {
	text := celltext.AppendObject(nil, s.Columns[:s.Keys], cells)
	if s.SingleKey() {
		text = celltext.AppendJSON(text[:0], &s.Columns[0], cells[0])
	}
	return escapeJSON(string(text))
}

// escapeJSON escapes the characters of JSON that are not printable. They are all in strings.
func escapeJSON(text string) string {
	if celltext.Printable(text) == text {
		return text
	}
	var b strings.Builder
	for i, c := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			b.WriteByte(text[i])
		case celltext.IsPrintable(c, size):
			b.WriteRune(c)
		default:
			for _, unit := range utf16.AppendRune(nil, c) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

// keyJSON is a key in JSON.
func keyJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
		return json.RawMessage(strconv.Quote(celltext.Printable(text)))
	}
	return json.RawMessage(text)
}

// numeric reports whether a grid aligns the column's cells at the right.
func numeric(c *schema.Column) bool {
	switch c.Type {
	case schema.String, schema.Varchar, schema.Binary, schema.Bool, schema.Array, schema.Date, schema.Timestamp:
		return false
	}
	return true
}

// classOf returns the class of the column's cells in a grid.
func classOf(c *schema.Column) string {
	switch {
	case numeric(c):
		return "n"
	case c.Type == schema.Binary:
		return "b"
	case c.Type == schema.Timestamp || c.Type == schema.Date || c.Type == schema.Bool:
		return "t"
	}
	return "s"
}
