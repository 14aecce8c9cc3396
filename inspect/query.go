package inspect

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
)

// Limits of parameters.
const (
	maxParamBytes = 32 << 10  // of one value
	maxPageNumber = 1_000_000 // of a list
	maxEvery      = 3600      // seconds
)

// query contains the parameters of a request. Those that many pages have are parsed here.
type query struct {
	Table  *oribi.Table   // of the parameter "table"; nil for pages without it
	At     mvcc.Timestamp // of "at", inclusive; when.Latest without it
	AtWord string         // "at" as given, "latest" without it
	Page   int            // of "page", from 0: which part of a long list
	// of "refresh": seconds after which the page is loaded again; 0 means never
	Refresh int

	page   *page
	values url.Values
}

// common are the parameters that every page knows.
var common = []string{"table", "at", "page", "refresh"}

// parseQuery parses the parameters of a page.
func (s *server) parseQuery(r *http.Request, p *page) (*query, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("The address is malformed: %v.", err)
	}
	q := &query{page: p, values: values, At: when.Latest, AtWord: "latest"}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch list := values[name]; {
		case !slices.Contains(common, name) && !slices.Contains(p.params, name):
			return nil, badRequest("There is no parameter %q on this page.", cut(name, 40))
		case len(list) > 1:
			return nil, badRequest("The parameter %q is given twice.", name)
		case len(list[0]) > maxParamBytes:
			return nil, badRequest("The parameter %q is longer than %d bytes.", name, maxParamBytes)
		case !utf8.ValidString(list[0]):
			return nil, badRequest("The parameter %q is not valid UTF-8.", name)
		}
	}
	if err := q.parse(s); err != nil {
		return nil, err
	}
	if p.table && q.Table == nil {
		return nil, badRequest("The parameter \"table\" is missing.")
	}
	return q, nil
}

// parse parses the common parameters.
func (q *query) parse(s *server) (err error) {
	if q.values.Has("table") {
		if q.Table, err = s.table(q.Text("table")); err != nil {
			return err
		}
	}
	if word := q.Text("at"); word != "" {
		if q.At, err = when.ParseState(word, s.now()); err != nil {
			return badRequest("at: %v.", err)
		}
		q.AtWord = word
	}
	if q.Page, err = q.Int("page", 0, 0, maxPageNumber); err != nil {
		return err
	}
	q.Refresh, err = q.Int("refresh", 0, 0, maxEvery)
	return err
}

// table returns a table by its name or, if no table has that name, by its ID.
func (s *server) table(name string) (*oribi.Table, error) {
	t, err := s.store.Table(name)
	if errors.Is(err, oribi.ErrNoTable) && len(name) == 32 {
		for _, other := range s.store.Tables() {
			if other.Properties().ID == name {
				return other, nil
			}
		}
	}
	return t, err
}

// formTable returns what a field of a form contains for the table of that name: the ID, if there
// are characters in the name that a form would change.
func (s *server) formTable(name string) string {
	if celltext.Printable(name) != name {
		if t, err := s.store.Table(name); err == nil {
			return t.Properties().ID
		}
	}
	return name
}

// Text returns a parameter as it is, empty if it is absent.
func (q *query) Text(name string) string { return q.values.Get(name) }

// Has reports whether a parameter is given.
func (q *query) Has(name string) bool { return q.values.Has(name) }

// Int returns an integer from least to most; absent or empty, it is initial.
func (q *query) Int(name string, initial, least, most int) (int, error) {
	word := q.Text(name)
	if word == "" {
		return initial, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		return 0, badRequest("%s: want an integer from %d to %d, not %q.", name, least, most, cut(word, 40))
	}
	return n, nil
}

// Number returns an ID, which must be given.
func (q *query) Number(name string) (uint64, error) {
	word := q.Text(name)
	n, err := strconv.ParseUint(word, 10, 64)
	switch {
	case word == "":
		return 0, badRequest("The parameter %q is missing.", name)
	case err != nil:
		return 0, badRequest("%s: want an integer, not %q.", name, cut(word, 40))
	}
	return n, nil
}

// With returns the parameters of the page with some changed: an empty value removes one.
func (q *query) With(changes ...string) url.Values {
	out := url.Values{}
	for name, list := range q.values {
		out[name] = list
	}
	for i := 0; i+1 < len(changes); i += 2 {
		if out.Del(changes[i]); changes[i+1] != "" {
			out.Set(changes[i], changes[i+1])
		}
	}
	return out
}
