package script

import (
	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Newest returns the newest timestamp that the read sees, mvcc.Max for the newest state.
func (rd *Read) Newest() mvcc.Timestamp {
	if rd.AsOf {
		return rd.At
	}
	return mvcc.Max
}

// Options returns the read's options for its timestamp and columns; nil where it has none.
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

// Bounds returns the options for the read's key range.
func (rd *Read) Bounds() (opts []oribi.RangeOption) {
	if rd.From != nil {
		opts = append(opts, oribi.From(rd.From))
	}
	if rd.To != nil {
		opts = append(opts, oribi.To(rd.To))
	}
	return opts
}

// Predicate returns the test as an oribi.Predicate. It leaves out NULL values: the store refuses
// them, and they equal nothing.
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
		panic("script: a test cannot have a filter")
	}
	if len(values) == 0 {
		return oribi.Or() // a comparison with NULL is never true
	}
	compare := map[batch.Operator]func(string, any) oribi.Predicate{batch.Eq: oribi.Eq, batch.Ne: oribi.Ne,
		batch.Lt: oribi.Lt, batch.Le: oribi.Le,
		batch.Gt: oribi.Gt, batch.Ge: oribi.Ge}
	return compare[t.Op](column, values[0])
}

// ColumnsOf returns the indexes of the columns that the read returns.
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
