package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/when"
	"github.com/oribi-db/oribi/internal/celltext"
)

// memoryLimit is what stores that the command opens may hold, bytes.
const memoryLimit = 256 << 20

// withStore opens an existing store for the time of use. Who only reads opens it read-only.
func withStore(dir string, readOnly bool, use func(*oribi.Store) error) (err error) {
	store, err := oribi.Open(dir, &oribi.Options{ReadOnly: readOnly, ErrorIfMissing: true, MemoryLimit: memoryLimit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return use(store)
}

// withTable opens an existing table.
func withTable(dir, name string, readOnly bool, use func(*oribi.Table) error) error {
	return withStore(dir, readOnly, func(store *oribi.Store) error {
		table, err := store.Table(name)
		if err != nil {
			return err
		}
		return use(table)
	})
}

const (
	reading = true
	writing = false
)

func (a *app) storeInit() *cobra.Command {
	var history string
	c := a.verb("init DIR", "Make an empty store", func(_ *cobra.Command, args []string) error {
		age, err := when.ParseAge(history)
		if err != nil {
			return usage(fmt.Errorf("--history: %w", err))
		}
		store, err := oribi.Open(args[0], &oribi.Options{ErrorIfExists: true, History: age, MemoryLimit: memoryLimit})
		if errors.Is(err, oribi.ErrNotStore) {
			return &failure{exitFailed, err} // there is something else: nothing is missing
		}
		if err != nil {
			return err
		}
		return store.Close()
	})
	c.Flags().StringVar(&history, "history", "forever", "how long old versions are kept in tables that say nothing: forever, 7d, 15m")
	return c
}

func (a *app) storeInfo() *cobra.Command {
	return a.verb("info DIR", "Tell what a store holds", func(_ *cobra.Command, args []string) error {
		return withStore(args[0], reading, func(store *oribi.Store) error {
			info, err := store.Info()
			if err != nil {
				return err
			}
			r := store.Recovery()
			return a.printf(`{"uuid":%q,"format":%d,"tables":%d,"rowsets":%d,`+
				`"bytes":{"live":%d,"dead":%d,"log":%d,"metadata":%d},`+
				`"recovery":{"clean":%t,"frames":%d,"torn_bytes":%d,"repaired_bits":%d}}`+"\n",
				info.UUID, info.Format, info.Tables, info.RowSets,
				info.Bytes.Live, info.Bytes.Dead, info.Bytes.Log, info.Bytes.Metadata,
				r.Clean, r.Frames, r.TornBytes, r.RepairedBits)
		})
	})
}

// printf writes one record.
func (a *app) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(a.stdout, format, args...)
	return err
}

func (a *app) storeVerify() *cobra.Command {
	return a.verb("verify DIR", "Check every checksum and every count of a store", func(cmd *cobra.Command, args []string) error {
		findings := 0
		var printed error
		report := func(f oribi.Finding) {
			findings++
			if printed == nil {
				printed = a.printFinding(f)
			}
		}
		err := withStore(args[0], reading, func(store *oribi.Store) error { return store.Verify(cmd.Context(), report) })
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
			return &failure{exitDamage, fmt.Errorf("%s: findings: %d", args[0], findings)}
		}
		return a.printf("ok\n")
	})
}

func (a *app) printFinding(f oribi.Finding) error {
	block := "null"
	if f.Block != 0 {
		block = fmt.Sprint(f.Block)
	}
	return a.printf(`{"file":%s,"offset":%d,"block":%s,"problem":%s}`+"\n", quote(f.File), f.Offset, block, quote(f.Problem))
}

// quote writes text as a JSON string.
func quote(text string) []byte {
	return celltext.AppendQuoted(nil, []byte(strings.ToValidUTF8(text, "\ufffd")))
}
