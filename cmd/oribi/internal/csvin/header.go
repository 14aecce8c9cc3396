package csvin

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi/schema"
)

// Header reads the first record as the names of columns. A delimiter behind the last name, as some
// programs write it on every line, is passed by. Errors are those of Next, io.EOF being told as a
// missing header, and what is wrong with the names.
func (r *Reader) Header() ([]string, error) {
	switch err := r.Next(); {
	case err == io.EOF:
		return nil, errors.New("the header line is missing")
	case err != nil:
		return nil, err
	}
	var names []string
	for i, f := range r.Fit(len(r.Fields) - 1) {
		name := string(f.Text)
		switch {
		case name == "":
			return nil, fmt.Errorf("field %d of the header is empty", i+1)
		case slices.Contains(names, name):
			return nil, fmt.Errorf("column %q: the name stands twice", name)
		}
		if err := schema.CheckName(name); err != nil {
			return nil, fmt.Errorf("field %d of the header: %w", i+1, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// Fit returns the record's fields without the empty one behind a delimiter at the end of the line,
// if there is one more than n.
func (r *Reader) Fit(n int) []Field {
	if last := len(r.Fields) - 1; last == n && n > 0 && len(r.Fields[last].Text) == 0 && !r.Fields[last].Quoted {
		return r.Fields[:last]
	}
	return r.Fields
}
