package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbontable"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

// openCarbonLoad opens the CarbonData that is loaded.
func (a *app) openCarbonLoad(ctx context.Context, f *loadFlags, o *load.Options) (*loadInput, error) {
	t, err := carbondata.Open(o.Name)
	if err != nil {
		return nil, carbonError(o.Name, err)
	}
	fields, err := carbontable.Fields(t.Schema(), o.Columns)
	switch {
	case errors.Is(err, carbontable.ErrNoColumn):
		err = usage(fmt.Errorf("--columns: %w", err))
	case err != nil:
		err = &helped{fmt.Errorf("%s: %w", o.Name, err), "to load the other columns, name them with --columns"}
	}
	var filter carbondata.Filter
	if err == nil {
		filter, err = (&carbonFilters{where: f.where}).filter(t.Schema(), nil)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	o.Fields = fields
	scan := carbondata.ScanOptions{Columns: names(fields), Filter: filter}
	o.Batches = func(yield func(*batch.RecordBatch, error) bool) {
		for b, err := range carbontable.Batches(ctx, t, scan) {
			if !yield(b, carbonError(o.Name, err)) {
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
	bar := a.bar(progress.Options{What: "load", Total: total})
	return &loadInput{app: a, name: o.Name, file: t, bar: bar, whole: true, columnar: &columnar{columns: fields, key: carbontable.Key(t)}}, nil
}
