// Package infer guesses the columns of a table from a file of rows.
//
// A column gets the first of the types bool, int64, double and date in which each of its values
// would be printed as it stands in the file, else string: 1.10, 007 and +1 make strings. A file is
// read as a whole for that, of a stream only its beginning.
package infer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/cmd/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/schema"
)

// types are tried in this order.
var types = [...]schema.Type{schema.Bool, schema.Int64, schema.Double, schema.Date}

// Columns are what is known of a file's columns so far, in the order in which they came up.
type Columns struct {
	columns []column
	cell    []byte
	text    []byte
}

type column struct {
	name   string
	fits   [len(types)]bool // nothing seen says otherwise
	values bool             // there was one
	absent bool             // a row had none
}

// ErrTooMany says that a file has more columns than a table may have.
var ErrTooMany = fmt.Errorf("more than %d columns", schema.MaxColumns)

// add makes a column that no row had yet.
func (c *Columns) add(name string) (int, error) {
	if len(c.columns) == schema.MaxColumns {
		return 0, ErrTooMany
	}
	n := column{name: name}
	for i := range n.fits {
		n.fits[i] = true
	}
	c.columns = append(c.columns, n)
	return len(c.columns) - 1, nil
}

func (c *Columns) index(name string) int {
	return slices.IndexFunc(c.columns, func(o column) bool { return o.name == name })
}

// see takes a value of column i into account. read makes a cell of it, and print its text.
func (c *Columns) see(i int, value []byte,
	read func([]byte, *schema.Column, []byte) ([]byte, error), print func([]byte, *schema.Column, []byte) []byte) {
	col := &c.columns[i]
	col.values = true
	for k, fits := range col.fits {
		if !fits {
			continue
		}
		as := schema.Column{Type: types[k]}
		var err error
		if c.cell, err = read(c.cell[:0], &as, value); err == nil {
			c.text = print(c.text[:0], &as, c.cell)
		}
		col.fits[k] = err == nil && bytes.Equal(c.text, value)
	}
}

func (c *Columns) seeField(i int, text []byte) { c.see(i, text, cell.FromField, celltext.AppendText) }
func (c *Columns) seeJSON(i int, value []byte) { c.see(i, value, cell.FromJSON, celltext.AppendJSON) }

// Schema makes a schema of the columns: those of the key first and not nullable, then the others,
// all nullable. A type that cannot be in a key makes a string there, and so does a value that is
// missing in a column of CSV.
func (c *Columns) Schema(key []string) (*schema.Schema, error) {
	var columns []schema.Column
	for i, name := range key {
		k := c.index(name)
		switch {
		case k < 0:
			return nil, fmt.Errorf("column %q: the file does not have it: it has %s", name, c.names())
		case slices.Contains(key[:i], name):
			return nil, fmt.Errorf("column %q appears twice", name)
		}
		columns = append(columns, schema.Column{Name: name, Type: c.columns[k].keyType()})
	}
	for i := range c.columns {
		if col := &c.columns[i]; !slices.Contains(key, col.name) {
			columns = append(columns, schema.Column{Name: col.name, Type: col.typ(), Nullable: true})
		}
	}
	if len(columns) == 0 {
		return nil, errors.New("the file has no columns")
	}
	return schema.New(columns, len(key))
}

// mostNamed is how many columns an error names.
const mostNamed = 8

// names lists the first columns.
func (c *Columns) names() string {
	var list []byte
	for i := range c.columns {
		if i > 0 {
			list = append(list, ", "...)
		}
		if i == mostNamed {
			list = append(list, "…"...)
			break
		}
		list = celltext.AppendQuoted(list, []byte(c.columns[i].name))
	}
	if list == nil {
		return "no columns"
	}
	return string(list)
}

func (c *column) typ() schema.Type {
	for k, fits := range c.fits {
		if fits && c.values {
			return types[k]
		}
	}
	return schema.String
}

func (c *column) keyType() schema.Type {
	if t := c.typ(); t.Keyable() && !c.absent {
		return t
	}
	return schema.String
}
