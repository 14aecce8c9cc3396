package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

func formatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVar(format, "format", "", "table, csv, jsonl or json (default: table on a terminal, else jsonl)")
}

func asOfFlag(c *cobra.Command, asOf *string) {
	timeFlag(c, asOf, "as-of", "latest", "read the state at this time")
}

// format returns the form of output: the requested one, else the default for a terminal or a
// program.
func (a *app) format(name string) (output.Format, error) {
	if name == "" {
		if isTerminal(a.file) {
			return output.Table, nil
		}
		return output.JSONL, nil
	}
	f, err := output.ParseFormat(name)
	if err != nil {
		return f, usage(fmt.Errorf("--format: %w", err))
	}
	return f, nil
}

// writer returns a writer that prints rows on stdout.
func (a *app) writer(form output.Format, columns []schema.Column) *output.Writer {
	w := output.New(a.stdout, form, columns)
	w.Style(a.style())
	return w
}

// style returns the layout of tables on stdout.
func (a *app) style() output.Style {
	if !isTerminal(a.file) {
		return output.Style{}
	}
	plain := os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	return output.Style{Width: terminalWidth(a.file), Color: !plain}
}

// printBatch prints the rows of one batch. The table form prints the named columns as sizes with
// units.
func (a *app) printBatch(b *batch.RecordBatch, form output.Format, sizes ...string) error {
	w := output.New(a.stdout, form, b.Schema)
	style := a.style()
	style.Sizes = sizes
	w.Style(style)
	if err := w.Write(b); err != nil {
		return err
	}
	return w.Close()
}

// asOf parses the value of a flag into a read option. It waits for a timestamp that is slightly
// ahead of the clock.
func asOf(ctx context.Context, word string) (oribi.ReadOption, error) {
	ts, err := when.ParseState(word, time.Now())
	if err != nil {
		return nil, usage(fmt.Errorf("--as-of: %w", err))
	}
	if ts == when.Latest {
		return oribi.Latest(), nil
	}
	return oribi.AsOf(ts), reach(ctx, ts)
}

// selectFlags are the flags that select rows and columns.
type selectFlags struct {
	columns        []string
	where          []string
	asOf, from, to string
	order          string
	reverse        bool
	desc           bool // table scan only
	limit          int64
	explain        bool
}

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

// add adds the flags that every scan has.
func (f *selectFlags) add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.columns, "columns", nil, "columns to print, in this order (default: all)")
	whereFlag(c, &f.where)
	c.Flags().StringVar(&f.from, "from-key", "", "first key, as JSON; for a compound key its first columns are enough")
	c.Flags().StringVar(&f.to, "to-key", "", "key before which to stop, as JSON")
	c.Flags().StringVar(&f.order, "order", "key", "key, or any, which is faster")
	c.Flags().BoolVar(&f.reverse, "reverse", false,
		"print the rows in descending key order; --limit takes the last ones")
	c.Flags().Int64Var(&f.limit, "limit", 0, "maximum number of rows to print")
	explainFlag(c, &f.explain)
}

// check checks what does not depend on the table. columns reports whether --order may be a column.
func (f *selectFlags) check(cmd *cobra.Command, columns bool) error {
	switch _, ok := f.ofColumn(); {
	case columns:
		if err := f.checkOrder(cmd); err != nil {
			return err
		}
	case ok:
		return usage(fmt.Errorf("--order: want key or any, not %q", f.order))
	}
	if f.reverse && f.order == "any" {
		return usage(errors.New("--reverse is for --order key"))
	}
	if cmd.Flags().Changed("limit") && f.limit < 1 {
		return usage(fmt.Errorf("--limit: want at least 1, not %d", f.limit))
	}
	return nil
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

func explainFlag(c *cobra.Command, explain *bool) {
	c.Flags().BoolVar(explain, "explain", false, "print on stderr what was read, skipped, and tested")
}

// explanation returns memory for the explanation of a read, nil if it is not wanted.
func explanation(explain bool) *oribi.Explanation {
	if !explain {
		return nil
	}
	return new(oribi.Explanation)
}

// printExplanation prints the explanation of a read on stderr, unless it is nil.
func (a *app) printExplanation(e *oribi.Explanation) {
	if e != nil {
		fmt.Fprint(a.stderr, e)
	}
}

// addBounds adds the key range that the flags give.
func (f *selectFlags) addBounds(
	options []oribi.ScanOption, s *schema.Schema, changed func(flag string) bool,
) ([]oribi.ScanOption, error) {
	for _, bound := range []struct {
		flag, text string
		option     func(key any) oribi.RangeOption
	}{{"from-key", f.from, oribi.From}, {"to-key", f.to, oribi.To}} {
		if !changed(bound.flag) {
			continue
		}
		cells, err := cell.Key(s, bound.text, true)
		if err != nil {
			return nil, usage(fmt.Errorf("--%s: %w", bound.flag, err))
		}
		options = append(options, bound.option(cells))
	}
	return options, nil
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

// chosen returns the columns that a flag names, or all of them without the flag.
func chosen(s *schema.Schema, flag string, list []string, given bool) ([]schema.Column, error) {
	if !given {
		return s.Columns, nil
	}
	if len(list) == 0 {
		return nil, usage(fmt.Errorf("--%s names no column", flag))
	}
	var columns []schema.Column
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			return nil, usage(fmt.Errorf("--%s: column %q appears twice", flag, name))
		}
	}
	cols, err := s.Project(list)
	if err != nil {
		return nil, usage(fmt.Errorf("--%s: %w", flag, err))
	}
	for _, k := range cols {
		columns = append(columns, s.Columns[k])
	}
	return columns, nil
}

func names(columns []schema.Column) []string {
	list := make([]string, len(columns))
	for i := range columns {
		list[i] = columns[i].Name
	}
	return list
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
