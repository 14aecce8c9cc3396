package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// exportFlags are the flags of "table export".
type exportFlags struct {
	format  string
	columns []string
	where   []string
	asOf    string
	limit   int64

	arrow  arrowExportFlags
	carbon carbonExportFlags
}

// exportFormat is a format of "table export".
type exportFormat struct {
	about  string   // what OUT is
	suffix bool     // a name of OUT that ends in the format's name says so
	folder bool     // OUT is a folder
	stdout bool     // OUT may be stdout
	packed bool     // OUT is compressed if its name ends in .gz
	flags  []string // that only this format has
	open   func(e *export) (exportSink, error)
}

// exportFormats are the formats of "table export", by name.
var exportFormats = map[string]*exportFormat{
	"parquet":    {about: "Parquet", suffix: true, flags: parquetExportNames, open: openArrow},
	"arrow":      {about: "Arrow", suffix: true, stdout: true, open: openArrow},
	"csv":        {about: "CSV", suffix: true, stdout: true, packed: true, open: openText},
	"jsonl":      {about: "JSON Lines", suffix: true, stdout: true, packed: true, open: openText},
	"hfile":      {about: "an HFile", suffix: true, open: openHFile},
	"carbondata": {about: "CarbonData", folder: true, flags: carbonExportNames, open: openCarbon},
}

// exportSink makes OUT of the rows of an export.
type exportSink interface {
	// write writes the rows of a scan of the export's scanned columns, and returns how many they
	// are. It calls progress with their number from time to time.
	write(scan *oribi.Scan, progress func(rows int64)) (rows int64, err error)
	// finish completes OUT, durably.
	finish() error
	// abort removes what was written. After finish it does nothing.
	abort()
}

// export is one run of "table export" or "kv export".
type export struct {
	app     *app
	ctx     context.Context
	flags   *exportFlags
	changed func(flag string) bool
	name    string // of the format
	format  *exportFormat
	out     string
	table   *oribi.Table
	columns []schema.Column // of OUT
	scanned []schema.Column // these, and after them those that a sink needs besides
}

func (a *app) tableExport() *cobra.Command {
	var f exportFlags
	c := a.verb("export DIR NAME OUT",
		"Write rows to a new file: Parquet, Arrow, CSV, JSON Lines, CarbonData, or an HFile",
		func(cmd *cobra.Command, args []string) error {
			e := &export{app: a, ctx: cmd.Context(), flags: &f, changed: cmd.Flags().Changed, out: args[2]}
			if err := e.check(args[0]); err != nil {
				return err
			}
			return e.run(func(use func(*oribi.Table) error) error { return e.withTable(args[0], args[1], use) })
		})
	c.Long = c.Short + `, in the order of the key.

The format follows from the name of OUT: .parquet, .arrow, .csv, .jsonl, .hfile. CSV and JSON Lines are
compressed if the name ends in .gz. If OUT is -, CSV, JSON Lines, or a stream of Arrow goes to stdout.

A value that the format would return as another value is an error, and then there is no OUT.`
	c.Flags().StringVar(&f.format, "format", "",
		strings.Join(nearest.Keys(exportFormats), ", ")+" (default: from the name of OUT)")
	asOfFlag(c, &f.asOf)
	c.Flags().StringSliceVar(&f.columns, "columns", nil, "columns to export, in this order (default: all)")
	whereFlag(c, &f.where)
	c.Flags().Int64Var(&f.limit, "limit", 0, "maximum number of rows to export")
	f.arrow.add(c)
	f.carbon.add(c)
	for name, format := range exportFormats {
		for _, flag := range format.flags {
			own := c.Flags().Lookup(flag)
			own.Usage = name + ": " + own.Usage
		}
	}
	return c
}

// check checks what does not depend on the table. dir is the store's directory.
func (e *export) check(dir string) (err error) {
	if err := e.findFormat(); err != nil {
		return err
	}
	for _, name := range nearest.Keys(exportFormats) {
		for _, flag := range exportFormats[name].flags {
			if name != e.name && e.changed(flag) {
				return usage(fmt.Errorf("--%s is for --format %s", flag, name))
			}
		}
	}
	if e.changed("limit") && e.flags.limit < 1 {
		return usage(fmt.Errorf("--limit: want at least 1, not %d", e.flags.limit))
	}
	if e.out == "-" {
		return nil
	}
	if _, err := os.Lstat(e.out); err == nil { // found at once, not after the rows
		return &fs.PathError{Op: "create", Path: e.out, Err: fs.ErrExist}
	}
	if err := instore.Check(vfs.OS, e.out, dir); err != nil {
		return usage(err)
	}
	return nil
}

