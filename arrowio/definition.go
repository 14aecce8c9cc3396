package arrowio

import (
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// Definition describes rows outside of a store, and the table from which they come.
type Definition struct {
	Columns []schema.Column // in the order of the rows' fields; all IDs are 0
	Key     []string        // names of the key columns, in key order; nil if not all of them are known
	Comment string
	History time.Duration // how long old versions are kept, or oribi.HistoryForever; 0 if not known
	RowFile schema.RowFile
	Expires oribi.Expiry      // Since is 0; without a column, rows do not expire
	Indexes []oribi.IndexInfo // of which all columns are there

	// Stored is set if the metadata of a file has the definition of its table. If not, the types
	// come from the file's own schema.
	Stored bool

	// Refused are the columns of a file that no column of a table can represent.
	Refused []*ColumnError

	// Notes are about columns whose type does not say how the file's values are read, for example
	// that an int64 has milliseconds.
	Notes []ColumnNote
}

// ColumnNote is a text for users about the values of a column.
type ColumnNote struct{ Column, Text string }

// DefinitionOf returns the definition of a table, for all columns or for the given ones. Errors:
// ErrNoColumn.
func DefinitionOf(t *oribi.Table, columns ...string) (*Definition, error) {
	s := t.Schema()
	if len(columns) == 0 {
		columns = s.Names()
	}
	indexes, err := s.Project(columns)
	if err != nil {
		return nil, wrap(err)
	}
	chosen := make([]schema.Column, len(indexes))
	for i, k := range indexes {
		chosen[i] = s.Columns[k]
	}
	return definitionOf(t, chosen), nil
}

// definitionOf returns the definition of a table for columns of its schema.
func definitionOf(t *oribi.Table, columns []schema.Column) *Definition {
	s, p := t.Schema(), t.Properties()
	d := &Definition{Columns: slices.Clone(columns), Comment: p.Comment, History: p.History, RowFile: p.RowFile,
		Expires: p.Expiry, Indexes: t.Indexes(), Stored: true}
	d.Expires.Since = 0
	for i := range d.Columns {
		d.Columns[i].ID, d.Columns[i].ReadDefault = 0, nil
	}
	d.setKey(s.Names()[:s.Keys])
	d.setIndexes(d.Indexes)
	return d
}

// setIndexes sets the indexes of which all columns are there and can be in an index.
func (d *Definition) setIndexes(list []oribi.IndexInfo) {
	d.Indexes = nil
	for _, x := range list {
		if !slices.ContainsFunc(x.Columns, func(name string) bool {
			i := d.index(name)
			return i < 0 || !d.Columns[i].Type.Keyable()
		}) {
			d.Indexes = append(d.Indexes, x)
		}
	}
}

// setKey sets the key columns if all of them are among the columns.
func (d *Definition) setKey(names []string) {
	d.Key = nil
	for _, name := range names {
		if i := d.index(name); i < 0 || !d.Columns[i].Type.Keyable() {
			return
		}
	}
	if len(names) > 0 {
		d.Key = slices.Clone(names)
	}
}

func (d *Definition) index(name string) int {
	return slices.IndexFunc(d.Columns, func(c schema.Column) bool { return c.Name == name })
}

// Table returns the schema of a table for the rows, for Store.CreateTable. The key columns come
// first, in their order: the given ones, or else the key columns of d. Errors: ErrNoColumn;
// ErrSchema, also if there is no key.
func (d *Definition) Table(key ...string) (*schema.Schema, error) {
	if len(key) == 0 {
		key = d.Key
	}
	if len(key) == 0 {
		return nil, wrap(fmt.Errorf("the key columns are not known: %w", ErrSchema))
	}
	var columns []schema.Column
	for i, name := range key {
		at := d.index(name)
		switch {
		case at < 0:
			return nil, wrap(fmt.Errorf("key column %q: %w", name, (&schema.Schema{Columns: d.Columns}).NoColumn(name)))
		case slices.Contains(key[:i], name):
			return nil, wrap(fmt.Errorf("key column %q appears twice: %w", name, ErrSchema))
		}
		c := d.Columns[at]
		c.Nullable, c.Immutable, c.Default = false, false, nil
		columns = append(columns, c)
	}
	for _, c := range d.Columns {
		if !slices.Contains(key, c.Name) {
			columns = append(columns, c)
		}
	}
	s, err := schema.New(columns, len(key))
	return s, wrap(err)
}

// Options returns the properties of the table that are known, for Store.CreateTable.
func (d *Definition) Options() []oribi.TableOption {
	var options []oribi.TableOption
	if d.Comment != "" {
		options = append(options, oribi.Comment(d.Comment))
	}
	if d.History != 0 {
		options = append(options, oribi.History(d.History))
	}
	if d.RowFile != schema.AutoRowFile {
		options = append(options, oribi.RowFile(d.RowFile))
	}
	if d.Expires.Column != "" {
		options = append(options, oribi.Expires(d.Expires.Column, d.Expires.Age))
	}
	for _, x := range d.Indexes {
		if x.Unique {
			options = append(options, oribi.Unique(x.Name, x.Columns...))
		} else {
			options = append(options, oribi.Index(x.Name, x.Columns...))
		}
	}
	return options
}

// Schema returns the Arrow schema for rows with a definition, which it stores in the metadata of
// the schema. Errors: a *ColumnError with ErrUnsupported for int128.
func Schema(d *Definition) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(d.Columns))
	for i := range d.Columns {
		c := &d.Columns[i]
		t, err := arrowType(c)
		if err != nil {
			return nil, wrap(&ColumnError{Column: c.Name, Row: -1, Err: err})
		}
		fields[i] = arrow.Field{Name: c.Name, Type: t, Nullable: c.Nullable}
	}
	metadata := arrow.NewMetadata([]string{definitionKey}, []string{d.encode()})
	return arrow.NewSchema(fields, &metadata), nil
}

