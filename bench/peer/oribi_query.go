package peer

import (
	"context"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/inputs"
)

// predicates returns the predicates of a query, which the engine evaluates on stored values.
func predicates(q Question) []oribi.Predicate {
	hundredths := func(v int64) oribi.Decimal { return oribi.NewDecimal(v, 2) }
	switch q {
	case FewRows:
		return []oribi.Predicate{oribi.Lt("l_partkey", FewBelow)}
	case SomeRows:
		return []oribi.Predicate{oribi.Lt("l_partkey", SomeBelow)}
	case NoRows:
		return []oribi.Predicate{oribi.Eq("l_quantity", hundredths(NoQuantity))}
	case Q1:
		return []oribi.Predicate{oribi.Le("l_shipdate", inputs.Day(Q1Until))}
	case Q6:
		return []oribi.Predicate{oribi.Ge("l_shipdate", inputs.Day(Q6From)),
			oribi.Lt("l_shipdate", inputs.Day(Q6Until)),
			oribi.Between("l_discount", hundredths(Q6Least),
				hundredths(Q6Most)), oribi.Lt("l_quantity", hundredths(Q6Below))}
	}
	return nil
}

// aggregates returns the sums of a query in the order of the answer, and the columns of its groups.
func aggregates(q Question) (list []oribi.Aggregate, by []string) {
	price, paid := oribi.Col("l_extendedprice"), oribi.Col("l_discount").Neg().Plus(1)
	switch q {
	case Sum:
		return []oribi.Aggregate{oribi.SumOf("l_partkey"), oribi.CountRows()}, nil
	case Group:
		return []oribi.Aggregate{oribi.SumOf("l_quantity"), oribi.CountRows()}, []string{"l_shipmode"}
	case Q1:
		return []oribi.Aggregate{oribi.SumOf("l_quantity"), oribi.CountRows(), oribi.SumOf("l_extendedprice"),
				oribi.SumOfProduct(price, paid),
				oribi.SumOfProduct(price, paid, oribi.Col("l_tax").Plus(1)), oribi.SumOf("l_discount")},
			[]string{"l_returnflag", "l_linestatus"}
	case Q6:
		return []oribi.Aggregate{oribi.SumOfProduct(price, oribi.Col("l_discount")), oribi.CountRows()}, nil
	}
	return []oribi.Aggregate{oribi.SumOf("l_extendedprice"), oribi.CountRows()}, nil
}

// Query uses Table.Aggregate.
func (o *oribiLineitem) Query(q Question) (*Answer, error) {
	list, by := aggregates(q)
	options := append(slices.Clone(o.parallel), oribi.GroupBy(by...), oribi.Where(predicates(q)...))
	result, err := o.table.Aggregate(context.Background(), list, options...)
	if err != nil {
		return nil, err
	}
	a := &Answer{}
	for _, g := range result.Groups {
		key := ""
		for _, k := range g.Key {
			key += k.(string)
		}
		for i, v := range g.Values {
			if v.IsNull() {
				continue
			}
			d, err := v.Decimal()
			if err != nil {
				return nil, err
			}
			a.Group(key)[i] = int64(d.Unscaled.Lo)
		}
	}
	return a, nil
}
