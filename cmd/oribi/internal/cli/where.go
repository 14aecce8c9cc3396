package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/where"
	"github.com/oribi-db/oribi/schema"
)

// whereFlag adds the flag that selects rows. If it is given several times, all expressions must
// hold.
func whereFlag(c *cobra.Command, list *[]string) {
	c.Flags().StringArrayVar(list, "where", nil, "only rows that match `EXPR`, for example: size > 100 and mode = '100644'; see: oribi help expr")
}

// whereOption returns the option for expressions, all of which must hold.
func whereOption(s *schema.Schema, expressions []string) (oribi.CountOption, error) {
	all, err := whereAll(s.Columns, expressions)
	if err != nil {
		return nil, err
	}
	return oribi.Where(all...), nil
}

// rowFilter returns the filter that expressions, all of which must hold, stand for.
func rowFilter(s *schema.Schema, expressions []string) (*batch.Filter, error) {
	all, err := whereAll(s.Columns, expressions)
	if err != nil {
		return nil, err
	}
	filter, err := oribi.And(all...).Bind(s)
	if err != nil {
		return nil, usage(fmt.Errorf("--where: %w", err))
	}
	return &filter, nil
}

// whereAll returns the predicates that expressions about columns stand for.
func whereAll(columns []schema.Column, expressions []string) (all []oribi.Predicate, err error) {
	for _, expression := range expressions {
		e, err := where.Parse(columns, expression)
		if err != nil {
			return nil, usage(fmt.Errorf("--where: %w", err))
		}
		all = append(all, predicate(e))
	}
	return all, nil
}

var comparisons = map[where.Op]func(column string, value any) oribi.Predicate{where.Eq: oribi.Eq, where.Ne: oribi.Ne, where.Lt: oribi.Lt,
	where.Le: oribi.Le, where.Gt: oribi.Gt, where.Ge: oribi.Ge, where.Prefix: oribi.HasPrefix}

// predicate converts an expression to the library's form.
func predicate(e *where.Expr) oribi.Predicate {
	var operands []oribi.Predicate
	for _, o := range e.Operands {
		operands = append(operands, predicate(o))
	}
	var cells []oribi.Cell
	for _, c := range e.Cells {
		cells = append(cells, c)
	}
	switch e.Op {
	case where.And:
		return oribi.And(operands...)
	case where.Or:
		return oribi.Or(operands...)
	case where.Not:
		return oribi.Not(operands[0])
	case where.In:
		return oribi.In(e.Column.Name, cells...)
	case where.Between:
		return oribi.Between(e.Column.Name, cells[0], cells[1])
	case where.IsNull:
		return oribi.IsNull(e.Column.Name)
	}
	return comparisons[e.Op](e.Column.Name, cells[0])
}