// Define returns the definition of rows with an Arrow schema. The definition that Schema has stored
// in the metadata is used for each column whose type still fits it; the others follow from the
// types of the fields. Errors: ErrCorrupt and ErrUnsupported for metadata that cannot be read.
func Define(s *arrow.Schema) (*Definition, error) {
	text, _ := s.Metadata().GetValue(definitionKey)
	fields := make([]field, s.NumFields())
	for i, f := range s.Fields() {
		fields[i] = fieldOf(&f)
	}
	d, err := define(fields, text)
	return d, wrap(err)
}

// field is a column of a file, or the reason why it has none.
type field struct {
	column schema.Column
	note   string
	err    error
}

// define returns the definition of rows with the given fields and the stored definition, if any.
func define(fields []field, stored string) (*Definition, error) {
	d := &Definition{}
	if stored != "" {
		if err := d.decode(stored); err != nil {
			return nil, err
		}
	}
	known := d.Columns
	d.Columns = nil
	for _, f := range fields {
		c, err := f.column, f.err
		if err == nil && d.index(c.Name) >= 0 {
			err = fmt.Errorf("another column has this name: %w", ErrSchema)
		}
		if err == nil {
			err = schema.CheckName(c.Name)
		}
		if err != nil {
			d.Refused = append(d.Refused, &ColumnError{Column: c.Name, Row: -1, Err: err})
			continue
		}
		if i := slices.IndexFunc(known, func(k schema.Column) bool {
			return k.Name == c.Name
		}); i >= 0 && sameCells(&known[i], &c) {
			c = known[i]
		}
		if f.note != "" {
			d.Notes = append(d.Notes, ColumnNote{c.Name, f.note})
		}
		d.Columns = append(d.Columns, c)
	}
	d.setKey(d.Key)
	d.setIndexes(d.Indexes)
	if i := d.index(d.Expires.Column); i < 0 || d.Columns[i].Type != schema.Timestamp {
		d.Expires = oribi.Expiry{}
	}
	for i := range d.Columns {
		if c := &d.Columns[i]; c.AutoIncrement && !slices.Contains(d.Key, c.Name) {
			c.AutoIncrement = false
		}
	}
	return d, nil
}

// project returns the definition for the named columns, in that order; for all if names is nil.
// Errors: a *ColumnError for a column that was refused; ErrNoColumn; ErrSchema for a name given
// twice.
func (d *Definition) project(names []string) (*Definition, error) {
	out := *d
	if names == nil {
		if len(d.Refused) > 0 {
			return nil, d.Refused[0]
		}
		return &out, nil
	}
	out.Columns, out.Refused, out.Notes = nil, nil, nil
	for i, name := range names {
		if r := slices.IndexFunc(d.Refused, func(e *ColumnError) bool { return e.Column == name }); r >= 0 {
			return nil, d.Refused[r]
		}
		at := d.index(name)
		switch {
		case at < 0:
			return nil, fmt.Errorf("column %q: %w", name, (&schema.Schema{Columns: d.Columns}).NoColumn(name))
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("column %q appears twice: %w", name, ErrSchema)
		}
		out.Columns = append(out.Columns, d.Columns[at])
		for _, n := range d.Notes {
			if n.Column == name {
				out.Notes = append(out.Notes, n)
			}
		}
	}
	out.setKey(d.Key)
	out.setIndexes(d.Indexes)
	if out.index(d.Expires.Column) < 0 {
		out.Expires = oribi.Expiry{}
	}
	return &out, nil
}
