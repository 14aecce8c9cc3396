package tablecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

// Rename is the verb "oribi table rename".
func Rename(a *console.Console) *cobra.Command {
	return verb.New(a, "rename DIR NAME NEW", "Rename a table", func(cmd *cobra.Command, args []string) error {
		return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
			return t.Rename(cmd.Context(), args[2])
		})
	})
}

// Truncate is the verb "oribi table truncate".
func Truncate(a *console.Console) *cobra.Command {
	var yes bool
	c := verb.New(a, "truncate DIR NAME", "Delete all rows of a table but keep its history",
		func(cmd *cobra.Command, args []string) error {
			if !yes {
				return exit.With(exit.Refused,
					fmt.Errorf("table %q was not truncated: this deletes all its rows; add --yes to confirm", args[1]))
			}
			return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
				return truncate(cmd.Context(), a, t)
			})
		})
	c.Flags().BoolVar(&yes, "yes", false, "confirm the deletion of all rows")
	return c
}

// truncate deletes all rows, in one write batch if they fit in one.
func truncate(ctx context.Context, a *console.Console, t *oribi.Table) error {
	result, err := t.Truncate(ctx)
	if errors.Is(err, oribi.ErrBatchTooLarge) { // nothing has changed
		result, err = t.Truncate(ctx, oribi.InPieces())
	}
	if err != nil && result.Rows > 0 {
		return exit.WithHelp(err, fmt.Sprintf("deleted %d rows; the same command deletes the rest", result.Rows))
	}
	if err == nil {
		fmt.Fprintf(a.Stderr, "deleted %d rows\n", result.Rows)
	}
	return err
}
