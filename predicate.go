package oribi

import (
	"fmt"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/where"
	"github.com/oribi-db/oribi/schema"
)

// Predicate is a condition on the columns of a row, for Where, Batch.If, Batch.UpdateIf, and
// Batch.DeleteIf. Eq, Gt, In, And, and the other functions below return predicates. A predicate
// names columns but no table. It can be used with any number of tables and by several goroutines at
// once.
//
// Values are Go values as in Row, or a Cell. The column must be able to represent them; the value
// for a date column is a time at midnight. A value that does not fit, or that is nil, is ErrSchema
// when the read begins; a column that the table does not have is ErrNoColumn.
//
// NULL is treated as in SQL: a comparison with a NULL is neither true nor false, and neither is Not
// of it. Where keeps only rows for which the predicate is true. Floats compare as numbers: −0
// equals +0, and a NaN is not equal to, below, or above any value. Arrays can be tested with IsNull
// and NotNull only.
//
// The zero Predicate is true for every row.
type Predicate struct{ p bind.Predicate }

func newPredicate(kind bind.Kind, column string, values ...any) Predicate {
	return Predicate{bind.NewPredicate(kind, column, values...)}
}

// Eq returns a predicate that is true if the column equals value.
func Eq(column string, value any) Predicate { return newPredicate(bind.Eq, column, value) }

// Ne returns a predicate that is true if the column is not NULL and does not equal value.
func Ne(column string, value any) Predicate { return newPredicate(bind.Ne, column, value) }

// Lt returns a predicate that is true if the column is less than value.
func Lt(column string, value any) Predicate { return newPredicate(bind.Lt, column, value) }

// Le returns a predicate that is true if the column is less than or equal to value.
func Le(column string, value any) Predicate { return newPredicate(bind.Le, column, value) }

// Gt returns a predicate that is true if the column is greater than value.
func Gt(column string, value any) Predicate { return newPredicate(bind.Gt, column, value) }

// Ge returns a predicate that is true if the column is greater than or equal to value.
func Ge(column string, value any) Predicate { return newPredicate(bind.Ge, column, value) }

// In returns a predicate that is true if the column equals one of the values. Without values, it is
// true for no row.
func In[T any](column string, values ...T) Predicate {
	list := make([]any, len(values))
	for i, v := range values {
		list[i] = v
	}
	return newPredicate(bind.In, column, list...)
}

// Between returns a predicate that is true if the column is at least low and at most high.
func Between(column string, low, high any) Predicate {
	return newPredicate(bind.Between, column, low, high)
}

// HasPrefix returns a predicate that is true if the column, a string or binary, begins with prefix,
// a string or []byte.
func HasPrefix(column string, prefix any) Predicate { return newPredicate(bind.Prefix, column, prefix) }

// HasSuffix returns a predicate that is true if the column, a string or binary, ends with suffix, a
// string or []byte.
func HasSuffix(column string, suffix any) Predicate {
	return newPredicate(bind.Like, column, "", suffix)
}

// Contains returns a predicate that is true if the column, a string or binary, contains part, a
// string or []byte.
func Contains(column string, part any) Predicate {
	return newPredicate(bind.Like, column, "", part, "")
}

// IsNull returns a predicate that is true if the column is NULL.
func IsNull(column string) Predicate { return newPredicate(bind.Null, column) }

// NotNull returns a predicate that is true if the column is not NULL.
func NotNull(column string) Predicate { return newPredicate(bind.NotNull, column) }

// InBloom returns a predicate that is true if the column's value was added to a Bloom filter. It is
// also true for some values that were not added, the false positives. It is never true for NULL.
// Values are added to the filter as BloomBytes returns them. The filter must not be modified
// afterwards.
//
// Table.Scan, TableOf.Scan, and ScanAs test fewer rows while a filter excludes little: after each
// sample of 4096 tested rows of which more than 90 % pass, all rows with a value pass without a
// test, except in every 16th batch, which is the next sample. So no row of a value in the filter is
// ever missing, but there are more false positives than the filter has by itself. Which ones
// depends on how the rows are stored, and two scans of the same state may return different ones. To
// get the same rows each time, test the rows of the result again: filter.Test(bytes).
//
// All else tests each row and gives exactly the filter's own answers: Not(InBloom(…)), which is
// true for values that certainly were not added, but not for false positives; Count and Aggregate;
// and the predicates of changes and conditions.
func InBloom(column string, filter *bloom.BloomFilter) Predicate {
	return Predicate{bind.Predicate{Kind: bind.InBloom, Column: column, Bloom: filter}}
}

