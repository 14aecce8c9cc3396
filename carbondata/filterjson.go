package carbondata

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// jsonText is a text in the JSON form of a filter: a string, the hex digits of a BINARY, or a
// number that JSON does not have.
type jsonText string

// jsonOps are the operators of the JSON form.
var jsonOps = map[string]operator{"=": opEq, "!=": opNe, "<": opLt, "<=": opLe, ">": opGt,
	">=": opGe, "in": opIn, "notin": opIn,
	"isnull": opIsNull, "notnull": opNotNull, "startswith": opHasPrefix}

// maxFilterDepth limits nested filters in JSON.
const maxFilterDepth = 100

// ParseFilter returns a filter in its JSON form:
//
//	["column", "=", value]          also != < <= > >= and startswith
//	["column", "in", [value, …]]    also notin
//	["column", "isnull"]            also notnull
//	["and", filter, …]              also or; ["not", filter]
//
// A value is a value of the column in JSON: true or false; a number, for a DECIMAL the unscaled
// integer, for a DATE days since 1970-01-01, for a TIMESTAMP microseconds; "NaN", "+Inf", or "-Inf"
// of a FLOAT or DOUBLE; a string; "0x" and hex digits for a BINARY. The error names the part that
// is not well-formed.
func ParseFilter(text []byte) (Filter, error) {
	f, err := parseFilter(text)
	return f, inside(err, "carbondata: filter")
}

func parseFilter(text []byte) (Filter, error) {
	if !utf8.Valid(text) {
		return Filter{}, fmt.Errorf("the text is not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return Filter{}, fmt.Errorf("JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Filter{}, fmt.Errorf("JSON: more text after the filter, at byte %d", d.InputOffset())
	}
	return filterOf(v, 0)
}

// filterOf returns the filter that a JSON value is.
func filterOf(v any, depth int) (Filter, error) {
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		return Filter{},
			fmt.Errorf("%s is not a filter, want such as [\"a\", \"=\", 1] or [\"and\", filter, filter]", shortJSON(v))
	}
	if depth > maxFilterDepth {
		return Filter{}, fmt.Errorf("more than %d levels of filters", maxFilterDepth)
	}
	name, ok := list[0].(string)
	if !ok {
		return Filter{}, fmt.Errorf("%s is not the name of a column", shortJSON(list[0]))
	}
	if _, nested := list[1].([]any); nested {
		return combination(name, list[1:], depth)
	}
	word, _ := list[1].(string)
	op, ok := jsonOps[word]
	if !ok {
		return Filter{},
			fmt.Errorf("column %q: %s is not an operator, want one of = != < <= > >= in notin isnull notnull "+
				"startswith", name, shortJSON(list[1]))
	}
	values, err := jsonValues(op, list[2:])
	f := test(op, name, values...)
	if word == "notin" {
		f = Not(f)
	}
	return f, inside(err, "column %q: %s", name, word)
}

// combination returns the filter that joins others.
func combination(word string, list []any, depth int) (Filter, error) {
	f := Filter{}
	switch word {
	case "and":
		f.op = opAnd
	case "or":
		f.op = opOr
	case "not":
		f.op = opNot
	default:
		return f, fmt.Errorf("%q joins no filters, want \"and\", \"or\", or \"not\"", word)
	}
	if f.op == opNot && len(list) != 1 {
		return f, fmt.Errorf("\"not\" takes one filter, not %d", len(list))
	}
	for _, v := range list {
		child, err := filterOf(v, depth+1)
		if err != nil {
			return f, err
		}
		f.children = append(f.children, child)
	}
	return f, nil
}

// jsonValues returns the values after an operator.
func jsonValues(op operator, rest []any) (values []any, err error) {
	switch {
	case op == opIsNull || op == opNotNull:
		if len(rest) != 0 {
			err = fmt.Errorf("takes no value")
		}
		return nil, err
	case len(rest) != 1:
		return nil, fmt.Errorf("takes one value, not %d", len(rest))
	case op == opIn:
		list, ok := rest[0].([]any)
		if !ok {
			return nil, fmt.Errorf("takes a list of values, not %s", shortJSON(rest[0]))
		}
		rest = list
	}
	for _, v := range rest {
		switch v := v.(type) {
		case string:
			values = append(values, jsonText(v))
		case bool, json.Number:
			values = append(values, v)
		case nil:
			return nil, fmt.Errorf("no comparison with null is true; use isnull or notnull")
		default:
			return nil, fmt.Errorf("%s is not a value", shortJSON(v))
		}
	}
	return values, nil
}

// shortJSON returns the beginning of v in JSON, for a message.
func shortJSON(v any) string {
	const most = 40
	b, err := json.Marshal(v)
	if err != nil {
		return "this"
	}
	if len(b) > most {
		return string(bytes.ToValidUTF8(b[:most], nil)) + "…"
	}
	return string(b)
}
