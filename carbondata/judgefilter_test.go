package carbondata

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/batch"
)

// comparePlain compares two values of a column without children: strings and bytes by unsigned
// bytes.
func comparePlain(a, b any) int {
	switch x := a.(type) {
	case bool:
		return cmp.Compare(b2i(x), b2i(b.(bool)))
	case int8:
		return cmp.Compare(x, b.(int8))
	case int16:
		return cmp.Compare(x, b.(int16))
	case int32:
		return cmp.Compare(x, b.(int32))
	case int64:
		return cmp.Compare(x, b.(int64))
	case Days:
		return cmp.Compare(x, b.(Days))
	case Micros:
		return cmp.Compare(x, b.(Micros))
	case float32:
		return cmp.Compare(x, b.(float32))
	case float64:
		return cmp.Compare(x, b.(float64))
	case batch.Int128:
		return x.Cmp(b.(batch.Int128))
	case string:
		return strings.Compare(x, b.(string))
	case []byte:
		return bytes.Compare(x, b.([]byte))
	}
	panic(fmt.Sprintf("%T", a))
}

// plainFilter is a filter with its meaning in plain Go: the right answer, computed without the
// package's own filters.
type plainFilter struct {
	text  string // in the form of ParseFilter
	sdk   string // the same, as the tool of the corpus takes it
	match func(row []any) bool
}

// randomFilter returns a filter of the folder's columns without children, or false if it has none
// to filter by.
func (f *randomFolder) randomFilter(rnd *rand.Rand, rows [][]any, depth int) (plainFilter, bool) {
	if depth > 0 && rnd.IntN(2) == 0 {
		a, ok := f.randomFilter(rnd, rows, depth-1)
		b, _ := f.randomFilter(rnd, rows, depth-1)
		if !ok {
			return a, false
		}
		if rnd.IntN(2) == 0 {
			return plainFilter{fmt.Sprintf(`["and",%s,%s]`, a.text, b.text),
				fmt.Sprintf(`["and",%s,%s]`, a.sdk, b.sdk), func(row []any) bool {
					return a.match(row) && b.match(row)
				}}, true
		}
		return plainFilter{fmt.Sprintf(`["or",%s,%s]`, a.text, b.text),
			fmt.Sprintf(`["or",%s,%s]`, a.sdk, b.sdk), func(row []any) bool {
				return a.match(row) || b.match(row)
			}}, true
	}
	var able []int
	for i, c := range f.columns {
		if f.canFilter(c, rows, i) {
			able = append(able, i)
		}
	}
	if len(able) == 0 {
		return plainFilter{}, false
	}
	i := able[rnd.IntN(len(able))]
	return f.randomTest(rnd, rows, i), true
}

// canFilter reports whether the SDK's filters on a column are right: not of special numbers, which
// it orders in its own way. Source: carbondata spec §9.
func (f *randomFolder) canFilter(c Column, rows [][]any, i int) bool {
	if len(c.Children) > 0 {
		return false
	}
	for _, row := range rows {
		x, _ := row[i].(float64)
		if v, ok := row[i].(float32); ok {
			x = float64(v)
		}
		if math.IsNaN(x) || x == 0 && math.Signbit(x) {
			return false
		}
	}
	return true
}

// nullsPass reports whether nulls of the column can pass the SDK's ranges: of a dimension, if all
// values of a page do.
func (f *randomFolder) nullsPass(c Column, rows [][]any, i int) bool {
	dimension := slices.Contains([]Type{String, Varchar, Date, Timestamp}, c.Type) ||
		slices.Contains(f.options.SortColumns, c.Name)
	return dimension && slices.ContainsFunc(rows, func(row []any) bool { return row[i] == nil })
}

// randomTest returns a test of column i, mostly with values that it has.
func (f *randomFolder) randomTest(rnd *rand.Rand, rows [][]any, i int) plainFilter {
	c := f.columns[i]
	var present []any
	for range 8 {
		if v := rows[rnd.IntN(len(rows))][i]; v != nil {
			present = append(present, v)
		}
	}
	if fresh := randomPresent(rnd, c); len(present) == 0 || rnd.IntN(3) == 0 {
		for range 3 {
			if v := fresh(); !special(v) {
				present = append([]any{v}, present...)
			}
		}
	}
	ops := []string{"isnull", "notnull"}
	// null for the SDK
	empty := c.Type == Varchar && slices.ContainsFunc(rows, func(row []any) bool { return row[i] == "" })
	if len(present) > 0 && c.Type != Binary && !empty {
		ops = append(ops, "=", "!=", "in", "notin")
		if c.Type != Boolean && !f.nullsPass(c, rows, i) {
			ops = append(ops, "<", "<=", ">", ">=")
		}
		if c.Type == String || c.Type == Varchar {
			ops = append(ops, "startswith")
		}
	}
	op := ops[rnd.IntN(len(ops))]
	name := string(appendText(nil, c.Name))
	plain := func(value any, match func(row []any) bool) plainFilter {
		if op == "isnull" || op == "notnull" {
			text := fmt.Sprintf(`[%s,"%s"]`, name, op)
			return plainFilter{text, text, match}
		}
		text := func(v any) string { return fmt.Sprintf(`[%s,"%s",%s]`, name, op, appendJSON(nil, v)) }
		return plainFilter{text(value), text(sdkValue(value)), match}
	}
	is := func(test func(v any) bool) func(row []any) bool {
		return func(row []any) bool { return row[i] != nil && test(row[i]) }
	}
	switch op {
	case "isnull":
		// The SDK stores a null VARCHAR as an empty one, and finds both.
		return plain(nil, func(row []any) bool { return row[i] == nil || c.Type == Varchar && row[i] == "" })
	case "notnull":
		return plain(nil, func(row []any) bool { return row[i] != nil && (c.Type != Varchar || row[i] != "") })
	case "in", "notin":
		list := present[:1+rnd.IntN(len(present))]
		in := func(v any) bool {
			return slices.ContainsFunc(list, func(x any) bool { return comparePlain(v, x) == 0 })
		}
		if op == "in" {
			return plain(list, is(in))
		}
		return plain(list, is(func(v any) bool { return !in(v) }))
	case "startswith":
		// The SDK's test fails for an empty prefix, and is wrong after a character of four bytes.
		prefix := []rune(present[0].(string))
		prefix = prefix[:min(len(prefix), 1+rnd.IntN(5))]
		if len(prefix) == 0 || prefix[len(prefix)-1] > 0xffff {
			prefix = []rune("x")
		}
		return plain(string(prefix), is(func(v any) bool { return strings.HasPrefix(v.(string), string(prefix)) }))
	}
	x := present[0]
	tests := map[string]func(c int) bool{
		"=": func(c int) bool { return c == 0 }, "!=": func(c int) bool { return c != 0 },
		"<": func(c int) bool { return c < 0 }, "<=": func(c int) bool { return c <= 0 },
		">": func(c int) bool { return c > 0 }, ">=": func(c int) bool { return c >= 0 },
	}
	return plain(x, is(func(v any) bool { return tests[op](comparePlain(v, x)) }))
}

// special reports whether v is nil, or a number that the SDK's filters order in their own way.
func special(v any) bool {
	x, _ := v.(float64)
	if f, ok := v.(float32); ok {
		x = float64(f)
	}
	return v == nil || math.IsNaN(x) || math.IsInf(x, 0) || x == 0 && math.Signbit(x)
}
