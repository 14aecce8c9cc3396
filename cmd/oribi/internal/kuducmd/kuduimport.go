package kuducmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/kudu"
	"github.com/oribi-db/oribi/kudu/handover"
	"github.com/oribi-db/oribi/mvcc"
)

// Import is the verb "oribi kudu import".
func Import(a *console.Console) *cobra.Command {
	var asOf string
	c := verb.New(a, "import FS WHAT DIR [NAME]", "Copy a table or tablet into a store, with its history",
		func(cmd *cobra.Command, args []string) error {
			at, err := parseKuduTime("as-of", asOf)
			if err != nil {
				return err
			}
			if len(args) > 3 && args[3] == "" {
				return exit.Usage(errors.New("the name of the table is empty"))
			}
			return withKuduTable(cmd.Context(), a, args[0], args[1], func(from *kudu.Table) error {
				o := handover.ImportOptions{RowsOnly: cmd.Flags().Changed("as-of"), AsOf: mvcc.Max}
				snap, err := at.snapshot(from)
				if err != nil {
					return err
				}
				if snap != mvcc.Everything {
					o.AsOf = mvcc.Timestamp(snap) - 1
				}
				if len(args) > 3 {
					o.Name = args[3]
				}
				return storeFailure(access.WithStore(args[2], access.Writing(cmd), func(to *oribi.Store) error {
					return importTable(cmd.Context(), a, to, from, o)
				}))
			})
		})
	flags.Time(c, &asOf, "as-of", "latest", "copy only the rows as of this time, encoded again")
	return c
}

// storeFailure gives errors of the store that the directory could have too the exit codes that they
// have for stores.
func storeFailure(err error) error {
	if errors.Is(err, oribi.ErrUnsupported) || errors.Is(err, oribi.ErrFuture) {
		return exit.With(exit.Failed, err)
	}
	return err
}

// importTable imports a table and prints what there is of it now.
func importTable(
	ctx context.Context, a *console.Console, to *oribi.Store, from *kudu.Table, o handover.ImportOptions,
) error {
	t, err := handover.Import(ctx, to, from, o)
	if err != nil {
		return err
	}
	var rows, bytes int64
	sets := t.Layout().RowSets
	for _, r := range sets {
		rows += r.LiveRows
		bytes += r.Bytes
	}
	return a.Printf(`{"table":%s,"rowsets":%d,"rows":%d,"bytes":%d}`+"\n", console.Quote(t.Name()), len(sets), rows, bytes)
}
