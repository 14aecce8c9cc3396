package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/when"
)

// memoryLimit is the memory limit of stores that the command opens, in bytes.
const memoryLimit = 256 << 20

// withStore calls use with an existing store. Commands that only read open it as followers, so they
// work next to a writer.
func withStore(dir string, at access, use func(*oribi.Store) error) error {
	return withOptions(dir, at, oribi.Options{}, use)
}

// withOptions is withStore with options, to which it adds those that the command always uses.
func withOptions(dir string, at access, o oribi.Options, use func(*oribi.Store) error) (err error) {
	o.ErrorIfMissing, o.MemoryLimit, o.Follow = true, memoryLimit, at.readOnly
	var store *oribi.Store
	err = at.open(func() (err error) {
		store, err = oribi.Open(dir, &o)
		return err
	})
	if err != nil {
		if _, missing := os.Stat(dir); !o.Follow && errors.Is(missing, fs.ErrNotExist) {
			return &helped{err, "to create a store: oribi store init " + dir}
		}
		return damageHint(dir, err)
	}
	defer func() { err = damageHint(dir, errors.Join(err, store.Close())) }()
	return use(store)
}

// cellLimitFlag adds the flag of commands that write rows.
func cellLimitFlag(c *cobra.Command, limit *int) {
	c.Flags().IntVar(limit, "cell-limit", 0, "maximum bytes of a cell, up to 4194304 (default 65536)")
}

// checkCellLimit checks its value.
func checkCellLimit(limit int) error {
	if err := (&oribi.Options{CellLimit: limit}).Validate(); err != nil {
		return usage(fmt.Errorf("--cell-limit: %w", err))
	}
	return nil
}

// cellHint says how to allow longer cells.
func cellHint(err error) error {
	if errors.Is(err, fault.ErrCellLimit) {
		return &helped{err, "to allow longer cells: --cell-limit BYTES"}
	}
	return err
}

// withTable opens an existing table.
func withTable(dir, name string, at access, use func(*oribi.Table) error) error {
	return withStore(dir, at, func(store *oribi.Store) error {
		table, err := openTable(store, name)
		if err != nil {
			return err
		}
		return use(table)
	})
}

func (a *app) storeInit() *cobra.Command {
	var history string
	c := a.verb("init DIR", "Create an empty store", func(_ *cobra.Command, args []string) error {
		age, err := when.ParseAge(history)
		if err != nil {
			return usage(fmt.Errorf("--history: %w", err))
		}
		store, err := oribi.Open(args[0], &oribi.Options{ErrorIfExists: true, History: age, MemoryLimit: memoryLimit})
		if errors.Is(err, oribi.ErrNotStore) {
			return &failure{exitFailed, err} // the directory has other content: nothing is missing
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

// printf writes one record.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
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
				return &helped{&failure{exitDamage, fmt.Errorf("%s: findings: %d", args[0], findings)},
					"keep a copy of the store; then restore a copy from before the damage, or load the data again"}
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

// quote writes text as a JSON string.
func quote(text string) []byte {
	return celltext.AppendQuoted(nil, []byte(strings.ToValidUTF8(text, "\ufffd")))
}
