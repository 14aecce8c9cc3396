package cli

import (
	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
)

func (a *app) storeCheckpoint() *cobra.Command {
	return a.verb("checkpoint DIR OUT", "Copy a store, as of now, to a new directory", func(cmd *cobra.Command, args []string) error {
		return withStore(args[0], reading, func(store *oribi.Store) error {
			c, err := store.Checkpoint(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			return a.printf(`{"ts":%d,"bytes":%d}`+"\n", uint64(c.Timestamp), c.Bytes)
		})
	})
}
