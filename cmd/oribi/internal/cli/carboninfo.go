package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
)

func (a *app) carbonInfo() *cobra.Command {
	var format string
	c := a.carbonVerb("info PATH", "Describe CarbonData: segments, files, blocklets, encodings, bounds", "",
		func(_ *cobra.Command, args []string) error {
			form, err := a.format(format)
			if err != nil {
				return err
			}
			return a.withCarbonData(args[0], func(t *carbondata.Table) error {
				info, err := t.Info()
				if err != nil {
					return err
				}
				if form == output.JSON || form == output.JSONL {
					e := json.NewEncoder(a.stdout)
					e.SetEscapeHTML(false)
					return e.Encode(&info)
				}
				return (&carbonDescriber{a, form}).all(&info)
			})
		})
	formatFlag(c, &format)
	return c
}

// carbonDescriber prints what "carbondata info" finds as tables.
type carbonDescriber struct {
	a    *app
	form output.Format
}

func (d *carbonDescriber) all(info *carbondata.Info) error {
	f := new(fields)
	f.plain("rows", info.Rows)
	f.plain("deleted_rows", info.DeletedRows)
	f.plain("files", len(info.Files))
	f.plain("blocklets", info.Blocklets)
	f.plain("pages", info.Pages)
	f.plain("index_files", len(info.Indexes))
	for _, list := range []struct {
		name   string
		values []string
	}{{"writers", info.Writers}, {"compressors", info.Compressors}, {"encodings", info.Encodings},
		{"features", info.Features}} {
		f.text(list.name, strings.Join(slices.DeleteFunc(slices.Clone(list.values), func(s string) bool {
			return s == ""
		}), " "))
	}
	if err := d.a.printFields(f, d.form); err != nil {
		return err
	}
	for _, section := range []struct {
		name    string
		numbers []string
		columns []string
		records []*fields
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
		if err := d.a.printf("\n%s\n", section.name); err != nil {
			return err
		}
		p := d.a.objects(d.form, textColumns(section.numbers, section.columns...))
		for _, r := range section.records {
			if err := p.print(r.appendJSON(nil)); err != nil {
				return err
			}
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return nil
}

func carbonSegments(info *carbondata.Info) (list []*fields) {
	for _, s := range info.Segments {
		f := new(fields)
		f.text("segment", s.Name)
		f.text("status", s.Status)
		f.plain("visible", s.Visible)
		f.plain("files", s.Files)
		f.plain("rows", s.Rows)
		f.optional("path", s.Path)
		list = append(list, f)
	}
	return list
}

func carbonColumnFields(info *carbondata.Info) (list []*fields) {
	for _, c := range info.Columns {
		f := new(fields)
		f.text("name", c.Name)
		f.text("type", c.Type)
		f.plain("sort", c.Sort)
		list = append(list, f)
	}
	return list
}

func carbonFiles(info *carbondata.Info) (list []*fields) {
	for _, file := range info.Files {
		f := new(fields)
		f.text("file", file.File)
		f.optional("segment", file.Segment)
		f.plain("size", file.Size)
		f.plain("rows", file.Rows)
		f.plain("deleted_rows", file.DeletedRows)
		f.plain("blocklets", len(file.Blocklets))
		if file.Sorted != nil {
			f.plain("is_sort", *file.Sorted)
		}
		list = append(list, f)
	}
	return list
}

// carbonChunks returns the columns of all blocklets. A file is its number in the list of files,
// from 0.
func carbonChunks(info *carbondata.Info) (list []*fields) {
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
				f := new(fields)
				f.text("file", fmt.Sprint(number))
				f.plain("blocklet", n)
				f.text("column", c.Name)
				f.plain("rows", b.Rows)
				f.plain("pages", b.Pages)
				f.plain("nulls", c.Nulls)
				if c.LocalDictionary > 0 {
					f.plain("dictionary", c.LocalDictionary)
				}
				f.optional("encodings", carbonEncodings(c.Codecs))
				for _, bound := range []struct {
					name  string
					value any
				}{{"min", c.MinValue}, {"max", c.MaxValue}} {
					if bound.value != nil {
						f.json(bound.name, carbonlines.AppendValue(nil, typ, bound.value))
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

func carbonIndexes(info *carbondata.Info) (list []*fields) {
	for _, i := range info.Indexes {
		f := new(fields)
		f.text("file", i.File)
		f.optional("merged", i.Merged)
		f.plain("size", i.Size)
		f.plain("blocklets", len(i.Entries))
		list = append(list, f)
	}
	return list
}

// optional adds a string unless it is empty.
func (f *fields) optional(name, value string) {
	if value != "" {
		f.text(name, value)
	}
}
