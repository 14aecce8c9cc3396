// Package infer infers the columns of a table from a file of rows.
//
// A column gets the first of the types bool, int64, decimal, double, date and timestamp that keeps
// each of its values, and the text of each unless that differs in the zeros at the end of a
// fraction, in the case of True, or in how a time in UTC is written; else string: 007 and +1 need
// strings. In detail, numbers have the first of these types:
//
//	int64           integers
//	decimal(p,s)    numbers in CSV with s decimals each; integers of up to 38 digits
//	int128          larger integers
//	double          numbers of which a double has all digits
//	decimal(p,s)    numbers with up to s decimals that a double would round
//	double          any other numbers in JSON, where numbers are never strings
//
// A number with an exponent has the form in which programs write doubles: 1e-07 and 1.5E+300 are
// doubles, 12e5 is a string. Names such as nan and inf are doubles in a column with numbers.
//
// With Options.Exact, a column gets the first type that prints each value exactly as in the file.
// Only timestamps may then be written in several ways, all of them in UTC.
//
// A file is read completely, a stream only at its beginning.
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

// Columns has the columns of a file, with the types that fit all values read so far, in the order
// of their first appearance.
type Columns struct {
	// Bad is the first record that is not a row, if the format is JSON; nil = there is none. CSV
	// has columns without it.
	Bad *FieldError

	Rows bool // there is a record, well-formed or not

	columns []column
	exact   bool // as in Options
	cell    []byte
	text    []byte
}

type column struct {
	name   string
	fits   kinds // the types that keep all values seen
	values bool  // some row had a value
	typed  bool  // some value fitted some kind
	nested bool  // some value is an object or an array

	scale           int // of the first number with a fraction, −1 before it
	whole, decimals int // of numbers: maximum digits before and after the point
	numbers, names  bool

	forced []byte // the value that made fits empty or, while other values fit, a number that is rounded
	line   int    // of the value forced
	empty  int    // the first line with an empty text; 0 = none

	decided *schema.Column // the type that the caller chose; nil = none
	same    bool           // decided is the column, whether it is nullable included
}

