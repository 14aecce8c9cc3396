// Package schema defines the columns of a table: their types, identities, defaults and storage
// attributes.
//
// A column is identified by its ID; its index is its position in the schema. Everything on disk is
// keyed by ID, so renaming or dropping a column changes only metadata. Key columns come first. New
// returns an immutable Schema that is safe for concurrent use.
//
// Source: tablet spec §2. Simpler than Kudu: no partitions, no virtual columns stored in the
// schema.
package schema

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/nearest"
)

// Limits of a schema.
const (
	MaxColumns     = 300
	MaxNameBytes   = 256
	MaxKeyBytes    = 16 << 10 // encoded key
	MaxVarchar     = 65535    // characters
	MaxPrecision   = 38       // decimal digits
	MaxElements    = 65535    // of an array, counted in 16 bits; Kudu's server accepts 1024 by default
	MinDate        = -719162  // 0001-01-01
	MaxDate        = 2932896  // 9999-12-31
	minBlockBytes  = 512
	maxBlockBytes  = 16 << 20
	maxCommentSize = 256 // bytes
)

// AutoIncrementName is the name of the auto-incrementing column. No other column may have it.
// Source: tablet spec §2.3.
const AutoIncrementName = "auto_incrementing_id"

// ColumnID identifies a column within its table. IDs are never reused.
type ColumnID int32

// Column is one column of a table.
type Column struct {
	ID       ColumnID
	Name     string
	Type     Type
	Nullable bool
	Key      bool // the column is in the key
	// Immutable means that only an insert sets the column. Updates of it are refused; operations
	// of an Ignore kind skip it.
	Immutable bool
	// AutoIncrement is set only for the column named AutoIncrementName, an Int64 key column. Each
	// insert sets it to a value above all earlier ones of the table.
	AutoIncrement bool
	// Default is the cell of a new row that does not set the column (Kudu: write default); nil
	// means no default.
	Default []byte
	// ReadDefault is the cell of rows written before the column was added: its default at that
	// time. It never changes; CreateTable and AddColumn set it from Default.
	ReadDefault []byte
	Encoding    Encoding
	Compression Compression
	// BlockBytes is the size of a data cblock before compression. 0 means 256 KiB, or 16 KiB for
	// byte strings that are not dictionary-encoded.
	BlockBytes int32
	Precision  int // decimals: number of digits, 1 to 38
	Scale      int // decimals: digits after the decimal point, 0 to Precision
	Length     int // varchar: characters
	// Element is the type of the elements of an array, to which Precision, Scale, Length and
	// Encoding apply; 0 for other types.
	Element Type
	Comment string
}

// Schema is the list of columns, key columns first.
type Schema struct {
	Columns []Column
	Keys    int // number of key columns, at least 1
	byName  map[string]int
	byID    map[ColumnID]int
}

// New checks columns and returns a schema of them. The columns with Key form the key; they come first:
//
//	s, err := schema.New([]schema.Column{{Name: "path", Type: schema.String, Key: true}, {Name: "size", Type: schema.Int64}})
//
// With a number, New sets Key: the first keys columns form the key.
//
// Columns keep their IDs; if all IDs are 0, New numbers the columns from 0. It copies the slice but not
// the defaults in it. Errors wrap ErrSchema and name the column.
func New(columns []Column, keys ...int) (*Schema, error) {
	if len(columns) == 0 || len(columns) > MaxColumns {
		return nil, schemaError("a table has 1 to %d columns, not %d", MaxColumns, len(columns))
	}
	columns = number(slices.Clone(columns))
	n, err := keyColumns(columns, keys)
	if err != nil {
		return nil, err
	}
	return newSchema(columns, n)
}

// keyColumns returns the number of key columns, as the columns say or as given, and sets Key.
func keyColumns(columns []Column, given []int) (int, error) {
	n := 0
	for n < len(columns) && columns[n].Key {
		n++
	}
	if i := slices.IndexFunc(columns[n:], func(c Column) bool { return c.Key }); i >= 0 {
		return 0, schemaError("column %q is in the key, and a column before it is not: key columns come first", columns[n+i].Name)
	}
	if len(given) > 1 || len(given) == 1 && n > given[0] {
		return 0, schemaError("%d key columns, but numbers %v of key columns", n, given)
	}
	if len(given) == 1 {
		n = given[0]
	}
	if n < 1 || n > len(columns) {
		return 0, schemaError("a table has at least one key column: set its Key")
	}
	for i := range n {
		columns[i].Key = true
	}
	return n, nil
}

