package infer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/schema"
)

// Options are the options of reading.
type Options struct {
	Rows  int  // maximum number of rows; 0 = all
	Exact bool // types print each value exactly as in the file

	// As in load.Options.
	Delimiter byte
	Names     csvin.Names
	Columns   []string
}

// errEnough ends reading after the beginning of an input.
var errEnough = errors.New("the rest is not read")

// Beginning returns a reader of the first n bytes of in. A record that continues after them is
// ignored.
func Beginning(in io.Reader, n int) io.Reader { return &beginning{in, n} }

type beginning struct {
	in   io.Reader
	left int
}

func (b *beginning) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errEnough
	}
	n, err := b.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// FieldError reports an input whose columns cannot be determined. Line counts from 1.
type FieldError struct {
	Line int
	Err  error
}

func (e *FieldError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *FieldError) Unwrap() error { return e.Err }

// CSV reads the records of in. It reports errors in the header only; the load reports errors in
// other records. Errors: *FieldError; ctx.Err().
func CSV(ctx context.Context, in io.Reader, o Options) (*Columns, error) {
	r := csvin.NewReader(in, o.Delimiter)
	names, err := r.Header(o.Names)
	if err != nil {
		return nil, &FieldError{r.Line, err}
	}
	c := &Columns{exact: o.Exact}
	places := make([]int, len(names)) // of the fields: indexes of columns, −1 for those that are not loaded
	for i, name := range names {
		places[i] = -1
		if o.Columns == nil || slices.Contains(o.Columns, name) {
			if places[i], err = c.add(name); err != nil {
				return nil, &FieldError{1, err}
			}
		}
	}
	for n := 0; o.Rows == 0 || n < o.Rows; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := r.Next()
		if err == io.EOF || errors.Is(err, errEnough) {
			break
		}
		c.Rows = true
		if _, bad := errors.AsType[*csvin.BadRecord](err); bad {
			continue
		}
		if err != nil {
			return nil, &FieldError{r.Line, err}
		}
		if fields := r.Fit(len(names)); len(fields) == len(names) {
			c.seeRecord(fields, places, r.Line)
		}
	}
	return c, nil
}

func (c *Columns) seeRecord(fields []csvin.Field, places []int, line int) {
	for k, i := range places {
		switch f := &fields[k]; {
		case i < 0:
		case len(f.Text) > 0:
			c.see(i, f.Text, line, c.fieldKinds)
		case f.Quoted:
			c.seeEmpty(i, line)
		}
	}
}

// JSON reads the records of in. It ignores a record that is not a JSON object, except that the
// first of them becomes Columns.Bad; the load reports it. Errors: *FieldError; ctx.Err().
func JSON(ctx context.Context, in io.Reader, o Options) (*Columns, error) {
	records := jsonin.NewRecords(in, csvin.MaxRecordBytes)
	c := &Columns{exact: o.Exact}
	for n := 1; o.Rows == 0 || n <= o.Rows; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		object, err := records.Next()
		if err == io.EOF || errors.Is(err, errEnough) {
			break
		}
		c.Rows = true
		bad, ok := errors.AsType[*jsonin.Error](err)
		switch {
		case ok:
			err = bad.InColumn()
		case err != nil:
			return nil, &FieldError{records.Line, err}
		case object[0] != '{':
			err = fmt.Errorf("want an object, not %s", jsonin.Kind(object))
		}
		if err != nil {
			if c.Bad == nil {
				c.Bad = &FieldError{records.Line, err}
			}
			continue
		}
		if err := c.seeObject(object, records.Line, o.Columns); err != nil {
			return nil, &FieldError{records.Line, err}
		}
	}
	return c, nil
}

// seeObject adds the members of an object: those with the given names, nil = all.
func (c *Columns) seeObject(object []byte, line int, only []string) error {
	next := 0 // members are mostly in the same order
	for w := jsonin.Walk(object); w.Next(); next++ {
		if next >= len(c.columns) || c.columns[next].name != string(w.Name) {
			if only != nil && !slices.Contains(only, string(w.Name)) {
				next--
				continue
			}
			if next = c.index(string(w.Name)); next < 0 {
				err := schema.CheckName(string(w.Name))
				if err == nil {
					next, err = c.add(string(w.Name))
				}
				if err != nil {
					return fmt.Errorf("column %q: %w", w.Name, err)
				}
			}
		}
		switch value := w.Value; {
		case jsonin.IsNull(value):
		case len(value) == len(`""`) && value[0] == '"':
			c.seeEmpty(next, line)
		default:
			c.see(next, value, line, c.jsonKinds)
			c.columns[next].nested = c.columns[next].nested || value[0] == '{' || value[0] == '['
		}
	}
	return nil
}
