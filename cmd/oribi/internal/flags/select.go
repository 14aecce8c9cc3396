package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/schema"
)

// Select are the flags that select rows and columns.
type Select struct {
	Columns        []string
	Where          []string
	AsOf, From, To string
	Order          string
	Reverse        bool
	Desc           bool // table scan only
	Limit          int64
	Explain        bool
}

// Add adds the flags that every scan has.
func (f *Select) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.Columns, "columns", nil, "columns to print, in this order (default: all)")
	Where(c, &f.Where)
	c.Flags().StringVar(&f.From, "from-key", "", "first key, as JSON; for a compound key its first columns are enough")
	c.Flags().StringVar(&f.To, "to-key", "", "key before which to stop, as JSON")
	c.Flags().StringVar(&f.Order, "order", "key", "key, or any, which is faster")
	c.Flags().BoolVar(&f.Reverse, "reverse", false,
		"print the rows in descending key order; --limit takes the last ones")
	c.Flags().Int64Var(&f.Limit, "limit", 0, "maximum number of rows to print")
	Explain(c, &f.Explain)
}

// Check checks what does not depend on the table. columns reports whether --order may be a column.
func (f *Select) Check(cmd *cobra.Command, columns bool) error {
	switch _, ok := f.OfColumn(); {
	case columns:
		if err := f.checkOrder(cmd); err != nil {
			return err
		}
	case ok:
		return exit.Usage(fmt.Errorf("--order: want key or any, not %q", f.Order))
	}
	if f.Reverse && f.Order == "any" {
		return exit.Usage(errors.New("--reverse is for --order key"))
	}
	if cmd.Flags().Changed("limit") && f.Limit < 1 {
		return exit.Usage(fmt.Errorf("--limit: want at least 1, not %d", f.Limit))
	}
	return nil
}

// AddBounds adds the key range that the flags give.
func (f *Select) AddBounds(
	options []oribi.ScanOption, s *schema.Schema, changed func(flag string) bool,
) ([]oribi.ScanOption, error) {
	for _, bound := range []struct {
		flag, text string
		option     func(key any) oribi.RangeOption
	}{{"from-key", f.From, oribi.From}, {"to-key", f.To, oribi.To}} {
		if !changed(bound.flag) {
			continue
		}
		cells, err := cell.Key(s, bound.text, true)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--%s: %w", bound.flag, err))
		}
		options = append(options, bound.option(cells))
	}
	return options, nil
}

// OfColumn reports whether --order names a column, and returns its name.
func (f *Select) OfColumn() (column string, ok bool) {
	if f.Order == "key" || f.Order == "any" {
		return "", false
	}
	if n := len(f.Order); n > 2 && f.Order[0] == '"' && f.Order[n-1] == '"' {
		return strings.ReplaceAll(f.Order[1:n-1], `""`, `"`), true
	}
	return f.Order, true
}

// checkOrder checks the flags of the order of table scan.
func (f *Select) checkOrder(cmd *cobra.Command) error {
	_, ok := f.OfColumn()
	switch {
	case !ok && f.Desc:
		return exit.Usage(errors.New("--desc is for --order COLUMN; for descending key order: --reverse"))
	case ok && f.Reverse:
		return exit.Usage(errors.New("--reverse is for --order key; for the order of a column: --desc"))
	case ok && !cmd.Flags().Changed("limit"):
		return exit.Usage(fmt.Errorf("--order: want key or any, or a column together with --limit N, not only %q", f.Order))
	case ok && f.Limit > MaxFirstRows:
		return exit.Usage(fmt.Errorf("--limit: want at most %d with --order COLUMN, not %d", MaxFirstRows, f.Limit))
	}
	return nil
}

// MaxFirstRows is the greatest --limit of a scan in the order of a column, which keeps so many
// rows.
const MaxFirstRows = 100_000
