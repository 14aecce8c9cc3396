package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbontable"
	"github.com/oribi-db/oribi/cmd/oribi/internal/load"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/schema"
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
	return &loadInput{app: a, name: o.Name, file: t, bar: bar, carbon: t, whole: true}, nil
}

// carbonKey returns the key columns of a table that is created for CarbonData: those of the flag,
// or without it those that the files name.
func carbonKey(t *carbondata.Table, f *loadFlags, o *load.Options) ([]string, error) {
	if len(f.key) > 0 {
		return f.key, nil
	}
	key := carbontable.Key(t)
	if len(key) == 0 {
		return nil, usage(errors.New("--create requires --key with the key columns: the files do not name them"))
	}
	for i, name := range key {
		k := slices.IndexFunc(o.Fields, func(c schema.Column) bool { return strings.EqualFold(c.Name, name) })
		if k < 0 {
			return nil, usage(fmt.Errorf("--create: the files name %q as a key column, which is not loaded; --key names others", name))
		}
		key[i] = o.Fields[k].Name // in lower case
	}
	return key, nil
}
