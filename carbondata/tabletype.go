package carbondata

import "github.com/oribi-db/oribi/schema"

// maxElementBytes is the width of the widest elements of fixed width that an array of a table has.
const maxElementBytes = 8

// TableType returns the column of a table that has the values of c, and whether there is one. It
// has no ID, and all but its name, type and the parameters of the type are zero, except that it is
// nullable.
//
//	BOOLEAN, BYTE, SHORT, INT, LONG  BOOL, INT8, INT16, INT32, INT64
//	FLOAT, DOUBLE                    FLOAT, DOUBLE
//	DECIMAL(p,s)                     DECIMAL32, DECIMAL64 or DECIMAL128, by its precision
//	DATE, TIMESTAMP                  DATE, UNIXTIME_MICROS
//	STRING, VARCHAR; BINARY          STRING; BINARY
//	ARRAY of one of these            NESTED, with the type as its element; not of DECIMAL with more
//	                                 than 18 digits
//
// STRUCT, MAP, and other arrays have no type of a table.
func (c Column) TableType() (schema.Column, bool) {
	t := schema.Column{Name: c.Name, Nullable: true}
	switch c.Type {
	case Boolean:
		t.Type = schema.Bool
	case Byte:
		t.Type = schema.Int8
	case Short:
		t.Type = schema.Int16
	case Int:
		t.Type = schema.Int32
	case Long:
		t.Type = schema.Int64
	case Float:
		t.Type = schema.Float
	case Double:
		t.Type = schema.Double
	case Decimal:
		t.Type, t.Precision, t.Scale = schema.DecimalType(c.Precision), c.Precision, c.Scale
	case Date:
		t.Type = schema.Date
	case Timestamp:
		t.Type = schema.Timestamp
	case String, Varchar:
		t.Type = schema.String
	case Binary:
		t.Type = schema.Binary
	case Array:
		if len(c.Children) != 1 {
			return schema.Column{}, false
		}
		e, ok := c.Children[0].TableType()
		if !ok || e.Type == schema.Array || e.Type.Width() > maxElementBytes {
			return schema.Column{}, false
		}
		t.Type, t.Element, t.Precision, t.Scale = schema.Array, e.Type, e.Precision, e.Scale
	default:
		return schema.Column{}, false
	}
	return t, true
}

// ColumnOf returns the column that holds all values of a table's column, and whether there is one.
// It has a name and a type. Writer.AppendBatch takes the values as a table's scan returns them.
//
//	BOOL, INT8, INT16, INT32, INT64  BOOLEAN, BYTE, SHORT, INT, LONG
//	UINT8, UINT16, UINT32            SHORT, INT, LONG
//	UINT64                           LONG, without the values that it does not hold
//	FLOAT, DOUBLE                    FLOAT, DOUBLE
//	DECIMAL                          DECIMAL
//	DATE, UNIXTIME_MICROS            DATE; TIMESTAMP, which has milliseconds
//	STRING, VARCHAR; BINARY          STRING; BINARY
//	NESTED                           ARRAY of the element's type
//
// INT128 has none.
func ColumnOf(t schema.Column) (Column, bool) {
	c := Column{Name: t.Name}
	switch t.Type {
	case schema.Bool:
		c.Type = Boolean
	case schema.Int8:
		c.Type = Byte
	case schema.Int16, schema.Uint8:
		c.Type = Short
	case schema.Int32, schema.Uint16:
		c.Type = Int
	case schema.Int64, schema.Uint32, schema.Uint64:
		c.Type = Long
	case schema.Float:
		c.Type = Float
	case schema.Double:
		c.Type = Double
	case schema.Decimal32, schema.Decimal64, schema.Decimal128:
		c.Type, c.Precision, c.Scale = Decimal, t.Precision, t.Scale
	case schema.Date:
		c.Type = Date
	case schema.Timestamp:
		c.Type = Timestamp
	case schema.String, schema.Varchar:
		c.Type = String
	case schema.Binary:
		c.Type = Binary
	case schema.Array:
		element, ok := ColumnOf(t.Elements())
		if !ok {
			return Column{}, false
		}
		element.Name = ""
		c.Type, c.Children = Array, []Column{element}
	default:
		return Column{}, false
	}
	return c, true
}
