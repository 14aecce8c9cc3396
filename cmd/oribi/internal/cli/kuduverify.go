package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/kudu"
)

func (a *app) kuduVerify() *cobra.Command {
	return a.verb("verify FS", "Check everything: containers, superblocks, blocks, keys, counts, and logs",
		func(cmd *cobra.Command, args []string) error {
			findings := 0
			var printed error
			report := func(f kudu.Finding) {
				if findings++; printed == nil {
					printed = a.printKuduFinding(f)
				}
			}
			err := a.withKudu(args[0], func(d *kudu.Directory) error { return d.Verify(cmd.Context(), report) })
			if errors.Is(err, kudu.ErrCorrupt) {
				report(kudu.Finding{File: args[0], Offset: -1, Problem: message(err, exitDamage)})
				err = nil
			}
			switch {
			case printed != nil:
				return printed
			case err != nil:
				return err
			case findings > 0:
				return withCode(exitDamage, fmt.Errorf("%s: findings: %d", args[0], findings))
			}
			return a.printf("ok\n")
		})
}

func (a *app) printKuduFinding(f kudu.Finding) error {
	tablet, offset, block := "null", "null", "null"
	if f.Tablet != "" {
		tablet = string(quote(f.Tablet))
	}
	if f.Offset >= 0 {
		offset = strconv.FormatInt(f.Offset, 10)
	}
	if f.Block != 0 {
		block = strconv.FormatUint(uint64(f.Block), 10)
	}
	return a.printf(`{"tablet":%s,"file":%s,"offset":%s,"block":%s,"problem":%s}`+"\n", tablet, quote(f.File),
		offset, block, quote(f.Problem))
}
