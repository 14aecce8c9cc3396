// Package carboncmd has the verbs of "oribi carbondata".
package carboncmd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/lines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// carbonPath describes the argument of the verbs that read CarbonData.
const carbonPath = "PATH is a data file, a folder of data files, a table with its folders Metadata and Fact, or a " +
	"folder with one such table below it"

// helped adds help to a verb that reads CarbonData.
func helped(c *cobra.Command, about string) *cobra.Command {
	c.Long = c.Short + ".\n\n" + carbonPath + "." + about
	return c
}

// withCarbonData opens the CarbonData at path and closes it after use returns.
func withCarbonData(a *console.Console, path string, use func(t *carbondata.Table) error) error {
	if path == "-" {
		return exit.Usage(errors.New("CarbonData is read from a file or folder, not from stdin"))
	}
	t, err := carbondata.Open(path)
	if err == nil {
		err = use(t)
		t.Close() // reading is complete: an error of Close does not matter
	}
	return PathError(path, err)
}

// PathError gives an error about CarbonData an exit code. The error names the file.
func PathError(path string, err error) error {
	if _, ok := errors.AsType[*exit.Failure](err); ok {
		return err
	}
	if bad, ok := errors.AsType[*carbondata.RowError](err); ok {
		err := fmt.Errorf("column %q: %w", bad.Column, bad.Err)
		if bad.Row < 0 {
			return fmt.Errorf("%s: %w", path, err)
		}
		return exit.WithHelp(&apply.LineError{Name: path, Line: bad.Row + 1, Row: true, Err: err},
			"to leave out such rows: --where; to leave out the column: --columns")
	}
	switch {
	case errors.Is(err, oribi.ErrUnsupported), errors.Is(err, oribi.ErrCorrupt):
		return exit.With(exit.Damage, err)
	// other names and values are checked before
	case errors.Is(err, oribi.ErrNoColumn), errors.Is(err, oribi.ErrSchema):
		return exit.Usage(fmt.Errorf("--filter-json: %s", strings.TrimPrefix(err.Error(), "carbondata: filter: ")))
	case errors.Is(err, os.ErrNotExist):
		if info, stat := os.Stat(path); stat == nil && info.IsDir() {
			return exit.WithHelp(err, carbonPath)
		}
	}
	return err
}

// Schema is the verb "oribi carbondata schema".
func Schema(a *console.Console) *cobra.Command {
	return helped(verb.Printing(a, "schema PATH", "Print the columns, one per line",
		func(_ *cobra.Command, args []string, form output.Format) error {
			return withCarbonData(a, args[0], func(t *carbondata.Table) error {
				p := a.Objects(form, console.TextColumns(nil, "name", "type", "sort"))
				for _, c := range t.Schema() {
					if err := p.Print(carbonlines.AppendColumn(nil, &c)); err != nil {
						return err
					}
				}
				return p.Close()
			})
		}), "")
}

const carbonVerifyHelp = ` The format has no checksums: a changed bit that makes another possible
value is not found.`

// Verify is the verb "oribi carbondata verify".
func Verify(a *console.Console) *cobra.Command {
	return helped(verb.New(a, "verify PATH", "Check everything: structure, values, counts, bounds, index files",
		func(cmd *cobra.Command, args []string) error {
			err := withCarbonData(a, args[0], func(t *carbondata.Table) error { return t.Verify(cmd.Context()) })
			if err != nil {
				return err
			}
			return a.Printf("ok\n")
		}), carbonVerifyHelp)
}

// carbonSelection are the flags that select rows and columns.
type carbonSelection struct {
	columns []string
	filters Filters
	limit   int64
	explain bool
}

const carbonDumpHelp = ` A STRUCT is printed as an object, a MAP as [[key,value],…].

A filter in JSON is ["column",op,value] with = != < <= > >= in notin isnull notnull startswith, or
["and",filter,filter], ["or",filter,filter], ["not",filter]. If --where and --filter-json are given, or
one of them several times, all must hold.`

