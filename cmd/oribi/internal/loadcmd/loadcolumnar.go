package loadcmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// columnarFormats are these formats, by their names in --input-format.
var columnarFormats = map[string]*columnarFormat{
	"parquet": {name: parquetName, suffixes: []string{".parquet", ".pq"}, open: openArrowLoad},
	"arrow": {name: "Arrow", suffixes: []string{".arrow", ".arrows", ".feather"},
		stream: true, open: openArrowLoad},
	"carbondata": {name: "CarbonData", suffixes: []string{".carbondata"}, open: openCarbonLoad},
}

// InputFormats returns the names of all formats of input.
func InputFormats() []string {
	return append([]string{"csv", "jsonl"}, nearest.Keys(columnarFormats)...)
}

// columnarByName returns the format that the name of an input determines, or the first bytes of a
// file whose name does not; nil if it is text.
func columnarByName(file string) *columnarFormat {
	info, err := os.Stat(file)
	regular := file != "-" && err == nil && info.Mode().IsRegular()
	if file != "-" && err == nil && info.IsDir() {
		return columnarFormats["carbondata"]
	}
	suffix := filepath.Ext(strings.TrimSuffix(file, ".gz"))
	for _, f := range columnarFormats {
		if slices.Contains(f.suffixes, suffix) {
			return f
		}
	}
	switch suffix {
	case ".csv", ".tsv", ".json", ".jsonl":
		return nil
	}
	if !regular {
		return nil
	}
	return columnarFormats[formatOfFile(file)]
}

// formatOfFile returns the columnar format of a file by its first bytes, or "".
func formatOfFile(file string) string {
	in, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer in.Close()
	head := make([]byte, longestSignature)
	n, _ := io.ReadFull(in, head) // a file may be shorter
	if s := signatureOf(head[:n]); s != nil {
		return s.format
	}
	return ""
}

func (f *columnarFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.round, "round", false, "of Parquet and Arrow: round times in nanoseconds down to microseconds")
	c.Flags().BoolVar(&f.skipUnsupported, "skip-unsupported", false,
		"of Parquet, Arrow, and CarbonData: leave out the columns that cannot be loaded, with a note on stderr "+
			"for each")
}

// check refuses the flags for other formats.
func (f *columnarFlags) check(format *columnarFormat, given func(flag string) bool) error {
	name := "CSV and JSON"
	if format != nil {
		name = format.name
	}
	switch {
	case given("skip-unsupported") && format == nil:
		return exit.Usage(fmt.Errorf("--skip-unsupported is for Parquet, Arrow, and CarbonData, not for %s", name))
	case given("round") && (format == nil || format == columnarFormats["carbondata"]):
		return exit.Usage(fmt.Errorf("--round is for Parquet and Arrow, not for %s", name))
	}
	return nil
}

// exact reports whether a table that is created gets the whole definition of the exported table.
func (c *columnar) exact(f *Flags) bool { return c.table != nil && len(f.key) == 0 }

// keyColumns returns the key columns of a table that is created for the input: the columns of the
// flag --key, or without it the columns that the input names.
func (c *columnar) keyColumns(f *Flags) ([]string, error) {
	if len(f.key) > 0 {
		return f.key, nil
	}
	if len(c.key) == 0 {
		return nil, exit.Usage(errors.New("--create requires --key with the key columns: the input does not name them"))
	}
	key := slices.Clone(c.key)
	for i, name := range key {
		k := slices.IndexFunc(c.columns, func(c schema.Column) bool { return c.Name == name })
		if k < 0 {
			k = slices.IndexFunc(c.columns, func(c schema.Column) bool { return strings.EqualFold(c.Name, name) })
		}
		if k < 0 {
			return nil,
				exit.Usage(fmt.Errorf("--create: the input names %q as a key column, which is not loaded; --key names "+
					"others", name))
		}
		key[i] = c.columns[k].Name // CarbonData has it in lower case
	}
	return key, nil
}