// newSchema is New for the caller's own slice of columns, of which the first keys form the key.
func newSchema(columns []Column, keys int) (*Schema, error) {
	s := &Schema{Columns: columns, Keys: keys, byName: make(map[string]int, len(columns)),
		byID: make(map[ColumnID]int, len(columns))}
	for i := range columns {
		c := &columns[i]
		if err := c.check(i < keys); err != nil {
			return nil, err
		}
		if _, twice := s.byName[c.Name]; twice {
			return nil, schemaError("column %q appears twice", c.Name)
		}
		if _, twice := s.byID[c.ID]; twice {
			return nil, schemaError("column %q: id %d appears twice", c.Name, c.ID)
		}
		s.byName[c.Name], s.byID[c.ID] = i, i
	}
	return s, nil
}

// number assigns the IDs 0 to n−1 to columns if all IDs are 0, and returns columns.
func number(columns []Column) []Column {
	for i := range columns {
		if columns[i].ID != 0 {
			return columns
		}
	}
	for i := range columns {
		columns[i].ID = ColumnID(i)
	}
	return columns
}

func schemaError(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, fault.ErrSchema)...)
}

// CheckName returns an error unless name is a valid name for a table or a column. Source: tablet
// spec §20.
func CheckName(name string) error {
	switch {
	case name == "":
		return schemaError("a name is empty")
	case len(name) > MaxNameBytes:
		return schemaError("name %.20q… is longer than %d bytes", name, MaxNameBytes)
	case !utf8.ValidString(name):
		return schemaError("name %q is not valid UTF-8", name)
	}
	for _, r := range name {
		if r == 0 {
			return schemaError("name %q contains a NUL", name)
		}
	}
	return nil
}

func (c *Column) check(key bool) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	fail := func(format string, args ...any) error {
		return schemaError("column %q: "+format, append([]any{c.Name}, args...)...)
	}
	switch {
	case c.AutoIncrement && c.Name != AutoIncrementName:
		return fail("an auto-incrementing column is named %q, as in Kudu", AutoIncrementName)
	case !c.AutoIncrement && c.Name == AutoIncrementName:
		return fail("the name %q is reserved for the auto-incrementing column", AutoIncrementName)
	case c.AutoIncrement && (!key || c.Type != Int64):
		return fail("an auto-incrementing column must be an int64 key column")
	case c.ID < 0:
		return fail("id %d is negative", c.ID)
	case !c.Type.Valid():
		return fail("unknown type %d", int32(c.Type))
	case key && c.Nullable:
		return fail("a key column cannot be nullable")
	case key && c.Immutable:
		return fail("a key column never changes and cannot be declared immutable")
	case key && c.Type == Array:
		return fail("an array cannot be in a key")
	case key && !c.Type.Keyable():
		return fail("type %s cannot be in a key", c.Type)
	case key && (c.Default != nil || c.ReadDefault != nil):
		return fail("a key column cannot have a default")
	case c.Type != Array && c.Element != 0:
		return fail("type %s has no elements", c.Type)
	case c.Type == Array && (!c.Element.Scalar() || c.Element.Width() > 8):
		return fail("arrays of %s are not supported", c.Element)
	case !c.Encoding.Allowed(c.Stored()):
		return fail("encoding %s does not fit type %s", c.Encoding, c.Stored())
	case !c.Compression.Valid():
		return fail("unknown compression %d", int32(c.Compression))
	case c.BlockBytes != 0 && (c.BlockBytes < minBlockBytes || c.BlockBytes > maxBlockBytes):
		return fail("block size %d is not 0 and not between %d and %d", c.BlockBytes, minBlockBytes, maxBlockBytes)
	case len(c.Comment) > maxCommentSize || !utf8.ValidString(c.Comment):
		return fail("the comment is longer than %d bytes or not valid UTF-8", maxCommentSize)
	case c.Stored() == Varchar && (c.Length < 1 || c.Length > MaxVarchar):
		return fail("varchar length %d, want 1 to %d characters", c.Length, MaxVarchar)
	case c.Default != nil && !c.Type.Variable() && len(c.Default) != c.Type.Width():
		return fail("the default has %d bytes, want %d", len(c.Default), c.Type.Width())
	case c.ReadDefault != nil && !c.Type.Variable() && len(c.ReadDefault) != c.Type.Width():
		return fail("the read default has %d bytes, want %d", len(c.ReadDefault), c.Type.Width())
	}
	if c.Type == Array {
		for _, d := range [][]byte{c.Default, c.ReadDefault} {
			if d != nil && CheckArray(c.Element, d) != nil {
				return fail("the default is not a valid %s cell", c.TypeName())
			}
		}
	}
	if t := c.Stored(); t.Decimal() {
		if c.Precision < 1 || c.Precision > MaxPrecision || c.Scale < 0 || c.Scale > c.Precision {
			return fail("decimal(%d,%d): want 1 ≤ precision ≤ %d and 0 ≤ scale ≤ precision", c.Precision,
				c.Scale, MaxPrecision)
		}
		if DecimalType(c.Precision) != t {
			return fail("decimal(%d,%d) is stored as %s, not %s", c.Precision, c.Scale, DecimalType(c.Precision), t)
		}
	}
	return nil
}

