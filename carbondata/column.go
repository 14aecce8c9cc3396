package carbondata

import (
	"fmt"
	"strings"
)

// Type is the type of a column. The numbers are those in files. Source: carbondata spec §5.
type Type int

// The types, with the Go type of their values; a null is nil.
const (
	String    Type = 0  // string; file format: never change
	Short     Type = 1  // int16; file format: never change
	Int       Type = 2  // int32; file format: never change
	Long      Type = 3  // int64; file format: never change
	Double    Type = 4  // float64; file format: never change
	Decimal   Type = 5  // batch.Int128, the unscaled integer; file format: never change
	Timestamp Type = 6  // Micros; file format: never change
	Date      Type = 7  // Days; file format: never change
	Boolean   Type = 8  // bool; file format: never change
	Array     Type = 20 // []any of elements; file format: never change
	Struct    Type = 21 // []any of fields, in order; file format: never change
	Varchar   Type = 22 // string; file format: never change
	Map       Type = 23 // []any of pairs, each an []any of key and value; file format: never change
	Float     Type = 24 // float32; file format: never change
	Byte      Type = 25 // int8; file format: never change
	Binary    Type = 26 // []byte; file format: never change
)

var typeNames = map[Type]string{String: "STRING", Short: "SHORT", Int: "INT", Long: "LONG", Double: "DOUBLE",
	Decimal: "DECIMAL", Timestamp: "TIMESTAMP",
	Date: "DATE", Boolean: "BOOLEAN", Array: "ARRAY", Struct: "STRUCT", Varchar: "VARCHAR", Map: "MAP", Float: "FLOAT",
	Byte: "BYTE", Binary: "BINARY"}

func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", int(t))
}

// Days is the value of a DATE: days since 1970-01-01 in the proleptic Gregorian calendar.
type Days int32

// Micros is the value of a TIMESTAMP: microseconds since 1970-01-01 UTC in the proleptic Gregorian
// calendar. Files store milliseconds.
type Micros int64

// Column is a column of a schema.
type Column struct {
	Name      string
	ID        string // a UUID in transactional tables, else the name
	Type      Type
	Precision int      // digits of a DECIMAL, 1 to 38
	Scale     int      // of these, digits after the point
	Sort      bool     // a sort column; the rows need not be sorted, see FileInfo.Sorted
	Ordinal   int      // position in the user's order
	Children  []Column // of ARRAY (one), STRUCT, and MAP (one STRUCT of key and value)
	Default   []byte   // as stored, see defaultValue; of a column that a file does not have

	dimension bool
	encoders  []encoding
	nested    bool    // a child of another column
	first     int     // index of its chunk in a blocklet; its children's chunks follow
	invisible bool    // dropped from the table
	stored    *Column // of a file: its column, if the table's has a wider type; see widen
}

// TypeName returns the type with its parameters, such as DECIMAL(12,3) or ARRAY<STRING>.
func (c Column) TypeName() string {
	children := make([]string, len(c.Children))
	for i, child := range c.Children {
		children[i] = child.TypeName()
		if c.Type == Struct {
			children[i] = child.Name + ":" + children[i]
		}
	}
	switch {
	case c.Type == Decimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", c.Precision, c.Scale)
	case c.Type == Map && len(c.Children) == 1 && len(c.Children[0].Children) == 2:
		pair := c.Children[0].Children
		return fmt.Sprintf("MAP<%s,%s>", pair[0].TypeName(), pair[1].TypeName())
	case len(children) > 0:
		return fmt.Sprintf("%v<%s>", c.Type, strings.Join(children, ","))
	}
	return c.Type.String()
}

const microsPerMilli = 1000
