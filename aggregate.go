package oribi

import (
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/grouping"
	"github.com/oribi-db/oribi/internal/tablet"
)

// Aggregate is a value that Table.Aggregate computes from rows: CountRows, CountOf, SumOf,
// SumOfProduct, MinOf, MaxOf, and AvgOf return aggregates. An Aggregate names columns but no table.
// It can be used with any number of tables and by several goroutines at once.
//
// NULLs are left out, as in SQL. Of rows without any other value, the sum, average, minimum, and
// maximum are NULL, and the count is 0.
type Aggregate struct{ a grouping.Aggregate }

func aggregateOf(kind grouping.Kind, column string, terms ...Term) Aggregate {
	a := grouping.Aggregate{Kind: kind, Column: column}
	for _, t := range terms {
		a.Terms = append(a.Terms, t.t)
	}
	return Aggregate{a}
}

// CountRows returns the aggregate that is the number of rows, an int64.
func CountRows() Aggregate { return aggregateOf(grouping.CountRows, "") }

// CountOf returns the aggregate that is the number of rows in which the column is not NULL, an
// int64.
func CountOf(column string) Aggregate { return aggregateOf(grouping.CountOf, column) }

// SumOf returns the aggregate that is the sum of a column of integers, decimals, or floats. The sum
// of integers is an Int128 and a sum of decimals a Decimal with the scale of the column. Both are
// exact; ErrOverflow if the sum does not fit 128 bits, or a decimal has more than 38 digits. The
// sum of floats is the float64 that is nearest to the exact sum, whatever the order of the
// rows; it is NaN if a value is NaN.
func SumOf(column string) Aggregate { return SumOfProduct(Col(column)) }

// SumOfProduct returns the aggregate that is the sum of the product of terms, of which there is at
// least one:
//
//	SumOfProduct(Col("l_extendedprice"), Col("l_discount").Neg().Plus(1))
//
// A product with a NULL is NULL. Products of integers and decimals are exact, and so is their sum,
// which has the scales of all terms together: an Int128 if there are only integers, else a Decimal.
// ErrOverflow if a product, from the first term to any other, or the sum is out of range. If there
// is a float, the terms and products are computed with float64, which rounds; their sum is as that
// of SumOf.
func SumOfProduct(terms ...Term) Aggregate { return aggregateOf(grouping.SumOf, "", terms...) }

// MinOf returns the aggregate that is the least value of a column of any type but array, as a Go
// value as in Row. Of floats, −0 is below +0 and NaN is above +Inf. It is NaN only if all values
// are.
func MinOf(column string) Aggregate { return aggregateOf(grouping.MinOf, column) }

// MaxOf returns the aggregate that is the greatest value of a column, in the same order as MinOf.
func MaxOf(column string) Aggregate { return aggregateOf(grouping.MaxOf, column) }

// AvgOf returns the aggregate that is the average of a column of integers, decimals, or floats: the
// exact sum, which cannot overflow, divided by the number of values. Of integers and floats it is
// the nearest float64. Of decimals it is a Decimal with six more digits after the point than the
// column, less if there would be more than 38 digits, rounded half away from zero.
func AvgOf(column string) Aggregate { return aggregateOf(grouping.AvgOf, column, Col(column)) }

// String returns a in the syntax of SQL.
func (a Aggregate) String() string { return a.a.String() }

// groupMemory is the part of Options.MemoryLimit that the groups of an aggregate may take.
const groupMemory = 4

// Aggregate computes aggregates over the rows that the options select, or over each group of them:
//
//	result, err := orders.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows(), oribi.SumOf("price")},
//		oribi.GroupBy("country"), oribi.Where(oribi.Gt("qty", 10)))
//	for _, g := range result.Groups {
//		fmt.Println(g.Key[0], g.Values[0], g.Values[1])
//	}
//
// Without aggregates, the result is the groups: the distinct values of the columns of GroupBy.
//
// The result is computed from one state of the table, and is the same whatever is flushed or
// compacted.
//
// While they are computed, the groups take at most a quarter of Options.MemoryLimit. The result
// takes memory for its groups in addition, two or three times as much. Top bounds both.
//
// Errors: ErrNoColumn; ErrSchema for a column whose type the aggregate does not take; ErrOverflow;
// an error if the groups take more memory, unless there is Top; the errors of Scan.
func (t *Table) Aggregate(
	ctx context.Context, aggregates []Aggregate, opts ...AggregateOption,
) (*AggregateResult, error) {
	o := collect(opts)
	if o.top > 0 && len(aggregates) == 0 {
		return nil, t.errorf(errTop)
	}
	if len(o.groupBy) == 0 && !slices.ContainsFunc(aggregates, func(a Aggregate) bool { return a.a.Kind != grouping.CountRows }) {
		return t.aggregateRows(ctx, aggregates, &o)
	}
	for tries := 0; ; tries++ {
		result, err := t.aggregateOnce(ctx, aggregates, o)
		if err == nil || !t.store.core.Restarts(ctx, o.asOf, err, tries) {
			return result, err
		}
	}
}

func (t *Table) aggregateOnce(ctx context.Context, aggregates []Aggregate, o readOptions) (*AggregateResult, error) {
	list := make([]grouping.Aggregate, len(aggregates))
	for i := range aggregates {
		list[i] = aggregates[i].a
	}
	q := grouping.New(list, o.groupBy, o.top, t.store.opts.MemoryLimit/groupMemory)
	o.fit = func(tableSchema *tablet.TableSchema) ([]int, error) {
		indexes, err := q.Bind(tableSchema.Schema)
		return indexes, t.errorf(err)
	}
	o.order = anyOrder
	sc := &Scan{t: t, ctx: ctx, o: o}
	parts, err := sc.startParts("aggregated")
	if err != nil {
		return nil, err
	}
	defer parts.close()
	if err := q.Run(parts); err != nil {
		return nil, t.errorf(err)
	}
	groups, total := q.Groups()
	result := &AggregateResult{Columns: q.Columns(), Total: total}
	for g, err := range groups {
		if err != nil {
			return nil, t.errorf(err)
		}
		values := make([]Value, len(g.Values))
		for i, v := range g.Values {
			values[i] = Value{v}
		}
		result.Groups = append(result.Groups, Group{g.Key, values})
	}
	return result, nil
}

// aggregateRows returns the result of aggregates that are all CountRows.
func (t *Table) aggregateRows(ctx context.Context, aggregates []Aggregate, o *readOptions) (*AggregateResult, error) {
	n, err := t.count(ctx, o)
	if err != nil {
		return nil, err
	}
	result, group := &AggregateResult{}, Group{}
	for range aggregates {
		result.Columns = append(result.Columns, grouping.CountColumn("count"))
		group.Values = append(group.Values, Value{n})
	}
	result.Groups, result.Total = []Group{group}, 1
	return result, nil
}

var errTop = fmt.Errorf("top: there is no aggregate: %w", fault.ErrSchema)
