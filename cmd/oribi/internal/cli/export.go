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
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbontable"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// exportFlags are the flags of "table export".
type exportFlags struct {
	format  string
	columns []string
	where   []string
	asOf    string
	limit   int64

	form  carbonForm
	round bool
	long  []string
}

// exportFormats are the formats of "table export"; those with false are not there yet.
var exportFormats = map[string]bool{"carbondata": true, "parquet": false, "arrow": false, "csv": false, "jsonl": false, "hfile": false}

func (a *app) tableExport() *cobra.Command {
	var f exportFlags
	c := a.verb("export DIR NAME OUT", "Write rows to a new folder of CarbonData", func(cmd *cobra.Command, args []string) error {
		return a.export(cmd, &f, args[0], args[1], args[2])
	})
	c.Long = c.Short + `, in the order of the key.

The key columns become its sort columns, as far as CarbonData sorts by their types. A value that
CarbonData would read as another value is an error, and then there is no OUT.`
	c.Flags().StringVar(&f.format, "format", "", "carbondata")
	asOfFlag(c, &f.asOf)
	c.Flags().StringSliceVar(&f.columns, "columns", nil, "columns to export, in this order (default: all)")
	whereFlag(c, &f.where)
	c.Flags().Int64Var(&f.limit, "limit", 0, "maximum number of rows to export")
	f.form.add(c)
	c.Flags().Lookup("sort-columns").Usage += " (default: the first key columns)"
	c.Flags().BoolVar(&f.round, "round-timestamps", false, "round timestamps to milliseconds, toward the past; without it, microseconds are an error")
	c.Flags().StringSliceVar(&f.long, "long-string-columns", nil, "columns for strings of more than 32000 characters; NULL in them is an error")
	return c
}

// check checks what does not depend on the table.
func (f *exportFlags) check(changed func(flag string) bool, out string) (o carbondata.WriterOptions, err error) {
	format := f.format
	if !changed("format") {
		format = strings.TrimPrefix(filepath.Ext(strings.TrimSuffix(out, ".gz")), ".")
		if _, ok := exportFormats[format]; !ok || format == "carbondata" {
			return o, usage(errors.New("the name of OUT does not tell the format: add --format carbondata"))
		}
	}
	done, ok := exportFormats[format]
	switch {
	case !ok:
		return o, usage(fmt.Errorf("--format: unknown format %q%s", format, nearest.Hint(format, nearest.Keys(exportFormats))))
	case !done:
		return o, usage(fmt.Errorf("tables are not exported as %s yet, only as carbondata", format))
	case changed("limit") && f.limit < 1:
		return o, usage(fmt.Errorf("--limit: want at least 1, not %d", f.limit))
	case out == "-":
		return o, usage(errCarbonStdout)
	}
	if o, err = f.form.options(); err != nil {
		return o, err
	}
	if _, err := os.Lstat(out); err == nil {
		return o, &fs.PathError{Op: "create", Path: out, Err: fs.ErrExist}
	}
	return o, nil
}

