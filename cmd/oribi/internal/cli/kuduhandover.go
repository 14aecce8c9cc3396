package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/kudu/handover"
)

func (a *app) kuduExport() *cobra.Command {
	return a.verb("export DIR NAME OUT", "Make the directory of a Kudu tablet server from a table, with its history",
		func(cmd *cobra.Command, args []string) error {
			return withTable(args[0], args[1], writing(cmd), func(t *oribi.Table) error {
				r, err := handover.Export(cmd.Context(), t, args[2], handover.ExportOptions{})
				if err != nil {
					return err
				}
				return a.printHandover(r)
			})
		})
}

func (a *app) kuduInstall() *cobra.Command {
	var o handover.InstallOptions
	c := a.verb("install DIR NAME FS TABLET",
		"Put a table, with its history, into an empty tablet of a stopped Kudu tablet server",
		func(cmd *cobra.Command, args []string) error {
			o.Warn = a.kuduWarnings()
			return withTable(args[0], args[1], writing(cmd), func(t *oribi.Table) error {
				r, err := handover.Install(cmd.Context(), t, args[2], args[3], o)
				if errors.Is(err, handover.ErrUnsupported) && unsupportedKudu(args[2]) {
					return withCode(exitDamage, err) // the directory, not the table
				}
				if err != nil {
					return err
				}
				return a.printHandover(r)
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
func (a *app) printHandover(r handover.Result) error {
	return a.printf(`{"tablet":%s,"rowsets":%d,"rows":%d,"bytes":%d}`+"\n", quote(r.Tablet), r.RowSets, r.Rows, r.Bytes)
}
