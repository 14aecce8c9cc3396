package lab

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/nearest"
)

// ParseSpec reads a spec from JSON and fills in the defaults. Unknown fields, fields that a
// workload or policy does not have, and impossible values are errors that name the place:
//
//	workloads[1].theta: 12: want a number above 0, at most 10
func ParseSpec(text []byte) (*Spec, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	value, err := decoder.ReadValue()
	if err != nil {
		return nil, notJSON(err)
	}
	value = value.Clone()
	if _, err := decoder.ReadToken(); err == nil ||
		decoder.InputOffset() < int64(len(bytes.TrimRight(text, " \t\r\n"))) {
		return nil, errors.New("not JSON: text after the value")
	}
	s := new(Spec)
	if err := s.decode(value); err != nil {
		return nil, err
	}
	s.fill()
	return s, s.check()
}

// notJSON describes an error of the JSON decoder.
func notJSON(err error) error {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fmt.Errorf("byte %d: the name %q appears twice", syntax.ByteOffset+1, syntax.JSONPointer.LastToken())
		}
		return fmt.Errorf("byte %d: not JSON: %w", syntax.ByteOffset+1, syntax.Err)
	}
	return fmt.Errorf("not JSON: %w", err)
}

func (s *Spec) decode(value jsontext.Value) error {
	return decodeObject(value, "", s.fields(), func(name string, v jsontext.Value) error {
		switch name {
		case "workloads":
			return decodeList(v, name, &s.Workloads, func(w *Workload) map[string]any { return w.fields() })
		case "policies":
			return decodeList(v, name, &s.Policies, func(p *Policy) map[string]any { return p.fields() })
		}
		return errUnknown
	})
}

var errUnknown = errors.New("unknown field")

// place joins the place of an object and the name of a field.
func place(of, name string) string {
	if of == "" {
		return name
	}
	return of + "." + name
}

// decodeObject sets the fields of an object; other reads those that are not in fields.
func decodeObject(
	value jsontext.Value, at string, fields map[string]any, other func(name string, v jsontext.Value) error,
) error {
	if value.Kind() != '{' {
		if at == "" {
			at = "the spec"
		}
		return fmt.Errorf("%s: want an object, not %s", at, short(value))
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	d.ReadToken() // no error here and below: the value is checked
	for d.PeekKind() != '}' {
		token, _ := d.ReadToken()
		name := token.String()
		v, _ := d.ReadValue()
		field, known := fields[name]
		if !known {
			err := other(name, v.Clone())
			if err == errUnknown {
				names := append(nearest.Keys(fields), "workloads", "policies")
				if at != "" {
					names = names[:len(names)-2]
				}
				err = fmt.Errorf("%s: unknown field%s", place(at, name), nearest.Hint(name, names))
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := decodeField(v, field); err != nil {
			return fmt.Errorf("%s: %w", place(at, name), err)
		}
		if err := inRange(name, field); err != nil {
			return fmt.Errorf("%s: %w", place(at, name), err)
		}
	}
	return nil
}

// decodeList reads an array of objects.
func decodeList[T any](value jsontext.Value, name string, to *[]T, fields func(*T) map[string]any) error {
	if value.Kind() != '[' {
		return fmt.Errorf("%s: want an array, not %s", name, short(value))
	}
	d := jsontext.NewDecoder(bytes.NewReader(value))
	d.ReadToken()
	for d.PeekKind() != ']' {
		v, _ := d.ReadValue()
		element := new(T)
		err := decodeObject(v.Clone(), fmt.Sprintf("%s[%d]", name, len(*to)), fields(element),
			func(string, jsontext.Value) error {
				return errUnknown
			})
		if err != nil {
			return err
		}
		*to = append(*to, *element)
	}
	return nil
}

// short returns the beginning of a value for a message.
func short(v jsontext.Value) string {
	if len(v) > 40 {
		return string(v[:40]) + "…"
	}
	return string(v)
}

// decodeField parses a value by the type that field points to.
func decodeField(v jsontext.Value, field any) (err error) {
	text := string(v)
	want := "an integer"
	switch field := field.(type) {
	case *int64:
		*field, err = strconv.ParseInt(text, 10, 64)
	case *uint64:
		*field, err = strconv.ParseUint(text, 10, 64)
	case *float64:
		want = "a number"
		if v.Kind() != '0' {
			return fmt.Errorf("want %s, not %s", want, short(v))
		}
		*field, err = strconv.ParseFloat(text, 64)
	default:
		if v.Kind() != '"' {
			return fmt.Errorf("want a string, not %s", short(v))
		}
		unquoted, _ := jsontext.AppendUnquote(nil, v)
		switch field := field.(type) {
		case *Size:
			n, err := figures.ParseSize(string(unquoted))
			*field = Size(n)
			return err
		case *Engine:
			*field = Engine(unquoted)
		case *string:
			*field = string(unquoted)
		}
	}
	if err != nil {
		return fmt.Errorf("want %s, not %s", want, short(v))
	}
	return nil
}

// fields returns the fields of the spec by name, except the lists.
func (s *Spec) fields() map[string]any {
	return map[string]any{"seed": &s.Seed, "engine": &s.Engine, "flush_bytes": &s.FlushBytes,
		"rowset_bytes": &s.RowSetBytes, "rewrite_ratio": &s.RewriteRatio}
}

func (w *Workload) fields() map[string]any {
	return map[string]any{"name": &w.Name, "label": &w.Label, "keys": &w.Keys, "operations": &w.Operations,
		"value_bytes": &w.ValueBytes, "history": &w.History,
		"theta": &w.Theta, "hot": &w.Hot, "late": &w.Late, "series": &w.Series, "versions": &w.Versions,
		"layout": &w.Layout, "events": &w.Events, "table": &w.Table, "merges": &w.Merges}
}

func (p *Policy) fields() map[string]any {
	return map[string]any{"name": &p.Name, "label": &p.Label, "budget": &p.Budget, "depth": &p.Depth,
		"small_rowsets": &p.SmallRowSets,
		"min_quality":   &p.MinQuality, "runs": &p.Runs, "ratio": &p.Ratio}
}

// options lists the fields of each policy besides those that all have.
var options = map[string][]string{"none": nil, "overlap": {"depth"}, "budgeted": {"small_rowsets", "min_quality"},
	"tiered": {"runs", "ratio"}, "leveled": {"ratio"}}

// unused returns the first field that is set but not in used, or "".
func unused(fields map[string]any, used []string) string {
	for _, name := range nearest.Keys(fields) {
		if !slices.Contains(used, name) && !isZero(fields[name]) {
			return name
		}
	}
	return ""
}

func isZero(field any) bool {
	switch f := field.(type) {
	case *int64:
		return *f == 0
	case *uint64:
		return *f == 0
	case *float64:
		return *f == 0
	case *Size:
		return *f == 0
	case *string:
		return *f == ""
	}
	return false
}
