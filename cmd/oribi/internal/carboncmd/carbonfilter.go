package carboncmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/where"
	"github.com/oribi-db/oribi/schema"
)

// Filters are the flags that select rows. All of them must hold.
type Filters struct {
	Where []string
	json  []string
}

func (f *Filters) add(c *cobra.Command) {
	flags.Where(c, &f.Where)
	c.Flags().StringArrayVar(&f.json, "filter-json", nil,
		`only rows that match a filter in JSON, for example ["size",">",100]; decimals are unscaled, dates are days since 1970`)
}

// parsed returns the filters of --filter-json.
func (f *Filters) parsed() (list []carbondata.Filter, err error) {
	for _, text := range f.json {
		if err := jsonin.Check([]byte(text)); err != nil {
			return nil, exit.Usage(fmt.Errorf("--filter-json: %w", err))
		}
		filter, err := carbondata.ParseFilter([]byte(text))
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--filter-json: %s", strings.TrimPrefix(err.Error(), "carbondata: filter: ")))
		}
		list = append(list, filter)
	}
	return list, nil
}

// Filter returns the filter for a table with these columns: parsed and the expressions of --where.
func (f *Filters) Filter(columns []carbondata.Column, parsed []carbondata.Filter) (carbondata.Filter, error) {
	types := make([]schema.Column, len(columns))
	byColumn := map[*schema.Column]carbondata.Type{}
	for i, c := range columns {
		t, ok := c.TableType()
		if !ok {
			t = schema.Column{Name: c.Name, Type: -1} // tested for NULL only
		}
		types[i] = t
		byColumn[&types[i]] = c.Type
	}
	for _, expression := range f.Where {
		e, err := where.Parse(types, expression)
		if err != nil {
			return carbondata.Filter{}, exit.Usage(fmt.Errorf("--where: %w", err))
		}
		parsed = append(parsed, carbonFilter(e, byColumn))
	}
	return carbondata.And(parsed...), nil
}

var carbonComparisons = map[where.Op]func(column string,
	value any) carbondata.Filter{where.Eq: carbondata.Eq, where.Ne: carbondata.Ne,
	where.Lt: carbondata.Lt, where.Le: carbondata.Le, where.Gt: carbondata.Gt, where.Ge: carbondata.Ge}

// carbonFilter converts an expression to a filter. types has the CarbonData type of each of its
// columns.
func carbonFilter(e *where.Expr, types map[*schema.Column]carbondata.Type) carbondata.Filter {
	var operands []carbondata.Filter
	for _, o := range e.Operands {
		operands = append(operands, carbonFilter(o, types))
	}
	switch e.Op {
	case where.And:
		return carbondata.And(operands...)
	case where.Or:
		return carbondata.Or(operands...)
	case where.Not:
		return carbondata.Not(operands[0])
	case where.IsNull:
		return carbondata.IsNull(e.Column.Name)
	case where.Prefix:
		return carbondata.HasPrefix(e.Column.Name, string(e.Cells[0]))
	case where.Like:
		var parts []string
		for _, cell := range e.Cells {
			parts = append(parts, string(cell))
		}
		return carbondata.Like(e.Column.Name, parts...)
	}
	var values []any
	for _, cell := range e.Cells {
		values = append(values, carbonlines.Value(types[e.Column], cell))
	}
	switch e.Op {
	case where.In:
		return carbondata.In(e.Column.Name, values...)
	case where.Between:
		return carbondata.And(carbondata.Ge(e.Column.Name, values[0]), carbondata.Le(e.Column.Name, values[1]))
	}
	return carbonComparisons[e.Op](e.Column.Name, values[0])
}
