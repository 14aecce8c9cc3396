package loadcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carboncmd"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbontable"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/schema"
)

// openCarbonLoad opens the CarbonData that is loaded.
func openCarbonLoad(ctx context.Context, a *console.Console, f *Flags, o *load.Options) (*Input, error) {
	t, err := carbondata.Open(o.Name)
	if err != nil {
		return nil, carbonLoadError(o.Name, err)
	}
	fields, err := carbonFields(a, t, f, o)
	var filter carbondata.Filter
	if err == nil {
		filter, err = (&carboncmd.Filters{Where: f.where}).Filter(t.Schema(), nil)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	o.Fields = fields
	scan := carbondata.ScanOptions{Columns: flags.Names(fields), Filter: filter}
	o.Batches = func(yield func(*batch.RecordBatch, error) bool) {
		for b, err := range carbontable.Batches(ctx, t, scan) {
			if !yield(b, carbonLoadError(o.Name, err)) {
				return
			}
		}
	}
	total := int64(0)
	for _, file := range t.Files() {
		if len(f.where) == 0 {
			total += file.Rows
		}
	}
	bar := a.Bar(progress.Options{What: "load", Total: total})
	return &Input{console: a, name: o.Name, file: t, Bar: bar, Whole: true,
		columnar: &columnar{columns: fields, key: carbontable.Key(t)}}, nil
}

// carbonFields returns the columns that are loaded. It prints a note for each that is left out.
func carbonFields(a *console.Console, t *carbondata.Table, f *Flags, o *load.Options) ([]schema.Column, error) {
	fields, refused, err := carbontable.Fields(t.Schema(), o.Columns)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--columns: %w", err))
	}
	for _, bad := range refused {
		if !f.columnarFlags.skipUnsupported || len(fields) == 0 {
			return nil, unsupportedColumn(o.Name, bad.Column, bad.Why())
		}
		noteLeftOut(a.Stderr, bad.Column, bad.Why())
	}
	return fields, nil
}

// carbonLoadError gives an error about CarbonData its place and exit code. Unlike in the verbs that
// show CarbonData, what is not supported is no damage.
func carbonLoadError(name string, err error) error {
	if errors.Is(err, oribi.ErrUnsupported) && !errors.Is(err, oribi.ErrCorrupt) {
		return exit.With(exit.Failed, err)
	}
	return carboncmd.PathError(name, err)
}
