package arrowio

import (
	"fmt"

	"github.com/apache/arrow-go/v18/parquet"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// parquetNode returns the Parquet field of a column, or of the elements of an array if rep says so.
//
//	column                   physical type           annotation
//	bool                     BOOLEAN
//	int8, int16, uint8 …     INT32                   INT(8, true) …
//	int32, int64             INT32, INT64
//	uint64                   INT64                   INT(64, false)
//	float, double            FLOAT, DOUBLE
//	decimal, up to 9 digits  INT32                   DECIMAL
//	up to 18 digits          INT64                   DECIMAL
//	more digits              FIXED_LEN_BYTE_ARRAY    DECIMAL
//	string, varchar          BYTE_ARRAY              STRING
//	binary                   BYTE_ARRAY
//	date                     INT32                   DATE
//	timestamp                INT64                   TIMESTAMP(UTC, MICROS)
//	array                    optional elements       LIST, three levels
func parquetNode(c *schema.Column, rep parquet.Repetition) (pq.Node, error) {
	if c.Type == schema.Array {
		e := c.Elements()
		element, err := parquetNode(&e, parquet.Repetitions.Optional)
		if err != nil {
			return nil, err
		}
		return pq.ListOfWithName(c.Name, element, rep, -1)
	}
	logical, physical, length := pq.LogicalType(pq.NoLogicalType{}), parquet.Types.Int32, 0
	switch c.Type {
	case schema.Bool:
		physical = parquet.Types.Boolean
	case schema.Int8, schema.Int16:
		logical = pq.NewIntLogicalType(int8(8*c.Type.Width()), true)
	case schema.Int32:
	case schema.Uint8, schema.Uint16, schema.Uint32:
		logical = pq.NewIntLogicalType(int8(8*c.Type.Width()), false)
	case schema.Int64:
		physical = parquet.Types.Int64
	case schema.Uint64:
		logical, physical = pq.NewIntLogicalType(64, false), parquet.Types.Int64
	case schema.Float:
		physical = parquet.Types.Float
	case schema.Double:
		physical = parquet.Types.Double
	case schema.String, schema.Varchar:
		logical, physical = pq.StringLogicalType{}, parquet.Types.ByteArray
	case schema.Binary:
		physical = parquet.Types.ByteArray
	case schema.Date:
		logical = pq.DateLogicalType{}
	case schema.Timestamp:
		logical, physical = pq.NewTimestampLogicalType(true, pq.TimeUnitMicros), parquet.Types.Int64
	case schema.Decimal32:
		logical = pq.NewDecimalLogicalType(int32(c.Precision), int32(c.Scale))
	case schema.Decimal64:
		logical, physical = pq.NewDecimalLogicalType(int32(c.Precision), int32(c.Scale)), parquet.Types.Int64
	case schema.Decimal128:
		logical, physical, length = pq.NewDecimalLogicalType(int32(c.Precision), int32(c.Scale)),
			parquet.Types.FixedLenByteArray, decimalBytes(c.Precision)
	default:
		return nil, fmt.Errorf("Parquet has no type for %s: %w", c.TypeName(), ErrUnsupported)
	}
	return pq.NewPrimitiveNodeLogical(c.Name, rep, logical, physical, length, -1)
}

// decimalBytes returns the bytes of the shortest two's complement integer for all decimals of so
// many digits.
func decimalBytes(precision int) int {
	most, _ := batch.Pow10(precision).Add(batch.Int128Of(-1))
	n := 1
	for limit := batch.Int128Of(127); most.Cmp(limit) > 0; n++ {
		limit, _ = limit.Mul(batch.Int128Of(256))
		if limit == (batch.Int128{}) { // above all integers of 128 bits
			return 16
		}
		limit, _ = limit.Add(batch.Int128Of(255))
	}
	return n
}

// leaf is the Parquet column with the cells of a top-level field. If the field is a list, it has
// the elements.
type leaf struct {
	index    int // among the leaves of the file
	node     *pq.PrimitiveNode
	list     bool
	nullable bool  // the field may be NULL
	elements bool  // elements may be NULL
	most     int16 // the definition level of a value
}

// leavesOf returns the fields of a Parquet schema with their leaves.
func leavesOf(s *parquetSchema) (fields []field, leaves []leaf) {
	for _, f := range s.fields {
		l, err := leafOf(f.node)
		c := schema.Column{Name: f.node.Name(), Nullable: l.nullable}
		note := ""
		if err == nil {
			at := f
			for at.leaf == nil {
				at = at.children[0]
			}
			if note = at.note; note == "" {
				note = noteOfLeaf(l.node)
			}
			if l.index, err = at.leaf.index, at.err; err == nil {
				err = setParquetType(&c, &l)
			}
		}
		fields, leaves = append(fields, field{c, note, err}), append(leaves, l)
	}
	return fields, leaves
}

// leafOf returns the leaf of a field. Errors: ErrUnsupported for a group that is no list of single
// values.
func leafOf(node pq.Node) (leaf, error) {
	optional := func(n pq.Node) bool { return n.RepetitionType() == parquet.Repetitions.Optional }
	repeated := func(n pq.Node) bool { return n.RepetitionType() == parquet.Repetitions.Repeated }
	if p, ok := node.(*pq.PrimitiveNode); ok {
		l := leaf{node: p, nullable: optional(p), list: repeated(p)}
		if l.nullable || l.list {
			l.most = 1
		}
		return l, nil
	}
	group := node.(*pq.GroupNode)
	_, list := group.LogicalType().(pq.ListLogicalType)
	if !list && group.ConvertedType() != pq.ConvertedTypes.List {
		return leaf{}, fmt.Errorf("a column cannot have the type %s: %w", groupKind(group), ErrUnsupported)
	}
	nested := fmt.Errorf("a column cannot have lists of groups: %w", ErrUnsupported)
	if repeated(group) || group.NumFields() != 1 || !repeated(group.Field(0)) {
		return leaf{}, nested
	}
	l := leaf{list: true, nullable: optional(group), most: 1}
	if l.nullable {
		l.most++
	}
	inner := group.Field(0)
	if g, ok := inner.(*pq.GroupNode); ok {
		if g.NumFields() != 1 || g.Name() == "array" || g.Name() == group.Name()+"_tuple" {
			return leaf{}, nested
		}
		inner = g.Field(0)
		if repeated(inner) {
			return leaf{}, nested
		}
		if l.elements = optional(inner); l.elements {
			l.most++
		}
	}
	p, ok := inner.(*pq.PrimitiveNode)
	if !ok {
		return leaf{}, nested
	}
	l.node = p
	return l, nil
}

func groupKind(g *pq.GroupNode) string {
	switch g.LogicalType().(type) {
	case pq.MapLogicalType:
		return "MAP"
	case pq.NoLogicalType, nil:
		return "STRUCT"
	}
	return g.LogicalType().String()
}

// setParquetType sets the type of a column to the type that represents each value of a leaf.
// Errors: ErrUnsupported if no type does.
func setParquetType(c *schema.Column, l *leaf) error {
	var e schema.Column
	if err := setLeafType(&e, l.node); err != nil {
		return err
	}
	if !l.list {
		c.Type, c.Precision, c.Scale = e.Type, e.Precision, e.Scale
		return nil
	}
	if e.Type.Width() > 8 {
		return fmt.Errorf("arrays of %s are not supported: %w", e.TypeName(), ErrUnsupported)
	}
	c.Type, c.Element, c.Precision, c.Scale = schema.Array, e.Type, e.Precision, e.Scale
	return nil
}

// noteOfLeaf returns what a user should know about the values of a leaf, "" for most.
func noteOfLeaf(n *pq.PrimitiveNode) string {
	switch t := n.LogicalType().(type) {
	case pq.NullLogicalType:
		return noteNull
	case pq.TimeLogicalType:
		return noteTime(map[pq.TimeUnitType]string{pq.TimeUnitMillis: "milliseconds", pq.TimeUnitMicros: "microseconds",
			pq.TimeUnitNanos: "nanoseconds"}[t.TimeUnit()])
	case pq.DecimalLogicalType:
		return noteDecimal(int(t.Precision()))
	}
	return ""
}

// plainTypes are the types of leaves without annotation.
var plainTypes = map[parquet.Type]schema.Type{
	parquet.Types.Boolean: schema.Bool, parquet.Types.Int32: schema.Int32, parquet.Types.Int64: schema.Int64,
	parquet.Types.Int96: schema.Timestamp,
	parquet.Types.Float: schema.Float, parquet.Types.Double: schema.Double, parquet.Types.ByteArray: schema.Binary,
	parquet.Types.FixedLenByteArray: schema.Binary,
}

// integerTypes are the types of leaves that are annotated as integers, by their width and sign.
var integerTypes = map[bool]map[int8]schema.Type{
	true:  {8: schema.Int8, 16: schema.Int16, 32: schema.Int32, 64: schema.Int64},
	false: {8: schema.Uint8, 16: schema.Uint16, 32: schema.Uint32, 64: schema.Uint64},
}

func setLeafType(c *schema.Column, n *pq.PrimitiveNode) error {
	physical := n.PhysicalType()
	plain, ok := plainTypes[physical]
	if !ok {
		return fmt.Errorf("a column cannot have the type %s: %w", physical, ErrUnsupported)
	}
	switch t := n.LogicalType().(type) {
	case pq.NoLogicalType, pq.UnknownLogicalType, nil:
		c.Type = plain
		return nil
	case pq.NullLogicalType:
		c.Type = schema.String
		return nil
	case pq.TimeLogicalType:
		c.Type = schema.Int64
		return nil
	case pq.StringLogicalType, pq.JSONLogicalType, pq.EnumLogicalType:
		c.Type = schema.String
	case pq.BSONLogicalType, pq.UUIDLogicalType:
		c.Type = schema.Binary
	case pq.DateLogicalType:
		c.Type = schema.Date
	case pq.TimestampLogicalType:
		c.Type = schema.Timestamp
	case pq.Float16LogicalType:
		c.Type = schema.Float
	case pq.DecimalLogicalType:
		if physical == parquet.Types.Float || physical == parquet.Types.Double {
			break
		}
		return setDecimal(c, int(t.Precision()), int(t.Scale()))
	case pq.IntLogicalType:
		c.Type = integerTypes[t.IsSigned()][t.BitWidth()]
	default:
		return fmt.Errorf("a column cannot have the type %s: %w", t, ErrUnsupported)
	}
	if !applicable(c.Type, n) {
		return fmt.Errorf("%s with values of type %s: %w", n.LogicalType(), physical, ErrUnsupported)
	}
	return nil
}

// applicable reports whether a leaf can have the values of a type.
func applicable(t schema.Type, n *pq.PrimitiveNode) bool {
	switch n.PhysicalType() {
	case parquet.Types.Int32:
		return t == schema.Date || t == schema.Int8 || t == schema.Int16 || t == schema.Int32 || t == schema.Uint8 ||
			t == schema.Uint16 || t == schema.Uint32
	case parquet.Types.Int64:
		return t == schema.Timestamp || t == schema.Int64 || t == schema.Uint64
	case parquet.Types.ByteArray:
		return t == schema.String || t == schema.Binary
	case parquet.Types.FixedLenByteArray:
		return t == schema.Binary || t == schema.Float && n.TypeLength() == 2
	}
	return false
}
