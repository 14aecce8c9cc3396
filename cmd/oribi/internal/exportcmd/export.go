// Package exportcmd has the verb "oribi table export" with its formats.
package exportcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/vfs"
)

// Formats are the formats of "table export", by name.
var Formats = map[string]*Format{
	"parquet":    {about: "Parquet", suffix: true, flags: parquetExportNames, open: openArrow},
	"arrow":      {about: "Arrow", suffix: true, stdout: true, open: openArrow},
	"csv":        {about: "CSV", suffix: true, stdout: true, packed: true, open: openText},
	"jsonl":      {about: "JSON Lines", suffix: true, stdout: true, packed: true, open: openText},
	"hfile":      {about: "an HFile", suffix: true, open: openHFile},
	"carbondata": {about: "CarbonData", folder: true, flags: carbonExportNames, open: openCarbon},
}

// Export is the verb "oribi table export".
func Export(a *console.Console) *cobra.Command {
	var f Flags
	c := verb.New(a, "export DIR NAME OUT",
		"Write rows to a new file: Parquet, Arrow, CSV, JSON Lines, CarbonData, or an HFile",
		func(cmd *cobra.Command, args []string) error {
			e := &Job{Console: a, Context: cmd.Context(), Flags: &f, Changed: cmd.Flags().Changed, Out: args[2]}
			if err := e.Check(args[0]); err != nil {
				return err
			}
			return e.Run(func(use func(*oribi.Table) error) error { return e.withTable(args[0], args[1], use) })
		})
	c.Long = c.Short + `, in the order of the key.

The format follows from the name of OUT: .parquet, .arrow, .csv, .jsonl, .hfile. CSV and JSON Lines are
compressed if the name ends in .gz. If OUT is -, CSV, JSON Lines, or a stream of Arrow goes to stdout.

A value that the format would return as another value is an error, and then there is no OUT.`
	c.Flags().StringVar(&f.Format, "format", "",
		strings.Join(nearest.Keys(Formats), ", ")+" (default: from the name of OUT)")
	flags.AsOf(c, &f.AsOf)
	c.Flags().StringSliceVar(&f.columns, "columns", nil, "columns to export, in this order (default: all)")
	flags.Where(c, &f.where)
	c.Flags().Int64Var(&f.limit, "limit", 0, "maximum number of rows to export")
	f.arrow.add(c)
	f.carbon.add(c)
	for name, format := range Formats {
		for _, flag := range format.flags {
			own := c.Flags().Lookup(flag)
			own.Usage = name + ": " + own.Usage
		}
	}
	return c
}

// Check checks what does not depend on the table. dir is the store's directory.
func (e *Job) Check(dir string) (err error) {
	if err := e.findFormat(); err != nil {
		return err
	}
	for _, name := range nearest.Keys(Formats) {
		for _, flag := range Formats[name].flags {
			if name != e.name && e.Changed(flag) {
				return exit.Usage(fmt.Errorf("--%s is for --format %s", flag, name))
			}
		}
	}
	if e.Changed("limit") && e.Flags.limit < 1 {
		return exit.Usage(fmt.Errorf("--limit: want at least 1, not %d", e.Flags.limit))
	}
	if e.Out == "-" {
		return nil
	}
	if _, err := os.Lstat(e.Out); err == nil { // found at once, not after the rows
		return &fs.PathError{Op: "create", Path: e.Out, Err: fs.ErrExist}
	}
	if err := instore.Check(vfs.OS, e.Out, dir); err != nil {
		return exit.Usage(err)
	}
	return nil
}