// BloomBytes returns the bytes that InBloom looks up for a value of a column. The type of the
// column determines them:
//
//	bool                       1 byte, 0 or 1
//	integers                   little-endian, in the width of the column's type
//	float, double              IEEE 754, little-endian; −0 as +0
//	decimal(p,s)               the unscaled integer, little-endian: 4 bytes for p up to 9, 8 up to 18, 16 above
//	date                       days since 1970-01-01, 4 bytes, little-endian
//	timestamp                  microseconds since 1970-01-01, 8 bytes, little-endian
//	string, varchar, binary    the bytes
//
// They are also the cells of batches and of GetCells, so a filter can be filled from the result of
// another scan: filter.Add(vector.Cell(i)). A filter for a column serves all columns of the same
// type; for decimals, of the same scale, too.
//
// Errors: ErrSchema for a value that does not fit the column, for nil, and for arrays.
func BloomBytes(column *schema.Column, value any) ([]byte, error) {
	cell, err := bind.BloomCell(column, value)
	if err != nil {
		return nil, fmt.Errorf("oribi: column %q: %w: %w", column.Name, err, fault.ErrSchema)
	}
	return cell, nil
}

// And returns a predicate that is true if all predicates are true. Without predicates, it is true
// for every row.
func And(predicates ...Predicate) Predicate { return join(bind.And, predicates) }

// Or returns a predicate that is true if at least one of the predicates is true. Without
// predicates, it is true for no row.
func Or(predicates ...Predicate) Predicate { return join(bind.Or, predicates) }

// Not returns a predicate that is true if p is false. If p is neither true nor false, because of a
// NULL, neither is Not.
func Not(p Predicate) Predicate { return join(bind.Not, []Predicate{p}) }

func join(kind bind.Kind, predicates []Predicate) Predicate {
	children := make([]bind.Predicate, len(predicates))
	for i := range predicates {
		children[i] = predicates[i].p
	}
	return Predicate{bind.Predicate{Kind: kind, Children: children}}
}

// ParsePredicate returns the predicate that an expression about columns describes, such as
//
//	size > 100 and (mode = '100644' or path like 'docs/%' or path like '%.md')
//
// It is the syntax of the command's flag --where, which docs/command.md describes. Errors name the
// column or the byte, counted from 1.
func ParsePredicate(columns []schema.Column, expression string) (Predicate, error) {
	e, err := where.Parse(columns, expression)
	if err != nil {
		return Predicate{}, fmt.Errorf("oribi: expression: %w", err)
	}
	return Predicate{bind.OfExpression(e)}, nil
}

// filter resolves the columns of predicates in a schema and returns a filter for their conjunction.
// The filter may have more false positives than InBloom has by itself if mayRest is set.
func (t *Table) filter(s *schema.Schema, predicates []Predicate, mayRest bool) (batch.Filter, error) {
	if len(predicates) == 0 {
		return batch.Filter{}, nil
	}
	all := And(predicates...)
	f, err := all.p.Bind(s, mayRest)
	if err != nil {
		return batch.Filter{}, fmt.Errorf("oribi: table %q: %w", t.tab.Name(), err)
	}
	return f, nil
}

// Bind returns p as the filter of a scan of rows with schema s, for the packages below this one,
// such as kudu. Errors: ErrNoColumn, ErrSchema.
func (p Predicate) Bind(s *schema.Schema) (batch.Filter, error) {
	f, err := p.p.Bind(s, false)
	if err != nil {
		return f, fmt.Errorf("oribi: %w", err)
	}
	return f, nil
}

// Columns returns the names of the columns that p tests, each once, in the order of p.
func (p Predicate) Columns() []string { return p.p.Columns() }

// String returns p in the syntax of SQL. A Bloom filter prints as bloom(n bits) and a Cell as
// hexadecimal bytes.
func (p Predicate) String() string { return p.p.String() }
