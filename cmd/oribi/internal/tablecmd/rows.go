package tablecmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// freely is the number of rows that a command changes without a confirmation.
const freely = 1000

// rowsFlags are the flags of the verbs that change many rows.
type rowsFlags struct {
	where    []string
	set      []string
	yes      bool
	inPieces bool
	limit    int // --cell-limit, of update
}

func (f *rowsFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.yes, "yes", false, fmt.Sprintf("change more than %d rows without asking", freely))
	c.Flags().BoolVar(&f.inPieces, "in-pieces", false,
		"if one write batch would be too large, commit several, one after the other; each is atomic")
}

// ofMany lists the flags that make update and delete change many rows.
var ofMany = []string{"where", "set", "yes", "in-pieces"}

// one reports whether a command line of update or delete names one row: it has its JSON argument,
// what, and no flag of those that choose rows.
func (f *rowsFlags) one(cmd *cobra.Command, args []string, what string) (bool, error) {
	given := len(args) == 3
	for _, name := range ofMany {
		flag := cmd.Flags().Lookup(name)
		if flag != nil && flag.Changed && given {
			return false,
				exit.Usage(fmt.Errorf("%s names one row, and --%s is for all rows that match --where: give one of them",
					what, name))
		}
	}
	switch {
	case given:
		return true, nil
	case len(f.where) == 0:
		return false, verb.SeeHelp(cmd, exit.Usage(fmt.Errorf("which rows? give %s for one row, or --where EXPR", what)))
	case cmd.Flags().Lookup("set") != nil && len(f.set) == 0:
		return false, verb.SeeHelp(cmd, exit.Usage(errors.New("--set COLUMN=VALUE is missing")))
	}
	return false, nil
}

// options returns the options of a bulk call. what describes the call in a question: "update",
// "delete", or "restore".
func (f *rowsFlags) options(
	ctx context.Context, a *console.Console, what string, t *oribi.Table,
) []oribi.BulkOption {
	var options []oribi.BulkOption
	if f.inPieces {
		options = append(options, oribi.InPieces())
	}
	if !f.yes {
		options = append(options, oribi.Confirm(func(n int64) error {
			if n <= freely {
				return nil
			}
			return ask(ctx, a, n, fmt.Sprintf("%s %d rows of table %q", what, n, t.Name()))
		}))
	}
	return options
}

// ask asks on a terminal whether to do what to so many rows. Without a terminal, or if the answer
// is no, it returns an error.
func ask(ctx context.Context, a *console.Console, rows int64, what string) error {
	in, ok := a.Stdin.(*os.File)
	if !ok || !console.IsTerminal(in) || !console.IsTerminal(a.ErrFile) {
		return exit.Usage(fmt.Errorf("%d rows need a confirmation: add --yes; nothing was changed", rows))
	}
	fmt.Fprintf(a.Stderr, "%s? [y/N] ", what)
	answers := make(chan string, 1)
	go func() { // it may wait for a line until the process exits
		line, _ := bufio.NewReader(in).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return ctx.Err()
	case answer := <-answers:
		if answer == "y" || answer == "yes" {
			return nil
		}
	}
	return exit.With(exit.Refused, errors.New("nothing was changed"))
}

// printBulk prints the result of a bulk call, or returns its error with the next step for the user.
func printBulk(a *console.Console, res oribi.BulkResult, err error) error {
	switch {
	case errors.Is(err, oribi.ErrBatchTooLarge):
		return exit.WithHelp(err, "nothing was changed; --in-pieces commits several write batches, one after the other, "+
			"each of them atomic")
	case err != nil && res.Rows > 0:
		return exit.WithHelp(err, fmt.Sprintf("%d rows were changed before, in complete write batches; the same command "+
			"changes the others", res.Rows))
	case err != nil:
		return err
	case res.Rows == 0:
		return a.Printf(`{"rows":0,"ts":null}` + "\n")
	}
	return a.Printf(`{"rows":%d,"ts":%d}`+"\n", res.Rows, res.Timestamp)
}

// changeRows runs update or delete for the rows that --where selects.
func changeRows(a *console.Console,
	cmd *cobra.Command, args []string, f *rowsFlags, what string,
	change func(ctx context.Context, t *oribi.Table, options []oribi.BulkOption) (oribi.BulkResult, error),
) error {
	return access.WithOptions(args[0], access.Writing(cmd), oribi.Options{CellLimit: f.limit},
		func(store *oribi.Store) error {
			t, err := access.OpenTable(store, args[1])
			if err != nil {
				return err
			}
			predicates, err := flags.Predicates(t.Schema().Columns, f.where)
			if err != nil {
				return err
			}
			options := append(f.options(cmd.Context(), a, what, t), oribi.Where(predicates...))
			result, err := change(cmd.Context(), t, options)
			return printBulk(a, result, err)
		})
}

