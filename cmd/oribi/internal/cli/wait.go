package cli

import "github.com/spf13/cobra"

// writers are the commands that change a store or a repository. They have the flag --wait.
var writers = []string{
	"store backup", "store prune",
	"table create", "table load", "table alter", "table rename", "table truncate", "table drop", "table put",
	"table update", "table delete",
	"table restore", "table flush", "table compact", "table extract",
	"kv put", "kv delete", "kv load", "apply", "kudu import", "kudu export", "kudu install", "kudu pull",
}

// waitFlags adds --wait to the writers below root.
func waitFlags(root *cobra.Command) {
	of := map[string]bool{}
	for _, name := range writers {
		of["oribi "+name] = true
	}
	for _, verb := range leaves(root) {
		if of[verb.CommandPath()] {
			verb.Flags().String("wait", "0s",
				"wait so long, for example 30s, if another process has locked the store, instead of failing at once")
		}
	}
}
