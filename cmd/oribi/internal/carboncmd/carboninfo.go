package carboncmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

// Info is the verb "oribi carbondata info".
func Info(a *console.Console) *cobra.Command {
	return helped(verb.Printing(a, "info PATH", "Describe CarbonData: segments, files, blocklets, encodings, bounds",
		func(_ *cobra.Command, args []string, form output.Format) error {
			return withCarbonData(a, args[0], func(t *carbondata.Table) error {
				info, err := t.Info()
				if err != nil {
					return err
				}
				if form == output.JSON || form == output.JSONL {
					e := json.NewEncoder(a.Stdout)
					e.SetEscapeHTML(false)
					return e.Encode(&info)
				}
				return (&carbonDescriber{a, form}).all(&info)
			})
		}), "")
}

// carbonDescriber prints what "carbondata info" finds as tables.
type carbonDescriber struct {
	a    *console.Console
	form output.Format
}

func (d *carbonDescriber) all(info *carbondata.Info) error {
	f := new(console.Fields)
	f.Add("rows", info.Rows, "deleted_rows", info.DeletedRows, "files", len(info.Files),
		"blocklets", info.Blocklets, "pages", info.Pages, "index_files", len(info.Indexes))
	for _, list := range []struct {
		name   string
		values []string
	}{{"writers", info.Writers}, {"compressors", info.Compressors}, {"encodings", info.Encodings},
		{"features", info.Features}} {
		f.Text(list.name, strings.Join(slices.DeleteFunc(slices.Clone(list.values), func(s string) bool {
			return s == ""
		}), " "))
	}
	if err := d.a.PrintFields(f, d.form); err != nil {
		return err
	}
	for _, section := range []struct {
		name    string
		numbers []string
		columns []string
		records []*console.Fields
	}{
		{"segments", []string{"files", "rows"},
			[]string{"segment", "status", "visible", "files", "rows", "path"}, carbonSegments(info)},
		{"columns", nil, []string{"name", "type", "sort"}, carbonColumnFields(info)},
		{"files", []string{"size", "rows", "deleted_rows", "blocklets"},
			[]string{"segment", "size", "rows", "deleted_rows", "blocklets", "is_sort", "file"}, carbonFiles(info)},
		{"blocklets", []string{"blocklet", "rows", "pages", "nulls", "dictionary"},
			[]string{"file", "blocklet", "column", "rows", "pages", "nulls", "dictionary", "encodings", "min", "max"},
			carbonChunks(info)},
		{"index_files", []string{"size", "blocklets"},
			[]string{"size", "blocklets", "file", "merged"}, carbonIndexes(info)},
	} {
		if len(section.records) == 0 {
			continue
		}
		if err := d.a.Printf("\n%s\n", section.name); err != nil {
			return err
		}
		p := d.a.Objects(d.form, console.TextColumns(section.numbers, section.columns...))
		for _, r := range section.records {
			if err := p.Print(r.AppendJSON(nil)); err != nil {
				return err
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}

func carbonSegments(info *carbondata.Info) (list []*console.Fields) {
	for _, s := range info.Segments {
		f := new(console.Fields)
		f.Add("segment", s.Name, "status", s.Status, "visible", s.Visible, "files", s.Files, "rows", s.Rows)
		optional(f, "path", s.Path)
		list = append(list, f)
	}
	return list
}

func carbonColumnFields(info *carbondata.Info) (list []*console.Fields) {
	for _, c := range info.Columns {
		f := new(console.Fields)
		f.Add("name", c.Name, "type", c.Type, "sort", c.Sort)
		list = append(list, f)
	}
	return list
}

func carbonFiles(info *carbondata.Info) (list []*console.Fields) {
	for _, file := range info.Files {
		f := new(console.Fields)
		f.Text("file", file.File)
		optional(f, "segment", file.Segment)
		f.Add("size", file.Size, "rows", file.Rows, "deleted_rows", file.DeletedRows,
			"blocklets", len(file.Blocklets))
		if file.Sorted != nil {
			f.Plain("is_sort", *file.Sorted)
		}
		list = append(list, f)
	}
	return list
}

// carbonChunks returns the columns of all blocklets. A file is its number in the list of files,
// from 0.
func carbonChunks(info *carbondata.Info) (list []*console.Fields) {
	types := map[string]carbondata.Column{}
	for _, c := range info.Columns {
		types[c.Name], _ = carbonlines.ParseType(c.Type) // the library names types that can be parsed
	}
	for number, file := range info.Files {
		for n, b := range file.Blocklets {
			for i, c := range b.Columns {
				typ, ok := types[c.Name]
				if !ok { // a dropped column, or a child
					typ, _ = carbonlines.ParseType(file.Columns[i].Type)
				}
				f := new(console.Fields)
				f.Add("file", fmt.Sprint(number), "blocklet", n, "column", c.Name, "rows", b.Rows,
					"pages", b.Pages, "nulls", c.Nulls)
				if c.LocalDictionary > 0 {
					f.Plain("dictionary", c.LocalDictionary)
				}
				optional(f, "encodings", carbonEncodings(c.Codecs))
				for _, bound := range []struct {
					name  string
					value any
				}{{"min", c.MinValue}, {"max", c.MaxValue}} {
					if bound.value != nil {
						f.JSON(bound.name, carbonlines.AppendValue(nil, typ, bound.value))
					}
				}
				list = append(list, f)
			}
		}
	}
	return list
}

// carbonEncodings returns the different encodings of the pages of a column.
func carbonEncodings(codecs []carbondata.CodecInfo) string {
	var list []string
	for _, c := range codecs {
		text := c.Encoders
		if c.Store != "" {
			text += "/" + c.Store
		}
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}

func carbonIndexes(info *carbondata.Info) (list []*console.Fields) {
	for _, i := range info.Indexes {
		f := new(console.Fields)
		f.Text("file", i.File)
		optional(f, "merged", i.Merged)
		f.Add("size", i.Size, "blocklets", len(i.Entries))
		list = append(list, f)
	}
	return list
}

// optional adds a string unless it is empty.
func optional(f *console.Fields, name, value string) {
	if value != "" {
		f.Text(name, value)
	}
}
