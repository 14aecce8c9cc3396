package cli

import (
	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
)

func (a *app) tableExtract() *cobra.Command {
	return a.verb("extract DIR NAME OUT", "Copy a table's rowsets into a new folder of loose files, which Kudu's programs read", func(cmd *cobra.Command, args []string) error {
		return withTable(args[0], args[1], writing, func(t *oribi.Table) error { return t.Extract(cmd.Context(), args[2]) })
	})
}
