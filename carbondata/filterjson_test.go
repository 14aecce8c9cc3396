package carbondata

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fuzztest"
)

// filterText writes a filter for a message.
func filterText(f Filter) string {
	var parts []string
	for _, child := range f.children {
		parts = append(parts, filterText(child))
	}
	name := [...]string{"and", "or", "not", "=", "!=", "<", "<=", ">", ">=", "in", "isnull",
		"notnull", "startswith"}[f.op]
	if f.column != "" {
		return fmt.Sprintf("%s %s %#v", f.column, name, f.values)
	}
	return name + "(" + strings.Join(parts, ", ") + ")"
}

func TestParseFilterRefusesOtherText(t *testing.T) {
	for text, want := range map[string]string{
		``:                         "JSON",
		`{}`:                       "is not a filter",
		`["a"]`:                    "is not a filter",
		`["a", "="]`:               "one value, not 0",
		`["a", "=", 1, 2]`:         "one value, not 2",
		`["a", "=", null]`:         "use isnull",
		`["a", "=", [1]]`:          "is not a value",
		`["a", "==", 1]`:           "not an operator",
		`["a", "in", 1]`:           "list of values",
		`["a", "in", [{}]]`:        "is not a value",
		`["a", "isnull", 1]`:       "takes no value",
		`[1, "=", 1]`:              "name of a column",
		`["a", 1, 1]`:              "not an operator",
		`["nor", ["a", "=", 1]]`:   "joins no filters",
		`["not", ["a","=",1], []]`: "one filter",
		`["and", ["a","=",1], 2]`:  "is not a filter",
		`["a", "=", 1] x`:          "more text",
		`["a", "=", "` + "\xff\"]": "UTF-8",
		strings.Repeat(`["not",`, 200) + `["a","=",1]` + strings.Repeat("]", 200): "levels",
	} {
		_, err := ParseFilter([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "carbondata: filter: ") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseFilter parses filters and binds them to the columns of a table.
func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{`["a","=",1]`, `["and",["b","in",[1,-2]],["not",["c","isnull"]]]`,
		`["or",["s","startswith","x"],["f","!=","NaN"]]`,
		`["bin","=","0x00ff"]`, `["d","<",99999999999999999999999999]`, `["t","notin",[1e3]]`} {
		f.Add([]byte(text))
	}
	table := &Table{columns: []Column{{Name: "a", Type: Int}, {Name: "b", Type: Long},
		{Name: "c", Type: Struct}, {Name: "s", Type: Varchar},
		{Name: "f", Type: Float}, {Name: "bin", Type: Binary}, {Name: "d", Type: Decimal, Precision: 20},
		{Name: "t", Type: Timestamp}, {Name: "o", Type: Boolean}}}
	fuzztest.Run(f, func(t *testing.T, text []byte) {
		filter, err := ParseFilter(text)
		if err != nil {
			return
		}
		if _, err := table.bind(filter); err != nil && !errors.Is(err, ErrNoColumn) && !errors.Is(err, ErrSchema) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