// export runs "table export".
func (a *app) export(cmd *cobra.Command, f *exportFlags, dir, table, out string) error {
	changed := cmd.Flags().Changed
	o, err := f.check(changed, out)
	if err != nil {
		return err
	}
	at, err := asOf(cmd.Context(), f.asOf)
	if err != nil {
		return err
	}
	rows := int64(0)
	err = withTable(dir, table, reading, func(t *oribi.Table) error {
		s := t.Schema()
		e := &carbonExport{table: t, out: out, options: o, bar: a.bar(progress.Options{What: "export"})}
		defer e.bar.Stop()
		if e.columns, err = chosen(s, "columns", f.columns, changed("columns")); err != nil {
			return err
		}
		if err := e.plan(f, changed("sort-columns")); err != nil {
			return err
		}
		where, err := whereOption(s, f.where)
		if err != nil {
			return err
		}
		options := []oribi.ScanOption{at, where, oribi.Columns(names(e.scanned)...)}
		if f.limit > 0 {
			options = append(options, oribi.Limit(f.limit))
		}
		rows, err = e.run(cmd.Context(), options)
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stderr, "exported %d rows\n", rows)
	return err
}

// carbonExport writes rows of a table to a folder of CarbonData.
type carbonExport struct {
	table   *oribi.Table
	out     string
	options carbondata.WriterOptions
	bar     *progress.Bar

	columns []schema.Column // of the folder
	scanned []schema.Column // these, and the other key columns
	carbon  []carbondata.Column
	rounder *carbontable.Rounder // nil: timestamps are not rounded
}

// otherColumns is the next step if CarbonData does not have such a column.
const otherColumns = "to export the other columns, name them with --columns"

// plan chooses the columns of the folder, and those to scan.
func (e *carbonExport) plan(f *exportFlags, sorted bool) (err error) {
	e.carbon, err = carbontable.Columns(e.columns, f.long)
	if wrong, ok := errors.AsType[*carbontable.LongColumnError](err); ok {
		return usage(fmt.Errorf("--long-string-columns: %w", wrong))
	}
	if err != nil {
		return &helped{err, otherColumns}
	}
	s := e.table.Schema()
	if !sorted {
		e.options.SortColumns = carbontable.SortColumns(s, e.carbon)
	}
	if err := f.form.check(e.carbon, e.options.SortColumns); err != nil {
		return err
	}
	e.options.Properties = carbontable.KeyProperties(names(s.Columns[:s.Keys]))
	e.scanned = e.columns
	given := names(e.columns)
	for _, key := range s.Columns[:s.Keys] {
		if !slices.Contains(given, key.Name) {
			e.scanned = append(slices.Clip(e.scanned), key)
		}
	}
	if f.round {
		e.rounder = carbontable.NewRounder(e.columns)
	}
	return nil
}

// run exports the rows of a scan and returns how many they are. After an error there is no folder.
func (e *carbonExport) run(ctx context.Context, options []oribi.ScanOption) (rows int64, err error) {
	e.options.Context = ctx
	w, err := carbondata.Create(e.out, e.carbon, e.options)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return 0, &fs.PathError{Op: "create", Path: e.out, Err: p.Err} // not the temporary name
	}
	if errors.Is(err, fs.ErrExist) {
		return 0, err
	}
	if err != nil { // a name that CarbonData does not have
		return 0, &helped{errors.New(strings.TrimPrefix(err.Error(), "carbondata: ")), otherColumns}
	}
	defer w.Abort() // does nothing after Close
	for b, err := range e.table.Scan(ctx, options...).Batches() {
		if err != nil {
			return 0, err
		}
		part := &batch.RecordBatch{Schema: e.columns, Columns: b.Columns[:len(e.columns)], Len: b.Len, Selection: b.Selection}
		if e.rounder != nil {
			if part, err = e.rounder.Round(part); err != nil {
				return 0, err
			}
		}
		if err := w.AppendBatch(part); err != nil {
			return 0, e.refused(err, b)
		}
		rows += int64(b.Selected())
		e.bar.Set(rows)
	}
	e.bar.Stop()
	if err := w.Close(); errors.Is(err, carbondata.ErrNoRows) {
		return 0, errors.New("no rows to export: CarbonData has no files without rows")
	} else if err != nil {
		return 0, err
	}
	return rows, nil
}

// refused adds the key to the error of a row, and how to export it if there is a way.
func (e *carbonExport) refused(err error, b *batch.RecordBatch) error {
	bad, ok := errors.AsType[*carbondata.RowError](err)
	if !ok {
		return err
	}
	err = fmt.Errorf("key %s: %w", e.keyOf(b, bad.Row), bad.Err)
	i := slices.IndexFunc(e.columns, func(c schema.Column) bool { return c.Name == bad.Column })
	if i < 0 {
		return err
	}
	err = fmt.Errorf("column %q: %w", bad.Column, err)
	switch cell := b.Columns[i].Cell(bad.Row); {
	case e.columns[i].Stored() == schema.Timestamp && e.rounder == nil:
		return &helped{err, "to round timestamps to milliseconds, toward the past: --round-timestamps"}
	case e.carbon[i].Type == carbondata.String && len(cell) > maxCarbonString:
		return &helped{err, "to export longer strings: --long-string-columns " + bad.Column}
	}
	return err
}

// maxCarbonString is the most characters of a STRING.
const maxCarbonString = 32000

// keyOf returns the key of a row as JSON.
func (e *carbonExport) keyOf(b *batch.RecordBatch, row int) string {
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
