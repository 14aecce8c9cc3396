package storecmd

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/salvage"
)

// Checkpoint is the verb "oribi store checkpoint".
func Checkpoint(a *console.Console) *cobra.Command {
	return verb.New(a, "checkpoint DIR OUT", "Copy a store, as of now, to a new or empty directory",
		func(cmd *cobra.Command, args []string) error {
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				bar := a.Bar(progress.Options{What: "checkpoint", Unit: progress.Bytes})
				defer bar.Stop()
				c, err := store.Checkpoint(cmd.Context(), args[1], shown(bar))
				bar.Stop()
				if err != nil {
					return err
				}
				return a.Printf(`{"ts":%d,"bytes":%d}`+"\n", uint64(c.Timestamp), c.Bytes)
			})
		})
}

// Backup is the verb "oribi store backup".
func Backup(a *console.Console) *cobra.Command {
	return verb.New(a, "backup DIR REPO", "Add a backup of a store to a repository, which is made if it is missing",
		func(cmd *cobra.Command, args []string) error {
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				bar := a.Bar(progress.Options{What: "backup", Unit: progress.Bytes})
				defer bar.Stop()
				repo := repository(args[1])
				repo.Progress = shown(bar)
				var b backup.Backup
				err := access.Writing(cmd).Open(func() (err error) {
					b, err = repo.Backup(cmd.Context(), store)
					return err
				})
				bar.Stop()
				if errors.Is(err, backup.ErrNotRepository) {
					// the directory has other content: nothing is missing
					return inRepository(args[1], exit.With(exit.Failed, err))
				} else if err != nil {
					return inRepository(args[1], err)
				}
				return a.Printf("%s\n", backupLine(&b))
			})
		})
}

// Backups is the verb "oribi store backups".
func Backups(a *console.Console) *cobra.Command {
	return verb.Printing(a, "backups REPO", "List the backups in a repository, oldest first",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			list, err := repository(args[0]).Backups(cmd.Context())
			if err != nil {
				return inRepository(args[0], err)
			}
			numbers := []string{"backup", "ts", "bytes", "new_bytes"}
			out := a.Objects(form, console.TextColumns(numbers, "backup", "time", "ts", "store", "bytes", "new_bytes"))
			for i := range list {
				if err := out.Print(backupLine(&list[i])); err != nil {
					return err
				}
			}
			return out.Close()
		})
}

// Restore is the verb "oribi store restore".
func Restore(a *console.Console) *cobra.Command {
	var at string
	c := verb.New(a, "restore REPO OUT", "Make a store from a backup, by default the newest, in a new or empty directory",
		func(cmd *cobra.Command, args []string) error {
			number := uint64(0)
			if at != "" {
				var err error
				if number, err = strconv.ParseUint(at, 10, 64); err != nil || number == 0 {
					return exit.Usage(fmt.Errorf("--at %s: want the number of a backup, 1 or more", at))
				}
			}
			bar := a.Bar(progress.Options{What: "restore", Unit: progress.Bytes})
			defer bar.Stop()
			repo := repository(args[0])
			repo.Progress = shown(bar)
			c, err := repo.Restore(cmd.Context(), number, args[1], nil)
			bar.Stop()
			if err != nil {
				return inRepository(args[0], err)
			}
			return a.Printf(`{"ts":%d,"bytes":%d}`+"\n", uint64(c.Timestamp), c.Bytes)
		})
	c.Flags().StringVar(&at, "at", "", "number of the backup, as store backups prints it")
	return c
}

// Prune is the verb "oribi store prune".
func Prune(a *console.Console) *cobra.Command {
	var keep int
	c := verb.New(a, "prune REPO", "Remove all but the newest backups, and what only they need",
		func(cmd *cobra.Command, args []string) error {
			if keep < 1 {
				return exit.Usage(fmt.Errorf("--keep %d: want 1 or more", keep))
			}
			var p backup.Pruned
			err := access.Writing(cmd).Open(func() (err error) {
				p, err = repository(args[0]).Prune(cmd.Context(), keep)
				return err
			})
			if err != nil {
				return inRepository(args[0], err)
			}
			return a.Printf(`{"removed":%d,"freed_bytes":%d}`+"\n", p.Removed, p.FreedBytes)
		})
	c.Flags().IntVar(&keep, "keep", 0, "how many backups stay, 1 or more")
	verb.Require(c, "keep")
	return c
}

// Salvage is the verb "oribi store salvage".
func Salvage(a *console.Console) *cobra.Command {
	var fillNull bool
	c := verb.New(a, "salvage DIR OUT",
		"Make a store from all that can be read of a damaged one, in a new or empty directory",
		func(cmd *cobra.Command, args []string) error {
			bar := a.Bar(progress.Options{What: "salvage", Unit: progress.Bytes})
			defer bar.Stop()
			losses := 0
			var printed error
			report := func(l salvage.Loss) {
				losses++
				bar.Stop() // losses may be printed on the same terminal
				if printed == nil {
					printed = printLoss(a, l)
				}
			}
			options := []salvage.Option{salvage.Progress(shown(bar))}
			if fillNull {
				options = append(options, salvage.FillNull())
			}
			_, err := salvage.Run(cmd.Context(), args[0], args[1], nil, report, options...)
			bar.Stop()
			switch {
			case err != nil:
				return err
			case printed != nil:
				return printed
			case losses > 0:
				return exit.WithHelp(exit.With(exit.Damage, fmt.Errorf("%s: losses: %d", args[0], losses)),
					fmt.Sprintf("all else is in %s, which is complete", args[1]))
			}
			return nil
		})
	c.Flags().BoolVar(&fillNull, "fill-null", false,
		"keep rows that lack cells of nullable columns only, with NULL there")
	return c
}

func printLoss(a *console.Console, l salvage.Loss) error {
	table, block, rows := []byte("null"), "null", "null"
	if l.Table != "" {
		table = console.Quote(l.Table)
	}
	if l.Block != 0 {
		block = fmt.Sprint(l.Block)
	}
	if l.Rows >= 0 {
		rows = fmt.Sprint(l.Rows)
	}
	return a.Printf(`{"table":%s,"file":%s,"block":%s,"rows":%s,"lost":%s}`+"\n", table,
		console.Quote(l.File), block, rows, console.Quote(l.Lost))
}

// shown returns a function that shows progress on a bar.
func shown(bar *progress.Bar) func(done, total int64) {
	return func(done, total int64) {
		bar.SetTotal(total)
		bar.Set(done)
	}
}

func repository(dir string) *backup.Repository { return backup.Open(backup.Dir(dir, nil)) }

// inRepository adds the place to an error of a repository.
func inRepository(dir string, err error) error { return fmt.Errorf("%s: %w", dir, err) }

// backupLine returns the object that describes a backup.
func backupLine(b *backup.Backup) []byte {
	return fmt.Appendf(nil, `{"backup":%d,"time":%s,"ts":%d,"store":"%s","bytes":%d,"new_bytes":%d}`,
		b.Number, console.Quote(b.Time.Format(flags.ClockForm)), uint64(b.Timestamp), b.Store, b.Bytes, b.NewBytes)
}
