package csvin

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/schema"
)

// Header reads the first record as the names of columns. Errors: those of Next, a missing header
// for io.EOF, and invalid or duplicate names.
func (r *Reader) Header() ([]string, error) {
	switch err := r.Next(); {
	case err == io.EOF:
		return nil, errors.New("the header line is missing")
	case err != nil:
		return nil, err
	}
	if n := len(r.Fields); n > schema.MaxColumns {
		return nil, fmt.Errorf("the header has %d names, a table has at most %d columns", n, schema.MaxColumns)
	}
	var names []string
	for i, f := range r.Fields {
		name := string(f.Text)
		switch {
		case name == "":
			return nil, fmt.Errorf("field %d of the header is empty: each column needs a name", i+1)
		case slices.Contains(names, name):
			return nil, fmt.Errorf("column %q: the name appears twice", name)
		}
		if err := schema.CheckName(name); err != nil {
			return nil, fmt.Errorf("field %d of the header: %w", i+1, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// Fit returns the record's fields, without the empty one after a delimiter at the end of the line
// if there is one more than n: some programs end every line with a delimiter.
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
