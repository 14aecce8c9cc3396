package bind

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/celltext"
)

// QuoteName returns a column's name in the syntax of SQL.
func QuoteName(name string) string {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return `"` + strings.ReplaceAll(celltext.Printable(name), `"`, `""`) + `"`
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// Literal returns a value in the syntax of SQL.
func Literal(v any) string {
	switch x := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strings.ToUpper(strconv.FormatBool(x))
	case string:
		mark := ""
		if !utf8.ValidString(x) || strings.ContainsFunc(x, func(r rune) bool { return !unicode.IsPrint(r) }) {
			mark = "E" // has backslash escapes
			x = strconv.Quote(x)
			x = strings.ReplaceAll(x[1:len(x)-1], `\"`, `"`)
		}
		return mark + "'" + strings.ReplaceAll(x, "'", "''") + "'"
	case []byte:
		return fmt.Sprintf("X'%x'", x)
	case batch.Cell:
		return fmt.Sprintf("X'%x'", []byte(x))
	case time.Time:
		return "'" + x.Format(time.RFC3339Nano) + "'"
	case fmt.Stringer:
		return x.String()
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.String {
		return Literal(r.String())
	}
	return fmt.Sprint(v)
}

// Clip shortens long text for an error message.
func Clip(text string) string {
	const most = 64
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}
