package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/backup"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

func (a *app) storeCheckpoint() *cobra.Command {
	return a.verb("checkpoint DIR OUT", "Copy a store, as of now, to a new or empty directory",
		func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], reading, func(store *oribi.Store) error {
				bar := a.bar(progress.Options{What: "checkpoint", Unit: progress.Bytes})
				defer bar.Stop()
				c, err := store.Checkpoint(cmd.Context(), args[1], oribi.CopyProgress(shown(bar)))
				bar.Stop()
				if err != nil {
					return err
				}
				return a.printf(`{"ts":%d,"bytes":%d}`+"\n", uint64(c.Timestamp), c.Bytes)
			})
		})
}

func (a *app) storeBackup() *cobra.Command {
	return a.verb("backup DIR REPO", "Add a backup of a store to a repository, which is made if it is missing",
		func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], reading, func(store *oribi.Store) error {
				bar := a.bar(progress.Options{What: "backup", Unit: progress.Bytes})
				defer bar.Stop()
				repo := repository(args[1])
				repo.Progress = shown(bar)
				var b backup.Backup
				err := writing(cmd).open(func() (err error) {
					b, err = repo.Backup(cmd.Context(), store)
					return err
				})
				bar.Stop()
				if errors.Is(err, backup.ErrNotRepository) {
					// the directory has other content: nothing is missing
					return inRepository(args[1], withCode(exitFailed, err))
				} else if err != nil {
					return inRepository(args[1], err)
				}
				return a.printf("%s\n", backupLine(&b))
			})
		})
}

func (a *app) storeBackups() *cobra.Command {
	var format string
	c := a.verb("backups REPO", "List the backups in a repository, oldest first",
		func(cmd *cobra.Command, args []string) error {
			form, err := a.format(format)
			if err != nil {
				return err
			}
			list, err := repository(args[0]).Backups(cmd.Context())
			if err != nil {
				return inRepository(args[0], err)
			}
			numbers := []string{"backup", "ts", "bytes", "new_bytes"}
			out := a.objects(form, textColumns(numbers, "backup", "time", "ts", "store", "bytes", "new_bytes"))
			for i := range list {
				if err := out.print(backupLine(&list[i])); err != nil {
					return err
				}
			}
			return out.Close()
		})
	formatFlag(c, &format)
	return c
}

func (a *app) storeRestore() *cobra.Command {
	var at string
	c := a.verb("restore REPO OUT", "Make a store from a backup, by default the newest, in a new or empty directory",
		func(cmd *cobra.Command, args []string) error {
			number := uint64(0)
			if at != "" {
				var err error
				if number, err = strconv.ParseUint(at, 10, 64); err != nil || number == 0 {
					return usage(fmt.Errorf("--at %s: want the number of a backup, 1 or more", at))
				}
			}
			bar := a.bar(progress.Options{What: "restore", Unit: progress.Bytes})
			defer bar.Stop()
			repo := repository(args[0])
			repo.Progress = shown(bar)
			c, err := repo.Restore(cmd.Context(), number, args[1], nil)
			bar.Stop()
			if err != nil {
				return inRepository(args[0], err)
			}
			return a.printf(`{"ts":%d,"bytes":%d}`+"\n", uint64(c.Timestamp), c.Bytes)
		})
	c.Flags().StringVar(&at, "at", "", "number of the backup, as store backups prints it")
	return c
}

func (a *app) storePrune() *cobra.Command {
	var keep int
	c := a.verb("prune REPO", "Remove all but the newest backups, and what only they need",
		func(cmd *cobra.Command, args []string) error {
			if keep < 1 {
				return usage(fmt.Errorf("--keep %d: want 1 or more", keep))
			}
			var p backup.Pruned
			err := writing(cmd).open(func() (err error) {
				p, err = repository(args[0]).Prune(cmd.Context(), keep)
				return err
			})
			if err != nil {
				return inRepository(args[0], err)
			}
			return a.printf(`{"removed":%d,"freed_bytes":%d}`+"\n", p.Removed, p.FreedBytes)
		})
	c.Flags().IntVar(&keep, "keep", 0, "how many backups stay, 1 or more")
	c.MarkFlagRequired("keep")
	return c
}

func (a *app) storeSalvage() *cobra.Command {
	var fillNull bool
	c := a.verb("salvage DIR OUT",
		"Make a store from all that can be read of a damaged one, in a new or empty directory",
		func(cmd *cobra.Command, args []string) error {
			bar := a.bar(progress.Options{What: "salvage", Unit: progress.Bytes})
			defer bar.Stop()
			losses := 0
			var printed error
			report := func(l oribi.Loss) {
				losses++
				bar.Stop() // losses may be printed on the same terminal
				if printed == nil {
					printed = a.printLoss(l)
				}
			}
			options := []oribi.SalvageOption{oribi.SalvageProgress(shown(bar))}
			if fillNull {
				options = append(options, oribi.FillNull())
			}
			_, err := oribi.Salvage(cmd.Context(), args[0], args[1], nil, report, options...)
			bar.Stop()
			switch {
			case err != nil:
				return err
			case printed != nil:
				return printed
			case losses > 0:
				return withHelp(withCode(exitDamage, fmt.Errorf("%s: losses: %d", args[0], losses)),
					fmt.Sprintf("all else is in %s, which is complete", args[1]))
			}
			return nil
		})
	c.Flags().BoolVar(&fillNull, "fill-null", false,
		"keep rows that lack cells of nullable columns only, with NULL there")
	return c
}

func (a *app) printLoss(l oribi.Loss) error {
	table, block, rows := []byte("null"), "null", "null"
	if l.Table != "" {
		table = quote(l.Table)
	}
	if l.Block != 0 {
		block = fmt.Sprint(l.Block)
	}
	if l.Rows >= 0 {
		rows = fmt.Sprint(l.Rows)
	}
	return a.printf(`{"table":%s,"file":%s,"block":%s,"rows":%s,"lost":%s}`+"\n", table,
		quote(l.File), block, rows, quote(l.Lost))
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
		b.Number, quote(b.Time.Format(clockForm)), uint64(b.Timestamp), b.Store, b.Bytes, b.NewBytes)
}