// Stored returns the type of the values in the column's files: the element type of an array column,
// Type of any other.
func (c *Column) Stored() Type {
	if c.Type == Array {
		return c.Element
	}
	return c.Type
}

// Elements returns the elements of an array column as a nullable column of the same name.
func (c *Column) Elements() Column {
	return Column{ID: c.ID, Name: c.Name, Type: c.Element, Nullable: true, Precision: c.Precision,
		Scale: c.Scale, Length: c.Length}
}

// Required reports whether every new row must set the column.
func (c *Column) Required() bool { return !c.Nullable && c.Default == nil && !c.AutoIncrement }

// Unset returns the cell of a new row that does not set the column: the default, or NULL without
// one. For a required or auto-incrementing column it returns a placeholder, which keeps the row
// well-formed until the row is refused or the value is assigned.
func (c *Column) Unset() []byte {
	if c.Required() || c.AutoIncrement {
		if c.Type == Array {
			return AppendArray([]byte{}, c.Element, nil)
		}
		return make([]byte, c.Type.Width())
	}
	return c.Default
}

// Index returns the index of the named column, or -1.
func (s *Schema) Index(name string) int {
	if i, ok := s.byName[name]; ok {
		return i
	}
	return -1
}

// IndexID returns the index of the column with the given ID, or -1.
func (s *Schema) IndexID(id ColumnID) int {
	if i, ok := s.byID[id]; ok {
		return i
	}
	return -1
}

// AutoIncrement returns the index of the auto-incrementing column, or -1.
func (s *Schema) AutoIncrement() int { return s.Index(AutoIncrementName) }

// SingleKey reports whether the key has one column, whose file then serves as the key index.
func (s *Schema) SingleKey() bool { return s.Keys == 1 }

// Names returns the names of the columns, in schema order.
func (s *Schema) Names() []string {
	names := make([]string, len(s.Columns))
	for i := range names {
		names[i] = s.Columns[i].Name
	}
	return names
}

// Project returns the indexes of the named columns. Errors: ErrNoColumn for an unknown name, with
// the nearest name.
func (s *Schema) Project(names []string) ([]int, error) {
	out := make([]int, len(names))
	for i, name := range names {
		if out[i] = s.Index(name); out[i] < 0 {
			return nil, fmt.Errorf("column %q: %w", name, s.NoColumn(name))
		}
	}
	return out, nil
}

// NoColumn returns the ErrNoColumn for a name that no column has. Its text suggests the nearest
// name.
func (s *Schema) NoColumn(name string) error { return nearest.Error(fault.ErrNoColumn, name, s.Names) }

