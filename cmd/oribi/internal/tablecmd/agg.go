package tablecmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/where"
	"github.com/oribi-db/oribi/schema"
)

// aggregateFlag is a flag that adds an aggregate to a list, which several flags share.
type aggregateFlag struct {
	name string
	list *[]requested
}

// requested is an aggregate of the command line.
type requested struct {
	flag, argument string
}

func (f *aggregateFlag) Set(argument string) error {
	if *f.list = append(*f.list, requested{f.name, argument}); f.name == "count" && argument != "true" {
		return errors.New("takes no value")
	}
	return nil
}

func (f *aggregateFlag) String() string { return "" }

func (f *aggregateFlag) Type() string {
	if f.name == "count" {
		return "bool" // needs no value
	}
	return "string"
}

// Agg is the verb "oribi table agg".
func Agg(a *console.Console) *cobra.Command {
	var at string
	var by, expressions []string
	var list []requested
	var explain bool
	var top int
	c := verb.Printing(a, "agg DIR NAME", "Print counts, sums, averages, minima, and maxima, for all rows or by groups",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			state, err := flags.ParseAsOf(cmd.Context(), at)
			if err != nil {
				return err
			}
			if len(list) == 0 && len(by) == 0 {
				return verb.SeeHelp(cmd, exit.Usage(errors.New("nothing to compute: want --count, --sum, --avg, --min, --max, "+
					"or --by")))
			}
			if cmd.Flags().Changed("top") {
				switch {
				case top < 1:
					return exit.Usage(fmt.Errorf("--top: want at least 1, not %d", top))
				case len(by) == 0 || len(list) == 0:
					return exit.Usage(errors.New("--top orders groups by their first aggregate: it needs --by and, for " +
						"example, --count"))
				}
			}
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				aggregates, err := aggregatesOf(t.Schema(), list)
				if err != nil {
					return exit.Usage(err)
				}
				condition, err := flags.WhereOption(t.Schema(), expressions)
				if err != nil {
					return err
				}
				e := flags.Explanation(explain)
				options := []oribi.AggregateOption{state, condition, oribi.Explain(e)}
				if cmd.Flags().Changed("by") {
					groups, err := groupsOf(t.Schema(), by)
					if err != nil {
						return err
					}
					options = append(options, groups...)
				}
				if top > 0 {
					options = append(options, oribi.Top(top))
				}
				result, err := t.Aggregate(cmd.Context(), aggregates, options...)
				if errors.Is(err, oribi.ErrSchema) {
					return exit.Usage(err) // a type that cannot be added or compared
				}
				if err != nil {
					return err
				}
				for i, r := range list {
					result.Columns[len(result.Columns)-len(list)+i].Name = r.name()
				}
				if err := printGroups(a, result, form); err != nil {
					return err
				}
				flags.PrintExplanation(a, e)
				return nil
			})
		})
	for _, f := range []struct{ name, usage string }{
		{"count", "the number of rows"},
		{"count-of", "the number of rows whose `column` is not NULL"},
		{"sum", "the sum of a column, or of a product such as 'price * (1 - discount)'; see: oribi help sum"},
		{"avg", "the average of a `column`"},
		{"min", "the least value of a `column`"},
		{"max", "the greatest value of a `column`"},
	} {
		flag := c.Flags().VarPF(&aggregateFlag{f.name, &list}, f.name, "", f.usage)
		if f.name == "count" {
			flag.NoOptDefVal = "true"
		}
	}
	c.Flags().StringSliceVar(&by, "by", nil,
		"compute them for each group of rows that are equal in these columns; year(COLUMN), month(COLUMN), "+
			"day(COLUMN), and hour(COLUMN) are periods of a date or timestamp, UTC")
	c.Flags().IntVar(&top, "top", 0,
		"only the `N` groups with the greatest values of the first aggregate, greatest first, NULLs last")
	flags.AsOf(c, &at)
	flags.Where(c, &expressions)
	flags.Explain(c, &explain)
	return c
}

// printGroups prints a result, some groups at a time.
func printGroups(a *console.Console, result *oribi.AggregateResult, form output.Format) error {
	w := a.Writer(form, result.Columns)
	for groups := range slices.Chunk(result.Groups, 1024) {
		b, err := (&oribi.AggregateResult{Columns: result.Columns, Groups: groups}).Batch()
		if err == nil {
			err = w.Write(b)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// groupsOf returns the options for the columns and periods that --by lists.
func groupsOf(s *schema.Schema, by []string) (options []oribi.AggregateOption, err error) {
	for i, text := range by {
		period, rest, ok := strings.Cut(text, "(")
		column, closed := strings.CutSuffix(rest, ")")
		switch {
		case slices.Contains(by[:i], text):
			return nil, exit.Usage(fmt.Errorf("--by: column %q appears twice", text))
		case ok && closed && s.Index(text) < 0:
			if s.Index(column) < 0 {
				return nil, exit.Usage(fmt.Errorf("--by: %s: column %q: %w", text, column, s.NoColumn(column)))
			}
			options = append(options, oribi.GroupByPeriod(period, column))
		default:
			if _, err := flags.Chosen(s, "by", []string{text}, true); err != nil {
				return nil, err
			}
			options = append(options, oribi.GroupBy(text))
		}
	}
	if len(by) == 0 {
		return nil, exit.Usage(errors.New("--by names no column"))
	}
	return options, nil
}

// aggregatesOf returns the aggregates that the flags request.
func aggregatesOf(s *schema.Schema, list []requested) (out []oribi.Aggregate, err error) {
	for i, r := range list {
		if slices.Contains(list[:i], r) {
			return nil, fmt.Errorf("--%s: %q appears twice", r.flag, r.argument)
		}
		a, err := r.aggregate(s)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", r.flag, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// name returns the name of the column of the result.
func (r *requested) name() string {
	switch r.flag {
	case "count":
		return "count"
	case "count-of":
		return "count(" + r.argument + ")"
	}
	return r.flag + "(" + r.argument + ")"
}

// aggregate returns the aggregate of one flag.
func (r *requested) aggregate(s *schema.Schema) (a oribi.Aggregate, err error) {
	switch r.flag {
	case "count":
		return oribi.CountRows(), nil
	case "sum":
		factors, err := where.ParseProduct(s.Columns, r.argument)
		var terms []oribi.Term
		for _, f := range factors {
			terms = append(terms, oribi.Col(f.Column.Name).Times(oribi.Decimal(f.Slope)).Plus(oribi.Decimal(f.Offset)))
		}
		return oribi.SumOfProduct(terms...), err
	}
	if s.Index(r.argument) < 0 {
		return a, fmt.Errorf("column %q: %w", r.argument, s.NoColumn(r.argument))
	}
	of := map[string]func(column string) oribi.Aggregate{"count-of": oribi.CountOf, "avg": oribi.AvgOf,
		"min": oribi.MinOf, "max": oribi.MaxOf}
	return of[r.flag](r.argument), nil
}
