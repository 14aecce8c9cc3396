package tablecmd

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

// Count is the verb "oribi table count".
func Count(a *console.Console) *cobra.Command {
	var at, by, distinct string
	var expressions []string
	var explain bool
	c := verb.Printing(a, "count DIR NAME", "Print the number of rows",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			state, err := flags.ParseAsOf(cmd.Context(), at)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("by") && cmd.Flags().Changed("distinct") {
				return exit.Usage(errors.New("--by counts rows, and --distinct values: give one of them"))
			}
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				where, err := flags.WhereOption(t.Schema(), expressions)
				if err != nil {
					return err
				}
				e := flags.Explanation(explain)
				if cmd.Flags().Changed("by") {
					column, err := flags.Chosen(t.Schema(), "by", []string{by}, true)
					if err != nil {
						return err
					}
					values, err := countValues(cmd.Context(), t, column[0].Name, state, where, oribi.Explain(e))
					if err == nil {
						err = printGroups(a, values, form)
					}
					if err != nil {
						return err
					}
					flags.PrintExplanation(a, e)
					return nil
				}
				var n int64
				if cmd.Flags().Changed("distinct") {
					column, err := flags.Chosen(t.Schema(), "distinct", []string{distinct}, true)
					if err != nil {
						return err
					}
					if n, err = countDistinct(cmd.Context(), t, column[0].Name, state, where,
						oribi.Explain(e)); err != nil {
						return err
					}
				} else {
					n, err = t.Count(cmd.Context(), state, where, oribi.Workers(0), oribi.Explain(e))
				}
				if err == nil {
					err = a.Printf("%d\n", n)
				}
				if err != nil {
					return err
				}
				flags.PrintExplanation(a, e)
				return nil
			})
		})
	flags.AsOf(c, &at)
	flags.Where(c, &expressions)
	c.Flags().StringVar(&by, "by", "", "count the rows of each value of this `column`, most frequent first")
	c.Flags().StringVar(&distinct, "distinct", "",
		"print how many different values this `column` has; NULL is not counted")
	flags.Explain(c, &explain)
	return c
}

// countValues counts the rows of each value of a column. It returns one group per value, most
// frequent first, then by value.
func countValues(
	ctx context.Context, t *oribi.Table, column string, options ...oribi.AggregateOption,
) (*oribi.AggregateResult, error) {
	result, err := t.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}, append(options, oribi.GroupBy(column))...)
	if err != nil {
		return nil, err
	}
	rows := func(g oribi.Group) int64 { return g.Values[0].Any().(int64) }
	slices.SortStableFunc(result.Groups, func(x, y oribi.Group) int { return cmp.Compare(rows(y), rows(x)) })
	result.Columns[0].Name, result.Columns[0].Nullable = "value", true
	return result, nil
}

// countDistinct returns the number of different values of a column, without NULL.
func countDistinct(
	ctx context.Context, t *oribi.Table, column string, options ...oribi.AggregateOption,
) (int64, error) {
	options = append(options, oribi.GroupBy(column), oribi.Where(oribi.NotNull(column)), oribi.Top(1))
	result, err := t.Aggregate(ctx, []oribi.Aggregate{oribi.CountRows()}, options...)
	if err != nil {
		return 0, err
	}
	return result.Total, nil
}
