package oribi

import (
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/schema"
)

// AggregateResult is the result of Table.Aggregate.
type AggregateResult struct {
	// Columns describe the values: the columns of GroupBy, then one for each aggregate, named as in
	// SQL: count, sum(price).
	Columns []schema.Column
	// Groups are in ascending order of their keys, with NULL after all other values, and NaN after
	// all numbers. Arrays are in the order of their bytes. Without GroupBy, there is one group,
	// even if there are no rows. With Top, there are only some groups, in another order.
	Groups []Group
	// Total is the number of all groups, also of those that Top leaves out.
	Total int64
}

// Group is one group of rows, and the values of the aggregates.
type Group struct {
	Key    []any   // the values of the columns of GroupBy, as in Row
	Values []Value // of the aggregates, in their order
}

// Batch returns the result as a record batch with one row for each group.
func (r *AggregateResult) Batch() (*batch.RecordBatch, error) {
	b := batch.New(r.Columns, len(r.Groups))
	var buf []byte
	for i, g := range r.Groups {
		for k := range r.Columns {
			v := any(nil)
			if k < len(g.Key) {
				v = g.Key[k]
			} else {
				v = g.Values[k-len(g.Key)].v
			}
			cell, err := bind.Append(buf[:0], &r.Columns[k], v)
			if err != nil {
				return nil, callErr("column "+r.Columns[k].Name, err)
			}
			b.Columns[k].SetCell(i, cell)
		}
	}
	return b, nil
}

// Value is the value of an aggregate, or NULL: an int64 for a count; an Int128, a Decimal, or a
// float64 for a sum; a Decimal or a float64 for an average; a value as in Row for a minimum or a
// maximum.
type Value struct{ v any }

var errNull = errors.New("the value is NULL")

// IsNull reports whether v is NULL.
func (v Value) IsNull() bool { return v.v == nil }

// Any returns the value, nil for NULL.
func (v Value) Any() any { return v.v }

// String returns the value as fmt.Print formats it, NULL for NULL.
func (v Value) String() string {
	if v.v == nil {
		return "NULL"
	}
	return fmt.Sprint(v.v)
}

// Int128 returns a value that is an integer. Errors: NULL, and any other value.
func (v Value) Int128() (Int128, error) {
	if i, ok := bind.Integer(v.v); ok {
		return i, nil
	}
	return Int128{}, v.not("an integer")
}

// Int64 returns a value that is an integer. Errors: ErrOverflow if it does not fit; NULL, and any
// value that is not an integer.
func (v Value) Int64() (int64, error) {
	i, err := v.Int128()
	if err == nil && i != batch.Int128Of(int64(i.Lo)) {
		err = fmt.Errorf("oribi: %v as int64: %w", i, fault.ErrOverflow)
	}
	return int64(i.Lo), err
}

// Decimal returns a value that is a decimal or an integer. Errors: NULL, and any other value.
func (v Value) Decimal() (Decimal, error) {
	if d, ok := v.v.(Decimal); ok {
		return d, nil
	}
	if i, ok := bind.Integer(v.v); ok {
		return Decimal{Unscaled: i}, nil
	}
	return Decimal{}, v.not("a decimal")
}

// Float64 returns the float64 that is nearest to a value that is a number. Errors: NULL, and any
// other value.
func (v Value) Float64() (float64, error) {
	switch x := v.v.(type) {
	case float64:
		return x, nil
	case float32:
		return float64(x), nil
	}
	d, err := v.Decimal()
	if err != nil {
		return 0, v.not("a number")
	}
	return bind.Float(d), nil
}

// not returns the error for a value that is not what was asked for.
func (v Value) not(what string) error {
	if v.v == nil {
		return callErr("", errNull)
	}
	return fmt.Errorf("oribi: the value, a %T, is not %s", v.v, what)
}
