package arrowio

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/oribi-db/oribi/schema"
)

// utc is the type of timestamp columns.
var utc = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// scalarTypes are the Arrow types of columns, by their type. Decimals have parameters.
var scalarTypes = map[schema.Type]arrow.DataType{
	schema.Bool: arrow.FixedWidthTypes.Boolean,
	schema.Int8: arrow.PrimitiveTypes.Int8, schema.Int16: arrow.PrimitiveTypes.Int16,
	schema.Int32: arrow.PrimitiveTypes.Int32, schema.Int64: arrow.PrimitiveTypes.Int64,
	schema.Uint8: arrow.PrimitiveTypes.Uint8, schema.Uint16: arrow.PrimitiveTypes.Uint16,
	schema.Uint32: arrow.PrimitiveTypes.Uint32, schema.Uint64: arrow.PrimitiveTypes.Uint64,
	schema.Float: arrow.PrimitiveTypes.Float32, schema.Double: arrow.PrimitiveTypes.Float64,
	schema.String: arrow.BinaryTypes.String, schema.Varchar: arrow.BinaryTypes.String,
	schema.Binary: arrow.BinaryTypes.Binary,
	schema.Date:   arrow.FixedWidthTypes.Date32, schema.Timestamp: utc,
}

// arrowType returns the Arrow type of a column. Errors: ErrUnsupported.
func arrowType(c *schema.Column) (arrow.DataType, error) {
	switch {
	case c.Type == schema.Array:
		e := c.Elements()
		t, err := arrowType(&e)
		if err != nil {
			return nil, err
		}
		return arrow.ListOf(t), nil
	case c.Type.Decimal():
		return &arrow.Decimal128Type{Precision: int32(c.Precision), Scale: int32(c.Scale)}, nil
	}
	if t, ok := scalarTypes[c.Type]; ok {
		return t, nil
	}
	return nil, fmt.Errorf("there is no such type for %s: %w", c.TypeName(), ErrUnsupported)
}

// setType sets the type of a column to the type that has each value of an Arrow type. Errors:
// ErrUnsupported if no type does.
//
//	Arrow                               column
//	null                                string, all NULL
//	time32, time64, duration            int64, in their unit
//	utf8, large_utf8, utf8_view         string
//	binary, …, fixed_size_binary        binary
//	decimal of more than 38 digits      decimal of 38 digits, for the values that have no more
//	dictionary, run_end_encoded         the type of the values
//	list, large_list, fixed_size_list,
//	list_view, large_list_view          array
//	extension                           the type of the storage
//	the others                          the same
func setType(c *schema.Column, t arrow.DataType) error {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return setType(c, t.StorageType())
	case *arrow.DictionaryType:
		if arrow.IsNested(t.ValueType.ID()) {
			break
		}
		return setType(c, t.ValueType)
	case arrow.DecimalType:
		return setDecimal(c, int(t.GetPrecision()), int(t.GetScale()))
	case *arrow.TimestampType:
		c.Type = schema.Timestamp
		return nil
	case *arrow.RunEndEncodedType:
		return setType(c, t.Encoded())
	case *arrow.MapType:
		return fmt.Errorf("a column cannot have the type %s: %w", t, ErrUnsupported)
	case arrow.ListLikeType:
		return setElements(c, t.Elem())
	}
	switch t.ID() {
	case arrow.NULL:
		c.Type = schema.String
	case arrow.TIME32, arrow.TIME64, arrow.DURATION:
		c.Type = schema.Int64
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		c.Type = schema.String
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY:
		c.Type = schema.Binary
	case arrow.DATE32, arrow.DATE64:
		c.Type = schema.Date
	case arrow.FLOAT16:
		c.Type = schema.Float
	default:
		for of, scalar := range scalarTypes {
			if of != schema.Varchar && scalar.ID() == t.ID() {
				c.Type = of
				return nil
			}
		}
		return fmt.Errorf("a column cannot have the type %s: %w", t, ErrUnsupported)
	}
	return nil
}

// noteOf returns what a user should know about the values of a field, "" for most.
func noteOf(t arrow.DataType) string {
	switch t := t.(type) {
	case arrow.ExtensionType:
		return noteOf(t.StorageType())
	case *arrow.DictionaryType:
		return noteOf(t.ValueType)
	case *arrow.RunEndEncodedType:
		return noteOf(t.Encoded())
	case arrow.ListLikeType:
		return noteOf(t.Elem())
	case *arrow.NullType:
		return noteNull
	case *arrow.Time32Type:
		return noteTime(unitNames[t.Unit])
	case *arrow.Time64Type:
		return noteTime(unitNames[t.Unit])
	case *arrow.DurationType:
		return noteDuration(unitNames[t.Unit])
	case arrow.DecimalType:
		return noteDecimal(int(t.GetPrecision()))
	}
	return ""
}

var unitNames = map[arrow.TimeUnit]string{arrow.Second: "seconds", arrow.Millisecond: "milliseconds",
	arrow.Microsecond: "microseconds", arrow.Nanosecond: "nanoseconds"}

// noteNull is the note of a column without a type, whose cells are all NULL.
const noteNull = "the column has no type and no values: it is read as strings"

func noteTime(unit string) string { return "a time of day is read as the " + unit + " since midnight" }

func noteDuration(unit string) string { return "a duration is read as its " + unit }

// noteDecimal returns the note of decimals of so many digits.
func noteDecimal(digits int) string {
	if digits <= schema.MaxPrecision {
		return ""
	}
	return fmt.Sprintf("decimals of %d digits are read as those of %d", digits, schema.MaxPrecision)
}

// setDecimal makes c a decimal column for unscaled integers of precision digits, of which scale are
// after the decimal point. A negative scale is a number of zeros before it. Where there are more
// digits than a column can have, it takes the values that have no more.
func setDecimal(c *schema.Column, precision, scale int) error {
	digits := max(precision, scale)
	if scale < 0 {
		digits, scale = precision-scale, 0
	}
	if precision < 1 || scale > schema.MaxPrecision {
		return fmt.Errorf("decimals of %d digits, %d of them after the point, limit %d: %w", digits, scale,
			schema.MaxPrecision, ErrUnsupported)
	}
	digits = min(digits, schema.MaxPrecision)
	c.Type, c.Precision, c.Scale = schema.DecimalType(digits), digits, scale
	return nil
}

// setElements makes c an array column with elements of an Arrow type.
func setElements(c *schema.Column, t arrow.DataType) error {
	var e schema.Column
	if err := setType(&e, t); err != nil {
		return fmt.Errorf("elements: %w", err)
	}
	if !e.Type.Scalar() || e.Type.Width() > 8 {
		return fmt.Errorf("arrays of %s are not supported: %w", e.TypeName(), ErrUnsupported)
	}
	c.Type, c.Element, c.Precision, c.Scale = schema.Array, e.Type, e.Precision, e.Scale
	return nil
}

// fieldOf returns the column for an Arrow field.
func fieldOf(f *arrow.Field) field {
	c := schema.Column{Name: f.Name, Nullable: f.Nullable || f.Type.ID() == arrow.NULL}
	err := setType(&c, f.Type)
	return field{c, noteOf(f.Type), err}
}

// sameCells reports whether two columns have the same cells: their types differ in the length of a
// varchar at most, which is a string without the limit.
func sameCells(a, b *schema.Column) bool {
	plain := func(t schema.Type) schema.Type {
		if t == schema.Varchar {
			return schema.String
		}
		return t
	}
	return plain(a.Type) == plain(b.Type) && plain(a.Element) == plain(b.Element) &&
		a.Precision == b.Precision && a.Scale == b.Scale
}
