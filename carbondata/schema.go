package carbondata

import (
	"slices"
	"strings"

	"github.com/oribi-db/oribi/carbondata/internal/thrift"
	"github.com/oribi-db/oribi/internal/fault"
)

// ColumnSchema: a column in the header of a file, one message for each column and each child. The
// children of a column follow it, depth first. Source: carbondata spec §4.2.
//
//	ID  type    field             meaning
//	1   i32     data_type         see Type
//	2   binary  column_name       with the names of the parents before it: a.b
//	3   binary  column_id
//	4   bool    columnar          true
//	5   list    encoders          i32s: 5, 0 of a DATE that is not nested; 3 with an inverted index
//	6   bool    dimension         stored before all measures
//	7   i32     column_group_id   -1
//	8   i32     scale             of DECIMAL, else -1
//	9   i32     precision         of DECIMAL, else -1
//	10  i32     num_child
//	11  binary  aggregate         empty
//	12  binary  default_value
//	13  map     columnProperties  sort_columns: "true"
//	14  bool    invisible         dropped from the table
//	15  binary  reference_id      as column_id
//	16  i32     schemaOrdinal     position in the user's order; -1 for children
//
// Fields 4, 5, 7, 11, and 15 are not used in files. A STRING "a" that is a dimension, without the
// fields that are not required: 15 00 18 01 61 18 01 61 11 19 05 11 00
const (
	columnType       = 1  // file format: never change
	columnName       = 2  // file format: never change
	columnID         = 3  // file format: never change
	columnColumnar   = 4  // file format: never change
	columnEncoders   = 5  // file format: never change
	columnDimension  = 6  // file format: never change
	columnGroup      = 7  // file format: never change
	columnScale      = 8  // file format: never change
	columnPrecision  = 9  // file format: never change
	columnChildren   = 10 // file format: never change
	columnAggregate  = 11 // file format: never change
	columnDefault    = 12 // file format: never change
	columnProperties = 13 // file format: never change
	columnInvisible  = 14 // file format: never change
	columnReference  = 15 // file format: never change
	columnOrdinal    = 16 // file format: never change
)

// flatColumn is a column before the children are moved into their parents.
type flatColumn struct {
	Column
	children int
}

func readColumn(r *thrift.Reader) (c flatColumn) {
	c.Scale, c.Precision = -1, -1
	r.Fields("ColumnSchema", func(id int, typ byte) {
		switch id {
		case columnType:
			c.Type = Type(r.I32(typ))
		case columnName:
			c.Name = r.Text(typ)
		case columnID:
			c.ID = r.Text(typ)
		case columnEncoders:
			c.encoders = readEncodings(r, typ)
		case columnDimension:
			c.dimension = r.Bool(typ)
		case columnScale:
			c.Scale = r.I32(typ)
		case columnPrecision:
			c.Precision = r.I32(typ)
		case columnChildren:
			c.children = r.I32(typ)
		case columnDefault:
			c.Default = slices.Clone(r.Bytes(typ))
		case columnProperties:
			c.Sort = strings.EqualFold(r.Properties(typ)["sort_columns"], "true")
		case columnInvisible:
			c.invisible = r.Bool(typ)
		case columnOrdinal:
			c.Ordinal = r.I32(typ)
		default:
			r.Skip(typ)
		}
	}, columnType, columnName, columnID, columnDimension)
	return c
}

// readColumns reads a list of columns, children included. There are no more than memory for a
// header of this size allows.
func readColumns(r *thrift.Reader, typ byte) (flat []flatColumn) {
	const columnBytes = 4000 // with the buffers that a scan has for each column
	most := memoryFor(int64(len(r.In))) / columnBytes
	r.List(typ, func(typ byte) {
		if r.Want(typ, thrift.Struct) && fewer(r, len(flat), most, "columns") {
			flat = append(flat, readColumn(r))
		}
	})
	return flat
}

const maxPrecision = 38

// check reports what is wrong with a column, without regard to others.
func (c flatColumn) check() error {
	_, known := typeNames[c.Type]
	switch {
	case !known:
		return fault.Unsupportedf("column %q: type %d", c.Name, int(c.Type))
	case c.Type == Decimal && (c.Precision < 1 || c.Precision > maxPrecision || c.Scale < 0 || c.Scale > c.Precision):
		return fault.Corruptf("column %q: DECIMAL(%d,%d)", c.Name, c.Precision, c.Scale)
	case c.children < 0,
		c.Type == Struct && c.children == 0,
		(c.Type == Array || c.Type == Map) && c.children != 1,
		c.Type != Struct && c.Type != Array && c.Type != Map && c.children != 0:
		return fault.Corruptf("column %q: %v with %d children", c.Name, c.Type, c.children)
	}
	return nil
}

// columnTree returns the columns with their children, in the order of the file, and how many chunks
// of dimensions a blocklet has: the chunks of all leading columns with this flag.
func columnTree(flat []flatColumn) (columns []Column, dimensions int, err error) {
	names := map[string]bool{}
	for i := 0; i < len(flat); {
		c, next, err := subtree(flat, i, 0)
		if err != nil {
			return nil, 0, err
		}
		if names[c.Name] && !c.invisible {
			return nil, 0, fault.Corruptf("two columns %q", c.Name)
		}
		names[c.Name] = names[c.Name] || !c.invisible
		if c.dimension && dimensions == i {
			dimensions = next
		}
		columns = append(columns, c)
		i = next
	}
	return columns, dimensions, nil
}

// subtree returns column i with its children, and the index after them.
func subtree(flat []flatColumn, i, depth int) (c Column, next int, err error) {
	if depth > thrift.MaxDepth {
		return c, 0, fault.Unsupportedf("column %q: more than %d levels of nesting", flat[i].Name, thrift.MaxDepth)
	}
	if err := flat[i].check(); err != nil {
		return c, 0, err
	}
	c = flat[i].Column
	c.first, c.nested = i, depth > 0
	next = i + 1
	for range flat[i].children {
		if next >= len(flat) {
			return c, 0,
				fault.Corruptf("column %q: fewer columns follow than its %d children", c.Name, flat[i].children)
		}
		var child Column
		if child, next, err = subtree(flat, next, depth+1); err != nil {
			return c, 0, err
		}
		child.Name = strings.TrimPrefix(child.Name, flat[i].Name+".")
		c.Children = append(c.Children, child)
	}
	if c.Type == Map && (c.Children[0].Type != Struct || len(c.Children[0].Children) != 2) {
		return c, 0, fault.Corruptf("column %q: a MAP without key and value", c.Name)
	}
	return c, next, nil
}

// userOrder returns the columns in the user's order.
func userOrder(columns []Column) []Column {
	columns = slices.Clone(columns)
	slices.SortStableFunc(columns, func(a, b Column) int { return a.Ordinal - b.Ordinal })
	return columns
}
