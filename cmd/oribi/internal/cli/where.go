package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// whereFlag adds the flag that selects rows. If it is given several times, all expressions must
// hold.
func whereFlag(c *cobra.Command, list *[]string) {
	c.Flags().StringArrayVar(list, "where", nil,
		"only rows that match `EXPR`, for example: size > 100 and mode = '100644'; see: oribi help expr")
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
		p, err := oribi.ParsePredicate(columns, expression)
		if err != nil {
			return nil, usage(fmt.Errorf("--where: %w", errors.Unwrap(err)))
		}
		all = append(all, p)
	}
	return all, nil
}
