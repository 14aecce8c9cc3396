package csvin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/schema"
)

// Names are the caller's instructions about the names of the columns.
type Names struct {
	List     []string // of the fields, in order; nil if the first record has them
	Flag     string   // that gave List, for messages
	NoHeader bool     // the first record is data; needs List
}

// NamesError reports names in a header that no table can have: one is empty, or appears twice.
type NamesError struct {
	text string
	// Instead are other names, of all columns, that a table can have.
	Instead []string
}

func (e *NamesError) Error() string { return e.text }

// Header returns the names of the columns: those given or, without them, those in the first record,
// which it reads unless that is data. Errors: the errors of Next, a missing header for io.EOF, a
// wrong number of names, invalid names, and *NamesError.
func (r *Reader) Header(given Names) ([]string, error) {
	if given.NoHeader {
		return given.List, nil
	}
	switch err := r.Next(); {
	case err == io.EOF:
		return nil, errors.New("the header line is missing")
	case err != nil:
		return nil, err
	}
	if n := len(r.Fields); n > schema.MaxColumns {
		return nil, fmt.Errorf("the header has %d names, a table has at most %d columns", n, schema.MaxColumns)
	}
	if n := len(given.List); given.List != nil {
		if has := len(r.Fit(n)); has != n {
			return nil, fmt.Errorf("the header has %d names, %s has %d", has, given.Flag, n)
		}
		return given.List, nil
	}
	var names []string
	for i, f := range r.Fields {
		name := string(f.Text)
		switch {
		case name == "":
			return nil, &NamesError{fmt.Sprintf("field %d of the header is empty: each column needs a name", i+1),
				r.otherNames()}
		case slices.Contains(names, name):
			return nil, &NamesError{fmt.Sprintf("column %q: the name appears twice", name), r.otherNames()}
		}
		if err := schema.CheckName(name); err != nil {
			return nil, fmt.Errorf("field %d of the header: %w", i+1, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// otherNames returns the names in the current record, each made unlike those before it.
func (r *Reader) otherNames() []string {
	var names []string
	for i, f := range r.Fields {
		name := string(f.Text)
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		other := name
		for n := 2; slices.Contains(names, other); n++ {
			other = fmt.Sprintf("%s_%d", name, n)
		}
		names = append(names, other)
	}
	return names
}

// Fit returns the record's fields, without the last one if it is empty and there are n+1: some
// programs end every line with a delimiter.
func (r *Reader) Fit(n int) []Field {
	if last := len(r.Fields) - 1; last == n && n > 0 && len(r.Fields[last].Text) == 0 && !r.Fields[last].Quoted {
		return r.Fields[:last]
	}
	return r.Fields
}

// DelimiterHint returns the end of a message about a header whose only name contains a likely
// delimiter: the flag that names the delimiter. It is empty for other headers.
func DelimiterHint(names []string) string {
	if len(names) != 1 {
		return ""
	}
	for _, d := range []struct{ text, flag string }{{";", ";"}, {"\t", `\t`}, {"|", "|"}, {",", ","}} {
		if strings.Contains(names[0], d.text) {
			return fmt.Sprintf("; if %q separates the fields, add --delimiter '%s'", d.text, d.flag)
		}
	}
	return ""
}
