package tablecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/schema"
)

// Scan is the verb "oribi table scan".
func Scan(a *console.Console) *cobra.Command {
	var f flags.Select
	var format, index string
	c := verb.New(a, "scan DIR NAME", "Print rows", func(cmd *cobra.Command, args []string) error {
		if index != "" && f.Order != "key" {
			return exit.Usage(errors.New("--by-index and --order are two orders"))
		}
		return scan(a, cmd, args, &f, index, format)
	})
	c.Flags().StringVar(&index, "by-index", "",
		"print the rows in the order of this index, NULLs first; --reverse is for its reverse order")
	verb.FormatFlag(c, &format)
	flags.AsOf(c, &f.AsOf)
	f.Add(c)
	c.Flags().BoolVar(&f.Desc, "desc", false,
		"with --order COLUMN: print the rows with the greatest values first; NULLs are last all the same")
	c.Flags().Lookup("order").Usage = fmt.Sprintf("key; any, which is faster; or a column, whose first rows are "+
		"printed, NULLs last, as many as --limit says (at most %d). A column named key or any is in quotes: '\"key\"'",
		flags.MaxFirstRows)
	return c
}

// scan runs "table scan". It checks all that does not depend on the table before it opens the
// store.
func scan(a *console.Console, cmd *cobra.Command, args []string, f *flags.Select, index, format string) error {
	form, err := a.Format(format)
	if err != nil {
		return err
	}
	at, err := flags.ParseAsOf(cmd.Context(), f.AsOf)
	if err != nil {
		return err
	}
	if err := f.Check(cmd, true); err != nil {
		return err
	}
	changed, ctx := cmd.Flags().Changed, cmd.Context()
	return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
		s := t.Schema()
		columns, err := flags.Chosen(s, "columns", f.Columns, changed("columns"))
		if err != nil {
			return err
		}
		options := []oribi.ScanOption{at}
		if options, err = f.AddBounds(options, s, changed); err != nil {
			return err
		}
		where, err := flags.WhereOption(s, f.Where)
		if err != nil {
			return err
		}
		options = append(options, where)
		switch {
		case f.Order == "any":
			options = append(options, oribi.AnyOrder())
		case f.Reverse:
			options = append(options, oribi.Desc())
		}
		if index != "" {
			options = append(options, oribi.OrderBy(index))
		}
		e := flags.Explanation(f.Explain)
		options = append(options, oribi.Explain(e))
		if name, ok := f.OfColumn(); ok {
			var by *schema.Column
			if by, err = orderColumn(s, name); err == nil {
				err = printFirst(a, f, by, form, columns, func(read []string) *oribi.Scan {
					return t.Scan(ctx, append(options, oribi.Columns(read...))...)
				})
			}
		} else {
			if f.Limit > 0 {
				options = append(options, oribi.Limit(f.Limit))
			}
			err = printRows(a, t.Scan(ctx, append(options, oribi.Columns(flags.Names(columns)...))...), form, columns)
		}
		if err != nil {
			return err
		}
		flags.PrintExplanation(a, e)
		return nil
	})
}

// printRows prints all batches of a scan. After an error it prints the rows read before, but not
// the end of a complete answer.
func printRows(a *console.Console, scan *oribi.Scan, form output.Format, columns []schema.Column) error {
	w := a.Writer(form, columns)
	for b, err := range scan.Batches() {
		if err != nil {
			w.Flush() // report the scan's error instead
			return err
		}
		if err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Close()
}

// Get is the verb "oribi table get".
func Get(a *console.Console) *cobra.Command {
	var list []string
	var at string
	c := verb.Printing(a, "get DIR NAME KEY", "Print one row",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			state, err := flags.ParseAsOf(cmd.Context(), at)
			if err != nil {
				return err
			}
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				columns, err := flags.Chosen(t.Schema(), "columns", list, cmd.Flags().Changed("columns"))
				if err != nil {
					return err
				}
				key, err := cell.Key(t.Schema(), args[2], false)
				if err != nil {
					return exit.Usage(fmt.Errorf("key: %w", err))
				}
				_, cells, err := t.GetCells(cmd.Context(), key, state, oribi.Columns(flags.Names(columns)...))
				if err != nil {
					return err
				}
				b := batch.New(columns, 1)
				for i, cell := range cells {
					b.Columns[i].SetCell(0, cell)
				}
				return a.PrintBatch(b, form)
			})
		})
	flags.AsOf(c, &at)
	c.Flags().StringSliceVar(&list, "columns", nil, "columns to print, in this order (default: all)")
	return c
}
