package tablecmd

import (
	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

// Extract is the verb "oribi table extract".
func Extract(a *console.Console) *cobra.Command {
	return verb.New(a, "extract DIR NAME OUT",
		"Copy the files of a table's rowsets to a new directory, where Kudu's tools can read them",
		func(cmd *cobra.Command, args []string) error {
			return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
				return t.Extract(cmd.Context(), args[2])
			})
		})
}
