// Package infer infers the columns of a table from a file of rows.
//
// A column gets the first of the types bool, int64, decimal, double, date and timestamp that prints
// each of its values exactly as in the file, else string: 007 and +1 need strings, and so do values
// of several scales that no double prints unchanged. Only timestamps may be written in several
// ways, all of them in UTC. A file is read completely, a stream only at its beginning.
package infer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/oribi-db/oribi/cmd/oribi/internal/csvin"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Columns is what is known about a file's columns so far, in the order of their first appearance.
type Columns struct {
	columns []column
	cell    []byte
	text    []byte
}

type column struct {
	name   string
	fits   kinds // the types that print all values seen unchanged
	values bool  // some row had a value
	absent bool  // some row had none

	scale, whole int // of decimals: maximum digits after and before the point

	typed  bool   // some value fitted some kind
	forced []byte // the value that made fits empty, while other values fit some kind
	line   int    // of the value forced

	decided *schema.Column // the type that the caller chose; nil = none
	exact   bool           // decided is the column, whether it is nullable included
}

// Known returns columns whose types are known, with the names and types of the given ones. exact
// also keeps which of them are nullable, unless they become key columns.
func Known(columns []schema.Column, exact bool) *Columns {
	c := &Columns{}
	for _, decided := range columns {
		c.columns = append(c.columns, column{name: decided.Name, decided: &decided, exact: exact})
	}
	return c
}

// looked is how many values of a string column are examined to find out whether some of them fit
// another type.
const looked = 1000

// ErrTooMany means that a file has more columns than a table may have.
var ErrTooMany = fmt.Errorf("more than %d columns", schema.MaxColumns)

// add adds a column that no earlier row had.
func (c *Columns) add(name string) (int, error) {
	if len(c.columns) == schema.MaxColumns {
		return 0, ErrTooMany
	}
	c.columns = append(c.columns, column{name: name, fits: allKinds, scale: -1})
	return len(c.columns) - 1, nil
}

func (c *Columns) index(name string) int {
	return slices.IndexFunc(c.columns, func(o column) bool { return o.name == name })
}

// see adds a value to column i; of returns which of a set of kinds fit the text.
func (c *Columns) see(i int, value []byte, line int, of func(text []byte, among kinds) (kinds, shape)) {
	col := &c.columns[i]
	col.values = true
	if col.fits == 0 {
		if col.typed || line > looked {
			return
		}
		fits, _ := of(value, allKinds)
		col.typed = fits != 0
		return
	}
	fits, s := of(value, col.fits)
	if fits&isDecimal != 0 {
		if col.scale < 0 {
			col.scale = s.decimals
		}
		col.whole = max(col.whole, s.whole)
		if s.decimals != col.scale || col.scale+col.whole > schema.MaxPrecision {
			fits &^= isDecimal
		}
	}
	col.fits = fits
	if fits == 0 {
		col.forced, col.line = slices.Clone(value), line
		return
	}
	col.typed = true
}

// Decide sets the type of a column, whatever its values. It returns an error if there is no such
// column or no such type.
func (c *Columns) Decide(name, typeName string) error {
	i := c.index(name)
	if i < 0 {
		return &UnknownColumnError{name, c.Names()}
	}
	decided := &schema.Column{}
	if err := decided.ParseTypeName(typeName); err != nil {
		return err
	}
	c.columns[i].decided, c.columns[i].exact = decided, false
	return nil
}

// UnknownColumnError names a column that the file does not have.
type UnknownColumnError struct {
	Name  string
	Names []string // of the existing columns
}

func (e *UnknownColumnError) Error() string {
	if len(e.Names) == 0 {
		return fmt.Sprintf("column %q: the file has no columns", e.Name)
	}
	hint := csvin.DelimiterHint(e.Names)
	if hint == "" {
		hint = nearest.Hint(e.Name, e.Names)
	}
	return fmt.Sprintf("column %q: no such column in the file%s", e.Name, hint)
}

// Names returns the names of the columns, in the order of the file.
func (c *Columns) Names() []string {
	names := make([]string, len(c.columns))
	for i := range c.columns {
		names[i] = c.columns[i].name
	}
	return names
}

// Schema returns a schema of the columns: the key columns first, not nullable, then the others, all
// nullable. A key column becomes a string if its type cannot be part of a key, or if a value is
// missing in CSV.
func (c *Columns) Schema(key []string) (*schema.Schema, error) {
	var columns []schema.Column
	for i, name := range key {
		k := c.index(name)
		switch {
		case k < 0:
			return nil, &UnknownColumnError{name, c.Names()}
		case slices.Contains(key[:i], name):
			return nil, fmt.Errorf("column %q appears twice", name)
		}
		columns = append(columns, c.columns[k].keyColumn())
	}
	for i := range c.columns {
		if col := &c.columns[i]; !slices.Contains(key, col.name) {
			n := col.column()
			n.Nullable = n.Nullable || !col.exact
			columns = append(columns, n)
		}
	}
	if len(columns) == 0 {
		return nil, errors.New("the file has no columns")
	}
	return schema.New(columns, len(key))
}

// Reasons describes the types of a schema that Schema returned, in one line: each column with its
// type and, for a string that was almost another type, the value that prevented it.
func (c *Columns) Reasons(s *schema.Schema) string {
	list := make([]string, len(s.Columns))
	for i := range s.Columns {
		n := &s.Columns[i]
		list[i] = label(n.Name) + " " + n.TypeName()
		if reason := c.columns[c.index(n.Name)].reason(n, i < s.Keys); reason != "" {
			list[i] += " (" + reason + ")"
		}
	}
	return strings.Join(list, ", ")
}

// label returns a column's name for a list, in quotes unless it is a plain word.
func label(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// reason describes why a column became a string; empty if that is obvious.
func (c *column) reason(n *schema.Column, key bool) string {
	switch {
	case c.decided != nil || n.Type != schema.String:
		return ""
	case !c.values:
		return "no values"
	case c.fits == 0 && c.typed:
		return fmt.Sprintf("%s in line %d", celltext.Excerpt(c.forced), c.line)
	case c.fits != 0 && key && c.absent:
		return "a row has no value"
	case c.fits != 0 && key:
		as := c.column()
		return as.TypeName() + " cannot be in a key"
	}
	return ""
}

// column returns the column with the type that fits.
func (c *column) column() schema.Column {
	n := schema.Column{Type: schema.String}
	switch {
	case c.decided != nil:
		n = *c.decided
	case !c.values:
	case c.fits&isBool != 0:
		n.Type = schema.Bool
	case c.fits&isInteger != 0:
		n.Type = schema.Int64
	case c.fits&isDecimal != 0:
		n.Precision, n.Scale = roomFor(c.whole+c.scale), c.scale
		n.Type = schema.DecimalType(n.Precision)
	case c.fits&isDouble != 0:
		n.Type = schema.Double
	case c.fits&isDate != 0:
		n.Type = schema.Date
	case c.fits&isTime != 0:
		n.Type = schema.Timestamp
	}
	n.Name = c.name
	return n
}

// roomFor returns the precision of a decimal column for values of at most digits digits: the
// maximum for the same number of bytes, so that larger values fit later.
func roomFor(digits int) int {
	for _, precision := range []int{9, 18} {
		if digits <= precision {
			return precision
		}
	}
	return schema.MaxPrecision
}

func (c *column) keyColumn() schema.Column {
	n := c.column()
	if c.decided == nil && (!n.Type.Keyable() || c.absent) {
		return schema.Column{Name: c.name, Type: schema.String}
	}
	n.Nullable = false
	return n
}
