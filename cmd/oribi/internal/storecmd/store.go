// Package storecmd has the verbs of "oribi store", and inspect: stores as a whole, their copies,
// and what is left of damaged ones.
package storecmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/when"
)

// Init is the verb "oribi store init".
func Init(a *console.Console) *cobra.Command {
	var history string
	c := verb.New(a, "init DIR", "Create an empty store", func(_ *cobra.Command, args []string) error {
		age, err := when.ParseAge(history)
		if err != nil {
			return exit.Usage(fmt.Errorf("--history: %w", err))
		}
		store, err := oribi.Open(args[0], &oribi.Options{ErrorIfExists: true, History: age, MemoryLimit: access.MemoryLimit})
		if errors.Is(err, oribi.ErrNotStore) {
			return exit.With(exit.Failed, err) // the directory has other content: nothing is missing
		}
		if err != nil {
			return err
		}
		return store.Close()
	})
	c.Flags().StringVar(&history, "history", "forever",
		"how long tables keep old versions by default: forever, 7d, 15m")
	return c
}

// Info is the verb "oribi store info".
func Info(a *console.Console) *cobra.Command {
	return verb.Printing(a, "info DIR", "Describe a store",
		func(_ *cobra.Command, args []string, form output.Format) error {
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				info, err := store.Info()
				if err != nil {
					return err
				}
				return a.PrintFields(storeFields(info, store.Recovery(), form), form)
			})
		})
}

// storeFields returns the fields that describe a store.
func storeFields(info oribi.Info, r oribi.Recovery, form output.Format) *console.Fields {
	size := func(n int64) any {
		if form == output.Table {
			return figures.Size(n)
		}
		return n
	}
	var f, sizes, recovery console.Fields
	sizes.Plain("live", size(info.Bytes.Live))
	sizes.Plain("dead", size(info.Bytes.Dead))
	sizes.Plain("log", size(info.Bytes.Log))
	sizes.Plain("metadata", size(info.Bytes.Metadata))
	recovery.Add("clean", r.Clean, "frames", r.Frames, "torn_bytes", r.TornBytes,
		"repaired_bits", r.RepairedBits)
	f.Add("uuid", info.UUID, "format", info.Format, "tables", info.Tables, "rowsets", info.RowSets)
	f.Part("bytes", &sizes, form)
	f.Part("recovery", &recovery, form)
	return &f
}

// Verify is the verb "oribi store verify".
func Verify(a *console.Console) *cobra.Command {
	var deep bool
	c := verb.New(a, "verify DIR", "Check every checksum and count of a store",
		func(cmd *cobra.Command, args []string) error {
			bar := a.Bar(progress.Options{What: "verify", Unit: progress.Bytes})
			defer bar.Stop()
			var found console.Findings
			report := func(f oribi.Finding) {
				bar.Stop() // findings may be printed on the same terminal
				found.Print(func() error { return printFinding(a, f) })
			}
			err := access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				verify := store.Verify
				if deep {
					verify = store.VerifyDeep
				}
				return verify(cmd.Context(), report, shown(bar))
			})
			bar.Stop()
			if errors.Is(err, oribi.ErrCorrupt) {
				report(oribi.Finding{File: args[0], Problem: exit.Message(err, exit.Damage)})
				err = nil
			}
			switch {
			case found.Err != nil:
				return found.Err
			case err != nil:
				return err
			case found.N > 0:
				return exit.WithHelp(exit.With(exit.Damage, fmt.Errorf("%s: findings: %d", args[0], found.N)),
					"keep a copy of the store; then restore a copy from before the damage, or load the data again")
			}
			return a.Printf("ok\n")
		})
	c.Flags().BoolVar(&deep, "deep", false,
		"check also what no checksum covers: filters, indexes, histories, counts, names of blocks")
	return c
}

func printFinding(a *console.Console, f oribi.Finding) error {
	block := "null"
	if f.Block != 0 {
		block = fmt.Sprint(f.Block)
	}
	return a.Printf(`{"file":%s,"offset":%d,"block":%s,"problem":%s}`+"\n", console.Quote(f.File),
		f.Offset, block, console.Quote(f.Problem))
}