// Dump is the verb "oribi carbondata dump".
func Dump(a *console.Console) *cobra.Command {
	var s carbonSelection
	c := helped(verb.Printing(a, "dump PATH", "Print rows, one per line",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			if cmd.Flags().Changed("limit") && s.limit < 1 {
				return exit.Usage(fmt.Errorf("--limit: want at least 1, not %d", s.limit))
			}
			filters, err := s.filters.parsed()
			if err != nil {
				return err
			}
			return withCarbonData(a, args[0], func(t *carbondata.Table) error {
				columns, err := carbonColumns(t.Schema(), s.columns, cmd.Flags().Changed("columns"))
				if err != nil {
					return err
				}
				filter, err := s.filters.Filter(t.Schema(), filters)
				if err != nil {
					return err
				}
				p := carbonRows(a, form, columns)
				var stats carbondata.ScanStats
				n := int64(0)
				for row, err := range t.Rows(cmd.Context(),
					carbondata.ScanOptions{Columns: carbonNames(columns), Filter: filter, Stats: &stats}) {
					if err == nil {
						err = p.print(row)
					}
					if err != nil {
						return console.Ended(err, p)
					}
					if n++; n == s.limit {
						break
					}
				}
				if err := p.Close(); err != nil || !s.explain {
					return err
				}
				fmt.Fprintf(a.Stderr, "read %d of %d files, %d of %d blocklets, %d of %d pages\n",
					stats.FilesRead, stats.Files, stats.BlockletsRead, stats.Blocklets, stats.PagesRead, stats.Pages)
				return nil
			})
		}), carbonDumpHelp)
	c.Flags().StringSliceVar(&s.columns, "columns", nil, "columns to print, in this order (default: all)")
	s.filters.add(c)
	c.Flags().Int64Var(&s.limit, "limit", 0, "maximum number of rows to print")
	c.Flags().BoolVar(&s.explain, "explain", false, "print on stderr how much was read")
	return c
}

// carbonColumns returns the columns that --columns names, or all of them without the flag.
func carbonColumns(all []carbondata.Column, list []string, given bool) ([]carbondata.Column, error) {
	if !given {
		return all, nil
	}
	if len(list) == 0 {
		return nil, exit.Usage(errors.New("--columns names no column"))
	}
	var columns []carbondata.Column
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			return nil, exit.Usage(fmt.Errorf("--columns: column %q appears twice", name))
		}
		k := slices.IndexFunc(all, func(c carbondata.Column) bool { return c.Name == name })
		if k < 0 {
			return nil,
				exit.Usage(fmt.Errorf("--columns: column %q: no such column%s", name, nearest.Hint(name, carbonNames(all))))
		}
		columns = append(columns, all[k])
	}
	return columns, nil
}

func carbonNames(columns []carbondata.Column) []string {
	list := make([]string, len(columns))
	for i := range columns {
		list[i] = columns[i].Name
	}
	return list
}

// Complete completes the columns of the CarbonData that the first argument names.
func Complete(complete func(names []string, typed string) ([]string, cobra.ShellCompDirective)) verb.Completer {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return complete(glanceCarbon(args), typed)
	}
}

// glanceCarbon returns the columns of the CarbonData that the first argument names, none if it
// cannot be opened.
func glanceCarbon(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	t, err := carbondata.Open(args[0])
	if err != nil {
		return nil
	}
	defer t.Close()
	return carbonNames(t.Schema())
}

// carbonPrinter prints rows: JSON objects, or the columns of a table.
type carbonPrinter struct {
	printer *carbonlines.Printer
	line    []byte
	json    *lines.Printer // nil: rows
	rows    *output.Writer
	batch   *batch.RecordBatch // of one row
}

func carbonRows(a *console.Console, form output.Format, columns []carbondata.Column) *carbonPrinter {
	p := &carbonPrinter{printer: carbonlines.NewPrinter(columns)}
	if form == output.JSON || form == output.JSONL {
		p.json = lines.NewPrinter(a.Stdout, schema.Binary, form == output.JSON)
		return p
	}
	list := p.printer.Columns()
	p.rows, p.batch = a.Writer(form, list), batch.New(list, 1)
	return p
}

func (p *carbonPrinter) print(row []any) error {
	if p.json != nil {
		p.line = p.printer.Append(p.line[:0], row)
		return p.json.Value(p.line)
	}
	p.batch.Reset(1)
	p.printer.SetRow(p.batch, row)
	return p.rows.Write(p.batch)
}

// Flush prints what is complete.
func (p *carbonPrinter) Flush() error {
	if p.json != nil {
		return p.json.Flush()
	}
	return p.rows.Flush()
}

// Close ends the output.
func (p *carbonPrinter) Close() error {
	if p.json != nil {
		return p.json.Close()
	}
	return p.rows.Close()
}
