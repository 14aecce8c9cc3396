package kuducmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/kudu/handover"
)

// Export is the verb "oribi kudu export".
func Export(a *console.Console) *cobra.Command {
	return verb.New(a, "export DIR NAME OUT", "Make the directory of a Kudu tablet server from a table, with its history",
		func(cmd *cobra.Command, args []string) error {
			return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
				r, err := handover.Export(cmd.Context(), t, args[2], handover.ExportOptions{})
				if err != nil {
					return err
				}
				return printHandover(a, r)
			})
		})
}

// Install is the verb "oribi kudu install".
func Install(a *console.Console) *cobra.Command {
	var o handover.InstallOptions
	c := verb.New(a, "install DIR NAME FS TABLET",
		"Put a table, with its history, into an empty tablet of a stopped Kudu tablet server",
		func(cmd *cobra.Command, args []string) error {
			o.Warn = kuduWarnings(a)
			return access.WithTable(args[0], args[1], access.Writing(cmd), func(t *oribi.Table) error {
				r, err := handover.Install(cmd.Context(), t, args[2], args[3], o)
				if errors.Is(err, handover.ErrUnsupported) && unsupportedKudu(args[2]) {
					return exit.With(exit.Damage, err) // the directory, not the table
				}
				if err != nil {
					return err
				}
				return printHandover(a, r)
			})
		})
	c.Flags().BoolVar(&o.PartitionOnly, "partition-only", false, "only the rows of the tablet's partition")
	return c
}

// unsupportedKudu reports whether a directory is one of a server that cannot be read.
func unsupportedKudu(dir string) bool {
	d, err := kudu.Open(dir, kudu.Options{})
	if err == nil {
		d.Close() // reading is complete: an error of Close does not matter
	}
	return errors.Is(err, kudu.ErrUnsupported)
}

// printHandover prints what a tablet got.
func printHandover(a *console.Console, r handover.Result) error {
	return a.Printf(`{"tablet":%s,"rowsets":%d,"rows":%d,"bytes":%d}`+"\n", console.Quote(r.Tablet), r.RowSets,
		r.Rows, r.Bytes)
}
