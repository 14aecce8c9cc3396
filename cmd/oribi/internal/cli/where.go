package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/where"
	"github.com/oribi-db/oribi/schema"
)

// whereFlag adds the flag that selects rows. Given several times, all expressions must hold.
func whereFlag(c *cobra.Command, list *[]string) {
	c.Flags().StringArrayVar(list, "where", nil, "only rows that match `EXPR`, for example: size > 100 and mode = '100644'; see: oribi help expr")
}

// addWhere adds the predicates of expressions, all of which must hold.
func addWhere(options []oribi.ReadOption, s *schema.Schema, expressions []string) ([]oribi.ReadOption, error) {
	var all []batch.Predicate
	for _, expression := range expressions {
		e, err := where.Parse(s, expression)
		if err != nil {
			return nil, usage(fmt.Errorf("--where: %w", err))
		}
		if all, err = tests(all, e); err != nil {
			return nil, usage(fmt.Errorf("--where: %w", err))
		}
	}
	if len(all) == 0 {
		return options, nil
	}
	return append(options, oribi.Where(all...)), nil
}

func tests(list []batch.Predicate, e *where.Expr) ([]batch.Predicate, error) {
	switch {
	case e.Op == where.And:
		for _, o := range e.Operands {
			var err error
			if list, err = tests(list, o); err != nil {
				return nil, err
			}
		}
		return list, nil
	case e.Op == where.Not && e.Operands[0].Op == where.IsNull:
		c := e.Operands[0].Column
		return append(list, batch.Predicate{Column: c.Name, ID: c.ID, Type: c.Type, Op: batch.NotNull}), nil
	}
	op, ok := map[where.Op]batch.Operator{where.Eq: batch.Eq, where.Ne: batch.Ne, where.Lt: batch.Lt, where.Le: batch.Le, where.Gt: batch.Gt, where.Ge: batch.Ge,
		where.In: batch.In, where.IsNull: batch.IsNull}[e.Op]
	if !ok {
		return nil, fmt.Errorf("%q is not supported yet", e.Op)
	}
	return append(list, batch.Predicate{Column: e.Column.Name, ID: e.Column.ID, Type: e.Column.Type, Op: op, Values: e.Cells}), nil
}
