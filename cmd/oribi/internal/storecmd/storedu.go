package storecmd

import (
	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/schema"
)

// Du is the verb "oribi store du".
func Du(a *console.Console) *cobra.Command {
	var files bool
	c := verb.Printing(a, "du DIR", "Print the disk usage of a store by kind of file",
		func(_ *cobra.Command, args []string, form output.Format) error {
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				u, err := store.DiskUsage()
				if err != nil {
					return err
				}
				if files {
					return printUsageFiles(a, u.Files, form)
				}
				rowFiles, err := rowFileBytes(store)
				if err != nil {
					return err
				}
				return a.PrintFields(usageFields(&u, rowFiles, form), form)
			})
		})
	c.Flags().BoolVar(&files, "files", false, "a line for each file and directory instead of sums")
	return c
}

// rowFileBytes returns the size of the row files of all tables.
func rowFileBytes(store *oribi.Store) (bytes int64, err error) {
	for _, t := range store.Tables() {
		stats, err := t.Stats(false)
		if err != nil {
			return 0, err
		}
		bytes += stats.RowFileBytes
	}
	return bytes, nil
}

// usageFields returns the sums. The first is the total of the others, except for row files, which
// are part of live blocks. They are listed only in stores that have row files.
func usageFields(u *oribi.DiskUsage, rowFiles int64, form output.Format) *console.Fields {
	var f console.Fields
	for _, part := range []struct {
		name  string
		bytes int64
	}{
		{"total", u.Total}, {"live", u.Live}, {"row_files", rowFiles}, {"alignment", u.Alignment},
		{"dead", u.Dead}, {"reserved", u.Reserved},
		{"headers", u.Headers}, {"log", u.Log}, {"torn", u.Torn}, {"metadata", u.Metadata},
		{"directories", u.Directories},
		{"leftovers", u.Leftovers}, {"foreign", u.Foreign}, {"other", u.Other},
	} {
		switch {
		case part.name == "row_files" && part.bytes == 0:
		case form == output.Table:
			f.Plain(part.name, figures.Size(part.bytes))
		default:
			f.Plain(part.name, part.bytes)
		}
	}
	return &f
}

// printUsageFiles prints a line per file.
func printUsageFiles(a *console.Console, files []oribi.FileUsage, form output.Format) error {
	b := batch.New([]schema.Column{{Name: "file", Type: schema.String}, {Name: "kind", Type: schema.String},
		{Name: "length", Type: schema.Int64}, {Name: "allocated", Type: schema.Int64},
		{Name: "live", Type: schema.Int64}, {Name: "dead", Type: schema.Int64}}, len(files))
	for i, file := range files {
		b.Columns[0].SetCell(i, []byte(file.Name))
		b.Columns[1].SetCell(i, []byte(file.Kind))
		for j, n := range []int64{file.Length, file.Allocated, file.Live, file.Dead} {
			batch.Values[int64](b.Columns[2+j])[i] = n
		}
	}
	return a.PrintBatch(b, form, "length", "allocated", "live", "dead")
}
