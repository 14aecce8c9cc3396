package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
)

func (a *app) tableRename() *cobra.Command {
	return a.verb("rename DIR NAME NEW", "Rename a table", func(cmd *cobra.Command, args []string) error {
		return withTable(args[0], args[1], writing(cmd), func(t *oribi.Table) error {
			return t.Rename(cmd.Context(), args[2])
		})
	})
}

func (a *app) tableTruncate() *cobra.Command {
	var yes bool
	c := a.verb("truncate DIR NAME", "Delete all rows of a table but keep its history",
		func(cmd *cobra.Command, args []string) error {
			if !yes {
				return withCode(exitRefused,
					fmt.Errorf("table %q was not truncated: this deletes all its rows; add --yes to confirm", args[1]))
			}
			return withTable(args[0], args[1], writing(cmd), func(t *oribi.Table) error {
				return a.truncate(cmd.Context(), t)
			})
		})
	c.Flags().BoolVar(&yes, "yes", false, "confirm the deletion of all rows")
	return c
}

// truncate deletes all rows, in one write batch if they fit in one.
func (a *app) truncate(ctx context.Context, t *oribi.Table) error {
	result, err := t.Truncate(ctx)
	if errors.Is(err, oribi.ErrBatchTooLarge) { // nothing has changed
		result, err = t.Truncate(ctx, oribi.InPieces())
	}
	if err != nil && result.Rows > 0 {
		return withHelp(err, fmt.Sprintf("deleted %d rows; the same command deletes the rest", result.Rows))
	}
	if err == nil {
		fmt.Fprintf(a.stderr, "deleted %d rows\n", result.Rows)
	}
	return err
}
