package oribi

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/keyenc"
	"github.com/oribi-db/oribi/schema"
)

// IndexOption is an option of scans, counts, aggregates, and bulk calls: Using, NoIndex.
type IndexOption interface {
	CountOption
	RowsOption
	BulkOption
}

type indexUse func(*readOptions)

func (f indexUse) apply(o *readOptions) { f(o) }
func (f indexUse) bulk(o *bulkOptions)  { f(&o.read) }
func (indexUse) scan()                  {}
func (indexUse) rows()                  {}
func (indexUse) count()                 {}
func (indexUse) aggregate()             {}

// NoIndex makes a scan, a count, an aggregate, or a bulk call look through the table, whatever indexes there
// are. Of NoIndex and Using, the last one given counts.
func NoIndex() IndexOption { return indexUse(func(o *readOptions) { o.noIndex, o.using = true, "" }) }

// Using makes a scan, a count, an aggregate, or a bulk call find its rows by an index, whatever that costs.
// Without it, they use the index that leads to the fewest rows, if these are at most a thousandth of the rows
// of the table, or 16.
//
// The result is the same. To return rows in key order, a scan collects their keys in memory, some megabytes of
// them; if there are more, it goes through the entries of the index several times. With AnyOrder it does not.
//
// Errors of the read: ErrSchema if there is no such index, if it is not complete as of the read, or if no
// predicate of Where that must be true bounds its first column. A diff uses no index.
func Using(index string) IndexOption {
	return indexUse(func(o *readOptions) { o.noIndex, o.using = false, index })
}

// OrderBy makes a scan return rows in the order of an index: by the indexed columns, NULL first, and rows that
// are equal in them by their keys; with Desc in the reverse order. From, To, and Prefix select rows by their
// keys as before.
//
// The rows are read one by one, as the loop needs them, each in about the time of a Get. With Limit, or when
// the loop ends early, little more is read than it gets. A predicate that bounds the first columns of the index
// bounds what is read of it. Above and Below select a part of the order, as for a page of a list:
//
//	next := users.Scan(ctx, oribi.OrderBy("by_place"), oribi.Above(oribi.Key{"Paris", 17}), oribi.Limit(20))
//
// Errors of the read: ErrSchema if there is no such index, or if it is not complete as of the read; one for
// OrderBy with Workers, NoIndex, or another index in Using. Diff refuses it.
func OrderBy(index string) RowsOption { return rowsOption(func(o *readOptions) { o.orderBy = index }) }

// Above begins a scan after the rows that have the values of key in the columns of its order: those of the index
// of OrderBy, then those of the key; or those of the key alone. key has values of the first of these columns or
// of all: a single Go value, a Key, or a Row, whose other columns do not matter. NULL is nil. A page of a list
// begins above the last row of the page before it:
//
//	Above(Key{"Paris", 17})     after the row 17 of Paris, whether it exists or not
//	Above("Paris")              after all rows of Paris
//	Above(last)                 after a row that was read with all columns
//
// As From and To do, Above and Below select the same rows with Desc as without it.
func Above(key any) RowsOption { return rowsOption(func(o *readOptions) { o.above = key }) }

// Below ends a scan before the rows that have the values of key, which is given as in Above. With Desc and Limit
// it reads the page before a row, backward:
//
//	users.Scan(ctx, oribi.OrderBy("by_place"), oribi.Below(first), oribi.Desc(), oribi.Limit(20))
func Below(key any) RowsOption { return rowsOption(func(o *readOptions) { o.below = key }) }

// boundOrder narrows a scan in the order of an index by Above and Below.
func (t *Table) boundOrder(s *schema.Schema, x *tablet.IndexScan, o *readOptions) error {
	columns := orderColumns(s, x)
	for _, b := range []struct {
		key    any
		narrow func(tablet.Bound)
	}{{o.above, x.Above}, {o.below, x.Below}} {
		if b.key == nil {
			continue
		}
		values := orderValues(s, columns, b.key)
		if n := len(values); n == 0 || n > len(columns) {
			return fmt.Errorf("bound in the order of index %q: %w", x.Table.Index().Name,
				&RowError{Table: t.tab.Name(), Cause: fmt.Errorf("%d values, the order has %d columns", n, len(columns))})
		}
		bound := tablet.Bound{Keys: s.Keys}
		for i, value := range values {
			column := &s.Columns[columns[i]]
			cell, err := bind.Append(nil, column, value)
			if err == nil && cell == nil && !column.Nullable {
				err = bind.ErrNull
			}
			if err != nil {
				return fmt.Errorf("bound in the order of index %q: %w", x.Table.Index().Name,
					&RowError{Table: t.tab.Name(), Column: column.Name, Cause: err})
			}
			bound.Cells = append(bound.Cells, cell)
		}
		b.narrow(bound)
	}
	return nil
}

// orderColumns returns the columns of the order of an index.
func orderColumns(s *schema.Schema, x *tablet.IndexScan) []int {
	columns := append([]int(nil), x.Columns...)
	for i := range s.Keys {
		columns = append(columns, i)
	}
	return columns
}

// orderValues returns the values of the first ones of columns, or of all.
func orderValues(s *schema.Schema, columns []int, key any) (values []any) {
	switch k := key.(type) {
	case Key:
		return k
	case Row:
		for _, c := range columns {
			value, ok := k[s.Columns[c].Name]
			if !ok {
				break
			}
			values = append(values, value)
		}
		return values
	}
	return []any{key}
}

// keysBetween returns the bounds of keys that Above and Below select; nil = no bound.
func (t *Table) keysBetween(tableSchema *tablet.TableSchema, o *readOptions) (lower, upper []byte, err error) {
	encode := func(key any) (encoded []byte, whole bool, err error) {
		s := tableSchema.Schema
		if row, ok := key.(Row); ok {
			key = Key(orderValues(s, tableSchema.All[:s.Keys], row))
		}
		if encoded, err = t.appendKey(nil, tableSchema, key, false); err == nil {
			return encoded, true, nil
		}
		encoded, err = t.appendKey([]byte{}, tableSchema, key, true)
		return encoded, false, err
	}
	if o.above != nil {
		at, whole, err := encode(o.above)
		if err != nil {
			return nil, nil, err
		}
		if lower = keyenc.PrefixEnd(at); whole {
			lower = append(at, 0)
		}
		if lower == nil { // no key is above it
			return []byte{}, []byte{}, nil
		}
	}
	if o.below != nil {
		upper, _, err = encode(o.below)
	}
	return lower, upper, err
}

// errOrder is the error of a scan in the order of an index that cannot be.
var errOrder = fault.Reworded(fault.ErrSchema, "a scan in its order uses no other index, and is no diff")
