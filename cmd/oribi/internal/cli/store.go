package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/when"
)

func (a *app) storeInit() *cobra.Command {
	var history string
	c := a.verb("init DIR", "Create an empty store", func(_ *cobra.Command, args []string) error {
		age, err := when.ParseAge(history)
		if err != nil {
			return usage(fmt.Errorf("--history: %w", err))
		}
		store, err := oribi.Open(args[0], &oribi.Options{ErrorIfExists: true, History: age, MemoryLimit: memoryLimit})
		if errors.Is(err, oribi.ErrNotStore) {
			return withCode(exitFailed, err) // the directory has other content: nothing is missing
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

func (a *app) storeInfo() *cobra.Command {
	var format string
	c := a.verb("info DIR", "Describe a store", func(_ *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		return withStore(args[0], reading, func(store *oribi.Store) error {
			info, err := store.Info()
			if err != nil {
				return err
			}
			return a.printFields(storeFields(info, store.Recovery(), form), form)
		})
	})
	formatFlag(c, &format)
	return c
}

// storeFields returns the fields that describe a store.
func storeFields(info oribi.Info, r oribi.Recovery, form output.Format) *fields {
	size := func(n int64) any {
		if form == output.Table {
			return figures.Size(n)
		}
		return n
	}
	var f, sizes, recovery fields
	sizes.plain("live", size(info.Bytes.Live))
	sizes.plain("dead", size(info.Bytes.Dead))
	sizes.plain("log", size(info.Bytes.Log))
	sizes.plain("metadata", size(info.Bytes.Metadata))
	recovery.plain("clean", r.Clean)
	recovery.plain("frames", r.Frames)
	recovery.plain("torn_bytes", r.TornBytes)
	recovery.plain("repaired_bits", r.RepairedBits)
	f.text("uuid", info.UUID)
	f.plain("format", info.Format)
	f.plain("tables", info.Tables)
	f.plain("rowsets", info.RowSets)
	f.part("bytes", &sizes, form)
	f.part("recovery", &recovery, form)
	return &f
}

func (a *app) storeVerify() *cobra.Command {
	var deep bool
	c := a.verb("verify DIR", "Check every checksum and count of a store",
		func(cmd *cobra.Command, args []string) error {
			bar := a.bar(progress.Options{What: "verify", Unit: progress.Bytes})
			defer bar.Stop()
			findings := 0
			var printed error
			report := func(f oribi.Finding) {
				findings++
				bar.Stop() // findings may be printed on the same terminal
				if printed == nil {
					printed = a.printFinding(f)
				}
			}
			err := withStore(args[0], reading, func(store *oribi.Store) error {
				options := []oribi.VerifyOption{oribi.VerifyProgress(func(done, total int64) {
					bar.SetTotal(total)
					bar.Set(done)
				})}
				if deep {
					options = append(options, oribi.Deep())
				}
				return store.Verify(cmd.Context(), report, options...)
			})
			bar.Stop()
			if errors.Is(err, oribi.ErrCorrupt) {
				report(oribi.Finding{File: args[0], Problem: message(err, exitDamage)})
				err = nil
			}
			switch {
			case printed != nil:
				return printed
			case err != nil:
				return err
			case findings > 0:
				return withHelp(withCode(exitDamage, fmt.Errorf("%s: findings: %d", args[0], findings)),
					"keep a copy of the store; then restore a copy from before the damage, or load the data again")
			}
			return a.printf("ok\n")
		})
	c.Flags().BoolVar(&deep, "deep", false,
		"check also what no checksum covers: filters, indexes, histories, counts, names of blocks")
	return c
}

func (a *app) printFinding(f oribi.Finding) error {
	block := "null"
	if f.Block != 0 {
		block = fmt.Sprint(f.Block)
	}
	return a.printf(`{"file":%s,"offset":%d,"block":%s,"problem":%s}`+"\n", quote(f.File),
		f.Offset, block, quote(f.Problem))
}
