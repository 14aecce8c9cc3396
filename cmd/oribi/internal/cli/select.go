package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/schema"
)

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

// ofColumn reports whether --order names a column, and returns its name.
func (f *selectFlags) ofColumn() (column string, ok bool) {
	if f.order == "key" || f.order == "any" {
		return "", false
	}
	if n := len(f.order); n > 2 && f.order[0] == '"' && f.order[n-1] == '"' {
		return strings.ReplaceAll(f.order[1:n-1], `""`, `"`), true
	}
	return f.order, true
}

// checkOrder checks the flags of the order of table scan.
func (f *selectFlags) checkOrder(cmd *cobra.Command) error {
	_, ok := f.ofColumn()
	switch {
	case !ok && f.desc:
		return usage(errors.New("--desc is for --order COLUMN; for descending key order: --reverse"))
	case ok && f.reverse:
		return usage(errors.New("--reverse is for --order key; for the order of a column: --desc"))
	case ok && !cmd.Flags().Changed("limit"):
		return usage(fmt.Errorf("--order: want key or any, or a column together with --limit N, not only %q", f.order))
	case ok && f.limit > maxFirstRows:
		return usage(fmt.Errorf("--limit: want at most %d with --order COLUMN, not %d", maxFirstRows, f.limit))
	}
	return nil
}

// maxFirstRows is the greatest --limit of a scan in the order of a column, which keeps so many
// rows.
const maxFirstRows = 100_000
