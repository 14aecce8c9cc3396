// Package tablecmd has the verbs of "oribi table" except load and export: reading and changing
// rows, columns, and settings.
package tablecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/schemafile"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/schema"
)

// Create is the verb "oribi table create".
func Create(a *console.Console) *cobra.Command {
	var file, history string
	c := verb.New(a, "create DIR NAME", "Create a table from a schema file",
		func(cmd *cobra.Command, args []string) error {
			text, err := a.ReadInput(file)
			if err != nil {
				return err
			}
			t, err := schemafile.Read(text)
			if err != nil {
				return exit.Usage(fmt.Errorf("%s: %w", file, err))
			}
			if history != "" {
				if t.History, err = when.ParseAge(history); err != nil {
					return exit.Usage(fmt.Errorf("--history: %w", err))
				}
			}
			return access.WithStore(args[0], access.Writing(cmd), func(store *oribi.Store) error {
				return CreateTable(store, args[1], t)
			})
		})
	c.Flags().StringVar(&file, "schema", "", "file with the schema, JSON; - is stdin")
	c.Flags().StringVar(&history, "history", "",
		"how long old versions are kept: forever, 7d, 15m (default: what the schema says, else the store)")
	verb.Require(c, "schema")
	return c
}

func CreateTable(store *oribi.Store, name string, t *schemafile.Table) error {
	columns, err := schema.New(t.Columns, t.Keys)
	if err != nil {
		return err
	}
	options := []oribi.TableOption{oribi.Comment(t.Comment), oribi.RowFile(t.RowFile)}
	if t.History != 0 {
		options = append(options, oribi.History(t.History))
	}
	if e := t.Expires; e.Column != "" {
		options = append(options, oribi.Expires(e.Column, e.Age))
	}
	for _, x := range t.Indexes {
		if x.Unique {
			options = append(options, oribi.Unique(x.Name, x.Columns...))
		} else {
			options = append(options, oribi.Index(x.Name, x.Columns...))
		}
	}
	_, err = store.CreateTable(name, columns, options...)
	return err
}

// Drop is the verb "oribi table drop".
func Drop(a *console.Console) *cobra.Command {
	var yes bool
	c := verb.New(a, "drop DIR NAME", "Remove a table with all its rows", func(cmd *cobra.Command, args []string) error {
		if !yes {
			return exit.With(exit.Refused,
				fmt.Errorf("table %q was not dropped: this cannot be undone; add --yes to drop it", args[1]))
		}
		return access.WithStore(args[0], access.Writing(cmd), func(store *oribi.Store) error {
			return store.DropTable(args[1])
		})
	})
	c.Flags().BoolVar(&yes, "yes", false, "confirm the drop")
	return c
}

// Flush is the verb "oribi table flush".
func Flush(a *console.Console) *cobra.Command {
	return verb.New(a, "flush DIR NAME", "Write a table's rows and changes in memory to files",
		func(cmd *cobra.Command, args []string) error {
			return runWork(cmd.Context(), a, access.Writing(cmd), "flush", args, (*oribi.Table).FlushResult)
		})
}

// Compact is the verb "oribi table compact".
func Compact(a *console.Console) *cobra.Command {
	var kind, format string
	var f flags.Policy
	c := verb.New(a, "compact DIR NAME", "Flush, then merge until no rowsets overlap, or run another kind of compaction",
		func(cmd *cobra.Command, args []string) error {
			work, ok := Compactions[kind]
			if !ok {
				return exit.Usage(fmt.Errorf("--kind: unknown kind %q%s", kind,
					nearest.Hint(kind, nearest.Keys(Compactions))))
			}
			if err := f.Parse(cmd); err != nil {
				return err
			}
			switch {
			case !f.DryRun && cmd.Flags().Changed("format"):
				return exit.Usage(errors.New("--format needs --dry-run"))
			case f.DryRun:
				form, err := a.Format(format)
				if err != nil {
					return err
				}
				return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
					return flags.PrintPicks(a, t.Layout(), &f, form)
				})
			case f.Policy != nil:
				work = flushed(func(t *oribi.Table, ctx context.Context) (oribi.CompactionResult, error) {
					return t.MergeBy(ctx, f.Policy, f.Budget)
				})
			}
			return runWork(cmd.Context(), a, access.Writing(cmd), "compact", args, work)
		})
	c.Flags().StringVar(&kind, "kind", "merge",
		"merge rowsets; apply deltas to the base files (major); merge delta files (minor);\n"+
			"remove expired history (undo-gc); rewrite columns to take less space (recompress)")
	f.Add(c)
	verb.FormatFlag(c, &format)
	return c
}

// Compactions are the operations of table compact; each runs after a flush.
var Compactions = map[string]func(*oribi.Table, context.Context) (oribi.CompactionResult, error){
	"merge":      (*oribi.Table).CompactResult,
	"minor":      flushed((*oribi.Table).CompactMinor),
	"undo-gc":    flushed((*oribi.Table).CollectUndos),
	"recompress": flushed((*oribi.Table).Recompress),
	"major": flushed(func(t *oribi.Table, ctx context.Context) (oribi.CompactionResult, error) {
		return t.CompactMajor(ctx)
	}),
}

// flushed runs work after a flush and returns the sum of both results.
func flushed(
	work func(*oribi.Table, context.Context) (oribi.CompactionResult, error),
) func(*oribi.Table, context.Context) (oribi.CompactionResult, error) {
	return func(t *oribi.Table, ctx context.Context) (oribi.CompactionResult, error) {
		first, err := t.FlushResult(ctx)
		if err != nil {
			return first, err
		}
		r, err := work(t, ctx)
		r.RowSetsBefore = first.RowSetsBefore
		r.BytesWritten += first.BytesWritten
		return r, err
	}
}

// runWork runs a flush or compaction, shows how many of the rows it has read, and prints the
// result.
func runWork(
	ctx context.Context, a *console.Console, at access.Mode, what string, args []string,
	do func(*oribi.Table, context.Context) (oribi.CompactionResult, error),
) error {
	bar := a.Bar(progress.Options{What: what})
	defer bar.Stop()
	tell := func(_ string, rows, of int64) {
		bar.SetTotal(of)
		bar.Set(rows)
	}
	return access.WithOptions(args[0], at, oribi.Options{Progress: tell}, func(store *oribi.Store) error {
		t, err := access.OpenTable(store, args[1])
		if err != nil {
			return err
		}
		r, err := do(t, ctx)
		bar.Stop()
		if err != nil {
			return err
		}
		return a.Printf(`{"rowsets_before":%d,"rowsets_after":%d,"bytes_written":%d}`+"\n", r.RowSetsBefore,
			r.RowSetsAfter, r.BytesWritten)
	})
}