// findFormat finds the format that the flag names, or the name of OUT.
func (e *export) findFormat() error {
	plain := strings.TrimSuffix(e.out, ".gz")
	e.name = e.flags.format
	if !e.changed("format") {
		e.name = strings.TrimPrefix(filepath.Ext(plain), ".")
		switch f := exportFormats[e.name]; {
		case e.out == "-":
			return usage(fmt.Errorf("stdout requires --format %s", orList(stdoutFormats())))
		case f == nil || !f.suffix:
			return usage(fmt.Errorf("the name of OUT does not tell the format: add --format %s",
				orList(nearest.Keys(exportFormats))))
		}
	}
	e.format = exportFormats[e.name]
	switch {
	case e.format == nil:
		return usage(fmt.Errorf("--format: unknown format %q%s", e.name,
			nearest.Hint(e.name, nearest.Keys(exportFormats))))
	case e.out == "-" && e.format.folder:
		return usage(fmt.Errorf("%s cannot be written to stdout: OUT is a new folder", e.format.about))
	case e.out == "-" && !e.format.stdout:
		return usage(fmt.Errorf("%s cannot be written to stdout: OUT is a new file", e.format.about))
	case plain != e.out && !e.format.packed:
		return usage(fmt.Errorf("%s is not compressed as a whole: name OUT without .gz", e.format.about))
	}
	return nil
}

// stdoutFormats returns the names of the formats that are written to stdout.
func stdoutFormats() (names []string) {
	for _, name := range nearest.Keys(exportFormats) {
		if exportFormats[name].stdout {
			names = append(names, name)
		}
	}
	return names
}

// withTable opens the table that is exported.
func (e *export) withTable(dir, name string, use func(*oribi.Table) error) error {
	return withStore(dir, reading, func(store *oribi.Store) error {
		t, err := openTable(store, name)
		if err == nil && e.name == "hfile" {
			if _, err = kv.In(store).Bucket(name); errors.Is(err, kv.ErrNotBucket) {
				return withHelp(fmt.Errorf("table %q is not a bucket: an HFile has keys and values, as the tables "+
					"that oribi kv makes", name), "to export this table: --format parquet, arrow, csv, or jsonl")
			}
		}
		if err != nil {
			return err
		}
		return use(t)
	})
}

// run exports the table that open opens.
func (e *export) run(open func(use func(*oribi.Table) error) error) error {
	at, err := asOf(e.ctx, e.flags.asOf)
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
	_, err = fmt.Fprintf(e.app.stderr, "exported %d rows\n", rows)
	return err
}

// rows exports the rows and returns how many they are.
func (e *export) rows(at oribi.ReadOption) (rows int64, err error) {
	s := e.table.Schema()
	if e.columns, err = chosen(s, "columns", e.flags.columns, e.changed("columns")); err != nil {
		return 0, err
	}
	where, err := whereOption(s, e.flags.where)
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
	options := []oribi.ScanOption{at, where, oribi.Columns(names(e.scanned)...)}
	if e.flags.limit > 0 {
		options = append(options, oribi.Limit(e.flags.limit))
	}
	if rows, err = sink.write(e.table.Scan(e.ctx, options...), bar.Set); err != nil {
		return 0, err
	}
	return rows, sink.finish()
}

// eachBatch calls use with the batches of a scan, and returns the number of their rows.
func eachBatch(
	scan *oribi.Scan, progress func(rows int64), use func(b *batch.RecordBatch) error,
) (rows int64, err error) {
	for b, err := range scan.Batches() {
		if err == nil {
			err = use(b)
		}
		if err != nil {
			return 0, err
		}
		rows += int64(b.Selected())
		progress(rows)
	}
	return rows, nil
}

// bar starts a bar, which knows the number of rows if that takes no reading.
func (e *export) bar() *progress.Bar {
	if e.out == "-" && isTerminal(e.app.file) {
		return nil // the rows are shown there
	}
	bar := e.app.bar(progress.Options{What: "export"})
	if bar == nil || len(e.flags.where) > 0 || e.flags.asOf != "latest" {
		return bar
	}
	if n, err := e.table.Count(e.ctx); err == nil { // the scan returns such an error, too
		if e.flags.limit > 0 {
			n = min(n, e.flags.limit)
		}
		bar.SetTotal(n)
	}
	return bar
}

// scanKeys adds the key columns to those that are scanned, for errors with the key of a row.
func (e *export) scanKeys() {
	s := e.table.Schema()
	given := names(e.columns)
	for _, key := range s.Columns[:s.Keys] {
		if !slices.Contains(given, key.Name) {
			e.scanned = append(slices.Clip(e.scanned), key)
		}
	}
}

// keyOf returns the key of a row as JSON. The key columns are scanned.
func (e *export) keyOf(b *batch.RecordBatch, row int) string {
	s := e.table.Schema()
	text := []byte{'{'}
	for k := range s.Columns[:s.Keys] {
		c := &s.Columns[k]
		i := slices.IndexFunc(e.scanned, func(o schema.Column) bool { return o.Name == c.Name })
		value := celltext.AppendJSON(nil, c, b.Columns[i].Cell(row))
		if s.SingleKey() {
			return celltext.Printable(string(value))
		}
		if k > 0 {
			text = append(text, ',')
		}
		text = append(append(celltext.AppendQuoted(text, []byte(c.Name)), ':'), value...)
	}
	return celltext.Printable(string(append(text, '}')))
}