// findFormat finds the format that the flag names, or the name of OUT.
func (e *Job) findFormat() error {
	plain := strings.TrimSuffix(e.Out, ".gz")
	e.name = e.Flags.Format
	if !e.Changed("format") {
		e.name = strings.TrimPrefix(filepath.Ext(plain), ".")
		switch f := Formats[e.name]; {
		case e.Out == "-":
			return exit.Usage(fmt.Errorf("stdout requires --format %s", flags.OrList(stdoutFormats())))
		case f == nil || !f.suffix:
			return exit.Usage(fmt.Errorf("the name of OUT does not tell the format: add --format %s",
				flags.OrList(nearest.Keys(Formats))))
		}
	}
	e.format = Formats[e.name]
	switch {
	case e.format == nil:
		return exit.Usage(fmt.Errorf("--format: unknown format %q%s", e.name,
			nearest.Hint(e.name, nearest.Keys(Formats))))
	case e.Out == "-" && e.format.folder:
		return exit.Usage(fmt.Errorf("%s cannot be written to stdout: OUT is a new folder", e.format.about))
	case e.Out == "-" && !e.format.stdout:
		return exit.Usage(fmt.Errorf("%s cannot be written to stdout: OUT is a new file", e.format.about))
	case plain != e.Out && !e.format.packed:
		return exit.Usage(fmt.Errorf("%s is not compressed as a whole: name OUT without .gz", e.format.about))
	}
	return nil
}

// stdoutFormats returns the names of the formats that are written to stdout.
func stdoutFormats() (names []string) {
	for _, name := range nearest.Keys(Formats) {
		if Formats[name].stdout {
			names = append(names, name)
		}
	}
	return names
}

// withTable opens the table that is exported.
func (e *Job) withTable(dir, name string, use func(*oribi.Table) error) error {
	return access.WithStore(dir, access.Reading, func(store *oribi.Store) error {
		t, err := access.OpenTable(store, name)
		if err == nil && e.name == "hfile" {
			if _, err = kv.In(store).Bucket(name); errors.Is(err, kv.ErrNotBucket) {
				return exit.WithHelp(fmt.Errorf("table %q is not a bucket: an HFile has keys and values, as the tables "+
					"that oribi kv makes", name), "to export this table: --format parquet, arrow, csv, or jsonl")
			}
		}
		if err != nil {
			return err
		}
		return use(t)
	})
}

// Run exports the table that open opens.
func (e *Job) Run(open func(use func(*oribi.Table) error) error) error {
	at, err := flags.ParseAsOf(e.Context, e.Flags.AsOf)
	if err != nil {
		return err
	}
	rows := int64(0)
	err = open(func(t *oribi.Table) (err error) {
		e.table = t
		rows, err = e.rows(at)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Console.Stderr, "exported %d rows\n", rows)
	return err
}

// rows exports the rows and returns how many they are.
func (e *Job) rows(at oribi.ReadOption) (rows int64, err error) {
	s := e.table.Schema()
	if e.columns, err = flags.Chosen(s, "columns", e.Flags.columns, e.Changed("columns")); err != nil {
		return 0, err
	}
	where, err := flags.WhereOption(s, e.Flags.where)
	if err != nil {
		return 0, err
	}
	e.scanned = e.columns
	bar := e.bar()
	defer bar.Stop()
	sink, err := e.format.open(e)
	if err != nil {
		return 0, err
	}
	defer sink.abort()
	options := []oribi.ScanOption{at, where, oribi.Columns(flags.Names(e.scanned)...)}
	if e.Flags.limit > 0 {
		options = append(options, oribi.Limit(e.Flags.limit))
	}
	if rows, err = sink.write(e.table.Scan(e.Context, options...), bar.Set); err != nil {
		return 0, err
	}
	return rows, sink.finish()
}

// bar starts a bar, which knows the number of rows if that takes no reading.
func (e *Job) bar() *progress.Bar {
	if e.Out == "-" && console.IsTerminal(e.Console.File) {
		return nil // the rows are shown there
	}
	bar := e.Console.Bar(progress.Options{What: "export"})
	if bar == nil || len(e.Flags.where) > 0 || e.Flags.AsOf != "latest" {
		return bar
	}
	if n, err := e.table.Count(e.Context); err == nil { // the scan returns such an error, too
		if e.Flags.limit > 0 {
			n = min(n, e.Flags.limit)
		}
		bar.SetTotal(n)
	}
	return bar
}
