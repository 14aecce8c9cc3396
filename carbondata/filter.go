package carbondata

// Filter selects rows. The zero Filter selects every row.
//
// A comparison with NULL is neither true nor false, as in SQL: it selects no row, and neither does
// its negation. NotNull and IsNull are always true or false. A VARCHAR of length 0 is NULL for
// them, since files do not distinguish these, and an empty string for comparisons.
//
// A value has a Go type of its column's values, see Type; every column of integers, DATE,
// TIMESTAMP, and DECIMAL (unscaled) also takes Go's integers, FLOAT and DOUBLE each other's values
// and integers, BINARY and strings each other's. For FLOAT it is rounded to a float32. Strings
// compare by unsigned bytes, false is less than true, -0 equals 0, and a comparison with NaN is
// false, except for Ne. STRUCT, MAP, and ARRAY are tested for NULL only.
//
// Names and values are checked when a scan begins. A Filter is immutable.
type Filter struct {
	op       operator
	column   string
	values   []any // of a test
	children []Filter
}

// operator is the operator of a node of a filter: a connective or a test of one column.
type operator uint8

const (
	opAnd operator = iota // true without children
	opOr                  // false without children
	opNot                 // has one child
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opIn
	opIsNull
	opNotNull
	opHasPrefix
	opLike
)

// Eq selects the rows in which the column is equal to v.
func Eq(column string, v any) Filter { return test(opEq, column, v) }

// Ne selects the rows in which the column is not NULL and not equal to v.
func Ne(column string, v any) Filter { return test(opNe, column, v) }

// Lt selects the rows in which the column is less than v.
func Lt(column string, v any) Filter { return test(opLt, column, v) }

// Le selects the rows in which the column is less than or equal to v.
func Le(column string, v any) Filter { return test(opLe, column, v) }

// Gt selects the rows in which the column is greater than v.
func Gt(column string, v any) Filter { return test(opGt, column, v) }

// Ge selects the rows in which the column is greater than or equal to v.
func Ge(column string, v any) Filter { return test(opGe, column, v) }

// In selects the rows in which the column is equal to one of the values; none without values.
func In(column string, values ...any) Filter { return test(opIn, column, values...) }

// IsNull selects the rows in which the column is NULL.
func IsNull(column string) Filter { return test(opIsNull, column) }

// NotNull selects the rows in which the column is not NULL.
func NotNull(column string) Filter { return test(opNotNull, column) }

// HasPrefix selects the rows in which the column, a STRING, VARCHAR or BINARY, begins with prefix.
func HasPrefix(column, prefix string) Filter { return test(opHasPrefix, column, prefix) }

// Like selects the rows in which the column, a STRING, VARCHAR or BINARY, consists of the parts in
// their order, with any text between two of them: Like("c", "", "x", "") selects those that contain
// x. It takes at least two parts.
func Like(column string, parts ...string) Filter {
	f := Filter{op: opLike, column: column}
	for _, part := range parts {
		f.values = append(f.values, part)
	}
	return f
}

// And selects the rows that all filters select; every row without filters.
func And(filters ...Filter) Filter { return Filter{op: opAnd, children: filters} }

// Or selects the rows that at least one of the filters selects; none without filters.
func Or(filters ...Filter) Filter { return Filter{op: opOr, children: filters} }

// Not selects the rows for which f is false, not those for which it is unknown because of a NULL.
func Not(f Filter) Filter { return Filter{op: opNot, children: []Filter{f}} }

func test(op operator, column string, values ...any) Filter {
	return Filter{op: op, column: column, values: values}
}

// all reports whether f selects every row without a look at it.
func (f Filter) all() bool { return f.op == opAnd && len(f.children) == 0 }
