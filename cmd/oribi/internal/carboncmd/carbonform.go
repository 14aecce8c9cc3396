package carboncmd

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/internal/nearest"
)

// Form are the flags that set the form of a folder of CarbonData.
type Form struct {
	sort, inverted []string
	compressor     string
	pageRows       int
	blockletBytes  int64
	dictionary     string
}

var Compressors = map[string]string{"snappy": "snappy", "zstd": "zstd", "gzip": "gzip"}

// Add adds the flags.
func (f *Form) Add(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.sort, "sort-columns", nil, "columns by which the rows are sorted")
	c.Flags().StringSliceVar(&f.inverted, "inverted-index", nil,
		"sort columns of type STRING whose pages have an inverted index")
	c.Flags().StringVar(&f.compressor, "compressor", "snappy", "snappy, zstd, or gzip")
	c.Flags().IntVar(&f.pageRows, "page-rows", maxCarbonPageRows, "maximum number of rows in a page")
	c.Flags().Int64Var(&f.blockletBytes, "blocklet-size", 64<<20, "bytes at which a blocklet ends")
	c.Flags().StringVar(&f.dictionary, "local-dictionary", "on",
		"on or off: store strings of few values with a dictionary")
}

// maxCarbonPageRows is the most rows that CarbonData's SDK writes to a page.
const maxCarbonPageRows = 32000

// Options returns the options of a writer.
func (f *Form) Options() (o carbondata.WriterOptions, err error) {
	if err := flags.Choice("compressor", f.compressor, Compressors, &o.Compressor); err != nil {
		return o, err
	}
	if err := flags.Choice("local-dictionary", f.dictionary, map[string]bool{"on": false, "off": true},
		&o.NoLocalDictionary); err != nil {
		return o, err
	}
	switch {
	case f.pageRows < 1 || f.pageRows > maxCarbonPageRows:
		return o, exit.Usage(fmt.Errorf("--page-rows: want 1 to %d, not %d", maxCarbonPageRows, f.pageRows))
	case f.blockletBytes < 1 || f.blockletBytes > carbondata.MaxBlockletBytes:
		return o,
			exit.Usage(fmt.Errorf("--blocklet-size: want 1 to %d, not %d", carbondata.MaxBlockletBytes, f.blockletBytes))
	}
	o.SortColumns, o.InvertedIndex, o.PageRows, o.BlockletBytes = f.sort, f.inverted, f.pageRows, f.blockletBytes
	return o, nil
}

// Check checks the flags that name columns, of a folder with the given columns and sort columns.
func (f *Form) Check(columns []carbondata.Column, sort []string) error {
	for _, flag := range []struct {
		name     string
		list     []string
		unsuited func(c *carbondata.Column) string
	}{{"sort-columns", f.sort, func(c *carbondata.Column) string {
		if !c.Type.Sortable() {
			return "CarbonData does not sort by " + c.TypeName()
		}
		return ""
	}}, {"inverted-index", f.inverted, func(c *carbondata.Column) string {
		switch {
		case c.Type != carbondata.String:
			return "an inverted index is for columns of type STRING, not " + c.TypeName()
		case !slices.Contains(sort, c.Name):
			return "an inverted index is for sort columns"
		}
		return ""
	}}} {
		for i, name := range flag.list {
			k := slices.IndexFunc(columns, func(c carbondata.Column) bool { return c.Name == name })
			reason := ""
			switch {
			case k < 0:
				reason = "no such column" + nearest.Hint(name, carbonNames(columns))
			case slices.Contains(flag.list[:i], name):
				return exit.Usage(fmt.Errorf("--%s: column %q appears twice", flag.name, name))
			default:
				reason = flag.unsuited(&columns[k])
			}
			if reason != "" {
				return exit.Usage(fmt.Errorf("--%s: column %q: %s", flag.name, name, reason))
			}
		}
	}
	return nil
}
