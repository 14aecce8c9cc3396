package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/schema"
)

// Where adds the flag that selects rows. If it is given several times, all expressions must
// hold.
func Where(c *cobra.Command, list *[]string) {
	c.Flags().StringArrayVar(list, "where", nil,
		"only rows that match `EXPR`, for example: size > 100 and mode = '100644'; see: oribi help expr")
}

// WhereOption returns the option for expressions, all of which must hold.
func WhereOption(s *schema.Schema, expressions []string) (oribi.CountOption, error) {
	all, err := Predicates(s.Columns, expressions)
	if err != nil {
		return nil, err
	}
	return oribi.Where(all...), nil
}

// RowFilter returns the filter that expressions, all of which must hold, stand for.
func RowFilter(s *schema.Schema, expressions []string) (*batch.Filter, error) {
	all, err := Predicates(s.Columns, expressions)
	if err != nil {
		return nil, err
	}
	filter, err := oribi.And(all...).Bind(s)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--where: %w", err))
	}
	return &filter, nil
}

// Predicates returns the predicates that expressions about columns stand for.
func Predicates(columns []schema.Column, expressions []string) (all []oribi.Predicate, err error) {
	for _, expression := range expressions {
		p, err := oribi.ParsePredicate(columns, expression)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--where: %w", errors.Unwrap(err)))
		}
		all = append(all, p)
	}
	return all, nil
}