// TypeName returns the type as schema files spell it: int64, decimal(15,2), varchar(20), timestamp,
// array(int32).
func (c *Column) TypeName() string {
	switch {
	case c.Type == Array:
		e := c.Elements()
		return arrayPrefix + e.TypeName() + ")"
	case c.Type.Decimal():
		return fmt.Sprintf("decimal(%d,%d)", c.Precision, c.Scale)
	case c.Type == Varchar:
		return fmt.Sprintf("varchar(%d)", c.Length)
	}
	return fileNames[c.Type]
}

// arrayPrefix precedes the element type in the name of an array type; a parenthesis closes it.
const arrayPrefix = "array("

// maxTypeName exceeds the length in bytes of every type name, such as array(varchar(65535)).
const maxTypeName = 64

var fileNames = map[Type]string{Bool: "bool", Int8: "int8", Int16: "int16", Int32: "int32", Int64: "int64",
	Uint8: "uint8", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64", Int128: "int128",
	Float: "float", Double: "double", String: "string", Binary: "binary", Date: "date", Timestamp: "timestamp"}

// ParseTypeName parses a type as schema files spell it into c's Type, Precision, Scale, Length and
// Element.
func (c *Column) ParseTypeName(s string) error {
	if len(s) > maxTypeName {
		return schemaError("unknown type %q…", s[:maxTypeName])
	}
	if inner, ok := strings.CutPrefix(s, arrayPrefix); ok {
		inner, ok = strings.CutSuffix(inner, ")")
		var e Column
		if !ok || e.ParseTypeName(inner) != nil || e.Type == Array || e.Type.Width() > 8 {
			return schemaError("type %q: the elements of an array cannot be arrays or decimals of more than 18 digits",
				s)
		}
		c.Type, c.Element, c.Precision, c.Scale, c.Length = Array, e.Type, e.Precision, e.Scale, e.Length
		return nil
	}
	var p, sc, n int
	var rest string
	if k, _ := fmt.Sscanf(s, "decimal(%d,%d)%s", &p, &sc, &rest); k == 2 && s == fmt.Sprintf("decimal(%d,%d)", p, sc) {
		if p < 1 || p > MaxPrecision {
			return schemaError("type %q: precision must be 1 to %d", s, MaxPrecision)
		}
		c.Type, c.Precision, c.Scale = DecimalType(p), p, sc
		return nil
	}
	if k, _ := fmt.Sscanf(s, "varchar(%d)%s", &n, &rest); k == 1 && s == fmt.Sprintf("varchar(%d)", n) {
		c.Type, c.Length = Varchar, n
		return nil
	}
	for t, name := range fileNames {
		if name == s {
			c.Type = t
			return nil
		}
	}
	return schemaError("unknown type %q%s", s, typeHint(s))
}

// typeNames are the names that hints suggest.
var typeNames = []string{"int64", "string", "double", "decimal(p,s)", "date", "timestamp", "bool", "binary",
	"int8", "int16", "int32", "int128",
	"uint8", "uint16", "uint32", "uint64", "float", "varchar(n)", "array(int64)"}

// otherNames maps the names of types in other systems to ours.
var otherNames = map[string]string{"int": "int64", "integer": "int64", "long": "int64", "bigint": "int64",
	"smallint": "int16", "tinyint": "int8",
	"text": "string", "str": "string", "char": "string", "blob": "binary", "bytes": "binary", "boolean": "bool",
	"real": "float", "numeric": "decimal(p,s)",
	"number": "decimal(p,s)", "datetime": "timestamp", "time": "timestamp"}

// typeHint suggests the type that an unknown name probably means.
func typeHint(s string) string {
	lower := strings.ToLower(s)
	if name, ok := otherNames[lower]; ok {
		return fmt.Sprintf("; did you mean %q?", name)
	}
	if name, _, found := strings.Cut(lower, "("); found || name == "decimal" || name == "varchar" {
		return map[string]string{"decimal": "; want decimal(p,s), for example decimal(15,2)",
			"varchar": "; want varchar(n), for example varchar(20)"}[name]
	}
	return nearest.Hint(s, typeNames)
}
