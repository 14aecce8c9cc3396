package exportcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbontable"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/schema"
)

// carbonExportNames are the names of these flags.
var carbonExportNames = []string{"sort-columns", "inverted-index", "compressor", "page-rows",
	"blocklet-size", "local-dictionary",
	"round-timestamps", "long-string-columns"}

func (f *carbonExportFlags) add(c *cobra.Command) {
	f.form.Add(c)
	c.Flags().Lookup("sort-columns").Usage += " (default: the first key columns)"
	c.Flags().BoolVar(&f.round, "round-timestamps", false,
		"round timestamps to milliseconds, toward the past; without it, microseconds are an error")
	c.Flags().StringSliceVar(&f.long, "long-string-columns", nil,
		"columns for strings of more than 32000 characters; NULL in them is an error")
}

// carbonSink writes rows to a folder of CarbonData.
type carbonSink struct {
	*Job
	w       *carbondata.Writer
	carbon  []carbondata.Column
	rounder *carbontable.Rounder // nil: timestamps are not rounded
}

// otherColumns is the next step if a format does not have such a column.
const otherColumns = "to export the other columns, name them with --columns"

func openCarbon(e *Job) (exportSink, error) {
	f := &e.Flags.carbon
	o, err := f.form.Options()
	if err != nil {
		return nil, err
	}
	s := &carbonSink{Job: e}
	s.carbon, err = carbontable.Columns(e.columns, f.long)
	if wrong, ok := errors.AsType[*carbontable.LongColumnError](err); ok {
		return nil, exit.Usage(fmt.Errorf("--long-string-columns: %w", wrong))
	}
	if err != nil {
		return nil, exit.WithHelp(err, otherColumns)
	}
	table := e.table.Schema()
	if !e.Changed("sort-columns") {
		o.SortColumns = carbontable.SortColumns(table, s.carbon)
	}
	if err := f.form.Check(s.carbon, o.SortColumns); err != nil {
		return nil, err
	}
	o.Properties = carbontable.KeyProperties(flags.Names(table.Columns[:table.Keys]))
	o.Context = e.Context
	e.scanKeys()
	if f.round {
		s.rounder = carbontable.NewRounder(e.columns)
	}
	s.w, err = carbondata.Create(e.Out, s.carbon, o)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &fs.PathError{Op: "create", Path: e.Out, Err: p.Err} // not the temporary name
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // a name that CarbonData does not have
		err = exit.WithHelp(errors.New(strings.TrimPrefix(err.Error(), "carbondata: ")), otherColumns)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *carbonSink) write(scan *oribi.Scan, progress func(rows int64)) (int64, error) {
	return eachBatch(scan, progress, s.append)
}

func (s *carbonSink) append(b *batch.RecordBatch) (err error) {
	part := &batch.RecordBatch{Schema: s.columns, Columns: b.Columns[:len(s.columns)],
		Len: b.Len, Selection: b.Selection}
	if s.rounder != nil {
		if part, err = s.rounder.Round(part); err != nil {
			return err
		}
	}
	if err := s.w.AppendBatch(part); err != nil {
		return s.refused(err, b)
	}
	return nil
}

func (s *carbonSink) finish() error {
	err := s.w.Close()
	if errors.Is(err, carbondata.ErrNoRows) {
		return errors.New("no rows to export: CarbonData has no files without rows")
	}
	return err
}

func (s *carbonSink) abort() { s.w.Abort() }

// refused adds the key to the error of a row, and how to export it if there is a way.
func (s *carbonSink) refused(err error, b *batch.RecordBatch) error {
	bad, ok := errors.AsType[*carbondata.RowError](err)
	if !ok {
		return err
	}
	err = fmt.Errorf("key %s: %w", s.keyOf(b, bad.Row), bad.Err)
	i := slices.IndexFunc(s.columns, func(c schema.Column) bool { return c.Name == bad.Column })
	if i < 0 {
		return err
	}
	err = fmt.Errorf("column %q: %w", bad.Column, err)
	switch cell := b.Columns[i].Cell(bad.Row); {
	case errors.Is(err, carbondata.ErrMicroseconds):
		return exit.WithHelp(err, "to round timestamps to milliseconds, toward the past: --round-timestamps")
	case s.carbon[i].Type == carbondata.String && len(cell) > maxCarbonString:
		return exit.WithHelp(err, "to export longer strings: --long-string-columns "+bad.Column)
	}
	return err
}

// maxCarbonString is the most characters of a STRING.
const maxCarbonString = 32000