// Update is the verb "oribi table update".
func Update(a *console.Console) *cobra.Command {
	var f rowsFlags
	c := verb.New(a, "update DIR NAME [JSON]", "Set columns of one row, or of all rows that match --where",
		func(cmd *cobra.Command, args []string) error {
			one, err := f.one(cmd, args, "JSON")
			if err == nil {
				err = flags.CheckCellLimit(f.limit)
			}
			switch {
			case err != nil:
				return err
			case one:
				return changeRow(a, cmd, args, oribi.OpUpdate, f.limit)
			}
			return changeRows(a, cmd, args, &f, "update",
				func(ctx context.Context, t *oribi.Table, options []oribi.BulkOption) (oribi.BulkResult, error) {
					set, err := setOf(t.Schema(), f.set)
					if err != nil {
						return oribi.BulkResult{}, exit.Usage(err)
					}
					return t.UpdateWhere(ctx, set, options...)
				})
		})
	flags.Where(c, &f.where)
	c.Flags().StringArrayVar(&f.set, "set", nil,
		"set a column in the rows that match, `COLUMN=VALUE`, for example: --set mode=100644 --set seen=null")
	flags.CellLimit(c, &f.limit)
	f.add(c)
	return c
}

// Delete is the verb "oribi table delete".
func Delete(a *console.Console) *cobra.Command {
	var f rowsFlags
	c := verb.New(a, "delete DIR NAME [KEY]", "Delete one row, or all rows that match --where",
		func(cmd *cobra.Command, args []string) error {
			one, err := f.one(cmd, args, "KEY")
			switch {
			case err != nil:
				return err
			case one:
				return changeRow(a, cmd, args, oribi.OpDelete, 0)
			}
			return changeRows(a, cmd, args, &f, "delete",
				func(ctx context.Context, t *oribi.Table, options []oribi.BulkOption) (oribi.BulkResult, error) {
					return t.DeleteWhere(ctx, options...)
				})
		})
	flags.Where(c, &f.where)
	f.add(c)
	return c
}

// setOf parses the arguments of --set.
func setOf(s *schema.Schema, list []string) (oribi.Row, error) {
	row := oribi.Row{}
	for _, arg := range list {
		name, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("--set: want COLUMN=VALUE, not %q", arg)
		}
		i := s.Index(name)
		if i < 0 {
			return nil, fmt.Errorf("--set: column %q: %w", name, s.NoColumn(name))
		}
		if _, twice := row[name]; twice {
			return nil, fmt.Errorf("--set: column %q appears twice", name)
		}
		value, err := setCell(&s.Columns[i], text)
		if err != nil {
			return nil, fmt.Errorf("--set: column %q: %w", name, err)
		}
		row[name] = value
	}
	return row, nil
}

// setCell returns the cell that a value of --set stands for: null is NULL, a text in double quotes
// is JSON, and everything else is the text of a value, as in CSV.
func setCell(c *schema.Column, text string) (any, error) {
	var b []byte
	var err error
	switch {
	case text == "null":
		return nil, nil
	case strings.HasPrefix(text, `"`):
		value := jsonin.Trim([]byte(text))
		if err = jsonin.Check(value); err == nil {
			b, err = cell.FromJSON([]byte{}, c, value)
		}
	default:
		b, err = cell.FromField([]byte{}, c, []byte(text))
	}
	return oribi.Cell(b), err
}

// Restore is the verb "oribi table restore".
func Restore(a *console.Console) *cobra.Command {
	var f rowsFlags
	var to string
	c := verb.New(a, "restore DIR NAME", "Change a table's rows back to what they were at an earlier time",
		func(cmd *cobra.Command, args []string) error {
			ts, err := when.ParseState(to, time.Now())
			if err == nil && ts == when.Latest {
				err = errors.New("latest is the present state: want an earlier time")
			}
			if err != nil {
				return exit.Usage(fmt.Errorf("--to: %w", err))
			}
			return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
				result, err := t.RestoreTo(cmd.Context(), ts, f.options(cmd.Context(), a, "restore", t)...)
				return printBulk(a, result, err)
			})
		})
	flags.Time(c, &to, "to", "", "restore the rows of this time")
	verb.Require(c, "to")
	f.add(c)
	return c
}
