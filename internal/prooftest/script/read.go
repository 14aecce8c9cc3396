package script

import (
	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Newest is the newest timestamp that a read sees.
func (rd *Read) Newest() mvcc.Timestamp {
	if rd.AsOf {
		return rd.At
	}
	return mvcc.Max
}

// Options are the read's options, without key and tests; nil where there is none.
func (rd *Read) Options(s *schema.Schema) (at oribi.ReadOption, columns oribi.ColumnsOption) {
	if rd.AsOf {
		at = oribi.AsOf(rd.At)
	}
	if rd.Columns != nil {
		names := []string{}
		for _, c := range rd.Columns {
			names = append(names, s.Columns[c].Name)
		}
		columns = oribi.Columns(names...)
	}
	return at, columns
}

// Bounds are the options for the read's key range.
func (rd *Read) Bounds() (opts []oribi.RangeOption) {
	if rd.From != nil {
		opts = append(opts, oribi.From(rd.From))
	}
	if rd.To != nil {
		opts = append(opts, oribi.To(rd.To))
	}
	return opts
}

// Predicate is the test as a caller writes it. NULLs in a list, which equal nothing, are left out:
// the store refuses them.
func (t *Test) Predicate(s *schema.Schema) oribi.Predicate {
	column := s.Columns[t.Column].Name
	values := []oribi.Cell{}
	for _, v := range t.Values {
		if v != nil {
			values = append(values, v)
		}
	}
	switch t.Op {
	case batch.In:
		return oribi.In(column, values...)
	case batch.IsNull:
		return oribi.IsNull(column)
	case batch.NotNull:
		return oribi.NotNull(column)
	case batch.InFilter:
		panic("script: no test has a filter")
	}
	if len(values) == 0 {
		return oribi.Or() // a comparison with NULL is never true
	}
	compare := map[batch.Operator]func(string, any) oribi.Predicate{batch.Eq: oribi.Eq, batch.Ne: oribi.Ne, batch.Lt: oribi.Lt, batch.Le: oribi.Le,
		batch.Gt: oribi.Gt, batch.Ge: oribi.Ge}
	return compare[t.Op](column, values[0])
}

// ColumnsOf are the indexes of the columns that are read.
func (rd *Read) ColumnsOf(s *schema.Schema) []int {
	if rd.Columns != nil {
		return rd.Columns
	}
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	return all
}