// Known returns columns whose types are known, with the names and types of the given ones. exact
// also keeps which of them are nullable, unless they become key columns.
func Known(columns []schema.Column, exact bool) *Columns {
	c := &Columns{}
	for _, decided := range columns {
		c.columns = append(c.columns, column{name: decided.Name, decided: &decided, same: exact})
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

// see adds a value other than an empty text to column i; of returns which of a set of kinds keep
// the value.
func (c *Columns) see(i int, value []byte, line int, of func(value []byte, among kinds) (kinds, shape)) {
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
	if fits&numbers != 0 {
		fits = col.seeNumber(fits, s)
	}
	kept := col.fits &^ isNumber
	col.fits = fits
	if kept != 0 && fits&^isNumber == 0 || fits == 0 {
		col.forced, col.line = slices.Clone(value), line
	}
	col.typed = col.typed || fits != 0
}

// seeNumber adds the shape of a number that has some of the kinds.
func (c *column) seeNumber(fits kinds, s shape) kinds {
	if s.name {
		c.names = true
		return fits
	}
	c.numbers = true
	c.whole, c.decimals = max(c.whole, s.whole), max(c.decimals, s.decimals)
	if fits&isDecimal != 0 && c.scale < 0 {
		c.scale = s.decimals
	}
	if s.decimals != c.scale || c.scale+c.whole > schema.MaxPrecision {
		fits &^= isDecimal
	}
	if c.whole+c.decimals > schema.MaxPrecision {
		fits &^= isMixed
	}
	return fits
}

// seeEmpty adds an empty text to a column. It makes the column a string, unless the column is in
// the key: a key is never empty by accident, and the load reports the line.
func (c *Columns) seeEmpty(i, line int) {
	col := &c.columns[i]
	col.values = true
	if col.empty == 0 {
		col.empty = line
	}
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
	c.columns[i].decided, c.columns[i].same = decided, false
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

// AutoKey in a key is the auto-incrementing column, unless the file has a column of this name.
const AutoKey = "auto"

// Schema returns a schema of the columns: the key columns first, not nullable, then the others, all
// nullable. A key column becomes a string if its type cannot be part of a key. AutoKey and
// schema.AutoIncrementName stand for the auto-incrementing column.
func (c *Columns) Schema(key []string) (*schema.Schema, error) {
	key = slices.Clone(key)
	var columns []schema.Column
	for i, name := range key {
		if name == AutoKey && c.index(name) < 0 {
			name = schema.AutoIncrementName
			key[i] = name
		}
		k := c.index(name)
		switch {
		case slices.Contains(key[:i], name):
			return nil, fmt.Errorf("column %q appears twice", name)
		case name == schema.AutoIncrementName:
			columns = append(columns, schema.Column{Name: name, Type: schema.Int64, AutoIncrement: true})
			continue
		case k < 0:
			return nil, &UnknownColumnError{name, c.Names()}
		}
		columns = append(columns, c.columns[k].keyColumn())
	}
	if c.index(schema.AutoIncrementName) >= 0 && !slices.Contains(key, schema.AutoIncrementName) {
		return nil,
			fmt.Errorf("column %q: the name is reserved for the key of --key %s; with --mode upsert the rows keep "+
				"their values", schema.AutoIncrementName, AutoKey)
	}
	for i := range c.columns {
		if col := &c.columns[i]; !slices.Contains(key, col.name) {
			n := col.column()
			n.Nullable = n.Nullable || !col.same
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
		reason := "auto-incrementing"
		if !n.AutoIncrement {
			reason = c.columns[c.index(n.Name)].reason(n, i < s.Keys)
		}
		if reason != "" {
			list[i] += " (" + reason + ")"
		}
	}
	return strings.Join(list, ", ")
}

// label returns a column's name for a list, in quotes unless it is a plain word.
func label(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		return strconv.Quote(name)
	}
	return name
}

// reason describes why a column became a string, or which number is rounded; empty if that is
// obvious.
func (c *column) reason(n *schema.Column, key bool) string {
	switch {
	case c.decided != nil || n.Type != schema.String && n.Type != schema.Double:
		return ""
	case n.Type == schema.Double:
		if c.forced == nil {
			return ""
		}
		what := "rounded"
		if _, err := strconv.ParseFloat(string(c.forced), 64); err != nil {
			what = "out of range"
		}
		return fmt.Sprintf("%s in line %d is %s", celltext.Excerpt(c.forced), c.line, what)
	case !c.values:
		return "no values"
	case c.empty > 0 && !key && c.typed && (c.fits != 0 || c.empty < c.line):
		return fmt.Sprintf(`"" in line %d`, c.empty)
	case c.fits == 0 && c.typed:
		return fmt.Sprintf("%s in line %d", celltext.Excerpt(c.forced), c.line)
	case c.nested:
		return "objects and arrays as JSON"
	case c.typed && key:
		as := c.valueColumn()
		return as.TypeName() + " cannot be in a key"
	}
	return ""
}

// column returns the column with the type that fits, if it is not in the key.
func (c *column) column() schema.Column {
	if c.decided == nil && c.empty > 0 {
		return schema.Column{Name: c.name, Type: schema.String}
	}
	return c.valueColumn()
}

// valueColumn returns the column with the type that fits all values but empty texts.
func (c *column) valueColumn() schema.Column {
	n := schema.Column{Type: schema.String}
	switch {
	case c.decided != nil:
		n = *c.decided
	case !c.typed:
	case c.fits&isBool != 0:
		n.Type = schema.Bool
	case c.fits&isInteger != 0:
		n.Type = schema.Int64
	case c.fits&isDecimal != 0:
		c.setDecimal(&n)
	case c.fits&isWhole != 0 && c.whole > schema.MaxPrecision:
		n.Type = schema.Int128
	case c.fits&isWhole != 0:
		c.setDecimal(&n)
	case c.fits&isDouble != 0 && (c.numbers || !c.names):
		n.Type = schema.Double
	case c.fits&isMixed != 0:
		c.setDecimal(&n)
	case c.fits&isNumber != 0:
		n.Type = schema.Double
	case c.fits&isDate != 0:
		n.Type = schema.Date
	case c.fits&isTime != 0:
		n.Type = schema.Timestamp
	}
	n.Name = c.name
	return n
}

// setDecimal makes n a decimal column with room for the numbers seen.
func (c *column) setDecimal(n *schema.Column) {
	n.Precision, n.Scale = roomFor(c.whole+c.decimals), c.decimals
	n.Type = schema.DecimalType(n.Precision)
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

// keyColumn returns the column as a key column. Doubles cannot be in a key, but decimals can.
func (c *column) keyColumn() schema.Column {
	n := c.valueColumn()
	switch {
	case c.decided == nil && n.Type == schema.Double && c.fits&isMixed != 0:
		c.setDecimal(&n)
	case c.decided == nil && !n.Type.Keyable():
		return schema.Column{Name: c.name, Type: schema.String}
	}
	n.Nullable = false
	return n
}
