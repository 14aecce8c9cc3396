package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/schema"
)

func (a *app) tableScan() *cobra.Command {
	var f selectFlags
	var format string
	c := a.verb("scan DIR NAME", "Print rows", func(cmd *cobra.Command, args []string) error {
		return a.scan(cmd, args, &f, format)
	})
	formatFlag(c, &format)
	asOfFlag(c, &f.asOf)
	f.add(c)
	c.Flags().BoolVar(&f.desc, "desc", false,
		"with --order COLUMN: print the rows with the greatest values first; NULLs are last all the same")
	c.Flags().Lookup("order").Usage = fmt.Sprintf("key; any, which is faster; or a column, whose first rows are "+
		"printed, NULLs last, as many as --limit says (at most %d). A column named key or any is in quotes: '\"key\"'",
		maxFirstRows)
	return c
}

// scan runs "table scan". It checks all that does not depend on the table before it opens the
// store.
func (a *app) scan(cmd *cobra.Command, args []string, f *selectFlags, format string) error {
	form, err := a.format(format)
	if err != nil {
		return err
	}
	at, err := asOf(cmd.Context(), f.asOf)
	if err != nil {
		return err
	}
	if err := f.check(cmd, true); err != nil {
		return err
	}
	changed, ctx := cmd.Flags().Changed, cmd.Context()
	return withTable(args[0], args[1], reading, func(t *oribi.Table) error {
		s := t.Schema()
		columns, err := chosen(s, "columns", f.columns, changed("columns"))
		if err != nil {
			return err
		}
		options := []oribi.ScanOption{at}
		if options, err = f.addBounds(options, s, changed); err != nil {
			return err
		}
		where, err := whereOption(s, f.where)
		if err != nil {
			return err
		}
		options = append(options, where)
		switch {
		case f.order == "any":
			options = append(options, oribi.AnyOrder())
		case f.reverse:
			options = append(options, oribi.Desc())
		}
		e := explanation(f.explain)
		options = append(options, oribi.Explain(e))
		if name, ok := f.ofColumn(); ok {
			var by *schema.Column
			if by, err = orderColumn(s, name); err == nil {
				err = a.printFirst(f, by, form, columns, func(read []string) *oribi.Scan {
					return t.Scan(ctx, append(options, oribi.Columns(read...))...)
				})
			}
		} else {
			if f.limit > 0 {
				options = append(options, oribi.Limit(f.limit))
			}
			err = a.printRows(t.Scan(ctx, append(options, oribi.Columns(names(columns)...))...), form, columns)
		}
		if err != nil {
			return err
		}
		a.printExplanation(e)
		return nil
	})
}

// printRows prints all batches of a scan. After an error it prints the rows read before, but not
// the end of a complete answer.
func (a *app) printRows(scan *oribi.Scan, form output.Format, columns []schema.Column) error {
	w := a.writer(form, columns)
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

func (a *app) tableGet() *cobra.Command {
	var list []string
	var format, at string
	c := a.verb("get DIR NAME KEY", "Print one row", func(cmd *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		state, err := asOf(cmd.Context(), at)
		if err != nil {
			return err
		}
		return withTable(args[0], args[1], reading, func(t *oribi.Table) error {
			columns, err := chosen(t.Schema(), "columns", list, cmd.Flags().Changed("columns"))
			if err != nil {
				return err
			}
			key, err := cell.Key(t.Schema(), args[2], false)
			if err != nil {
				return usage(fmt.Errorf("key: %w", err))
			}
			_, cells, err := t.GetCells(cmd.Context(), key, state, oribi.Columns(names(columns)...))
			if err != nil {
				return err
			}
			b := batch.New(columns, 1)
			for i, cell := range cells {
				b.Columns[i].SetCell(0, cell)
			}
			return a.printBatch(b, form)
		})
	})
	formatFlag(c, &format)
	asOfFlag(c, &at)
	c.Flags().StringSliceVar(&list, "columns", nil, "columns to print, in this order (default: all)")
	return c
}
