package kuducmd

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/kudu"
)

// Verify is the verb "oribi kudu verify".
func Verify(a *console.Console) *cobra.Command {
	return verb.New(a, "verify FS", "Check everything: containers, superblocks, blocks, keys, counts, and logs",
		func(cmd *cobra.Command, args []string) error {
			var found console.Findings
			report := func(f kudu.Finding) { found.Print(func() error { return printKuduFinding(a, f) }) }
			err := withKudu(a, args[0], func(d *kudu.Directory) error { return d.Verify(cmd.Context(), report) })
			if errors.Is(err, kudu.ErrCorrupt) {
				report(kudu.Finding{File: args[0], Offset: -1, Problem: exit.Message(err, exit.Damage)})
				err = nil
			}
			switch {
			case found.Err != nil:
				return found.Err
			case err != nil:
				return err
			case found.N > 0:
				return exit.With(exit.Damage, fmt.Errorf("%s: findings: %d", args[0], found.N))
			}
			return a.Printf("ok\n")
		})
}

func printKuduFinding(a *console.Console, f kudu.Finding) error {
	tablet, offset, block := "null", "null", "null"
	if f.Tablet != "" {
		tablet = string(console.Quote(f.Tablet))
	}
	if f.Offset >= 0 {
		offset = strconv.FormatInt(f.Offset, 10)
	}
	if f.Block != 0 {
		block = strconv.FormatUint(uint64(f.Block), 10)
	}
	return a.Printf(`{"tablet":%s,"file":%s,"offset":%s,"block":%s,"problem":%s}`+"\n", tablet, console.Quote(f.File),
		offset, block, console.Quote(f.Problem))
}
