package cli

import (
	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
)

func (a *app) tableExtract() *cobra.Command {
	return a.verb("extract DIR NAME OUT",
		"Copy the files of a table's rowsets to a new directory, where Kudu's tools can read them",
		func(cmd *cobra.Command, args []string) error {
			return withTable(args[0], args[1], writing(cmd), func(t *oribi.Table) error {
				return t.Extract(cmd.Context(), args[2])
			})
		})
}
