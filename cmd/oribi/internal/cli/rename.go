package cli

import (
	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
)

func (a *app) tableRename() *cobra.Command {
	return a.verb("rename DIR NAME NEW", "Give a table another name", func(cmd *cobra.Command, args []string) error {
		return withTable(args[0], args[1], writing, func(t *oribi.Table) error { return t.Rename(cmd.Context(), args[2]) })
	})
}
