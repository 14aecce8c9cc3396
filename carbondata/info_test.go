package carbondata

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
)

// jsonOf returns v as encoding/json decodes it into any.
func jsonOf(t *testing.T, v any) any {
	b := must.Get(json.Marshal(v))(t)
	var out any
	must.Do(t, json.Unmarshal(b, &out))
	return out
}

// contains checks that got has everything that want has. The corpus cuts minima and maxima.
func contains(t *testing.T, where string, got, want any) {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %v, want %v", where, got, want)
			return
		}
		for k, v := range want {
			if text, ok := m[k].(string); ok && (k == "min" || k == "max") {
				const cut = 128
				contains(t, where+"."+k, text[:min(len(text), cut)], v)
			} else {
				contains(t, where+"."+k, m[k], v)
			}
		}
	case []any:
		list, ok := got.([]any)
		if i := slices.Index(want, any("…")); ok && i >= 0 && len(list) > len(want) { // a long list without its middle
			list = slices.Concat(list[:i], []any{"…"}, list[len(list)-(len(want)-i-1):])
		}
		if !ok || len(list) != len(want) {
			t.Errorf("%s: %v, want %v", where, got, want)
			return
		}
		for i := range want {
			contains(t, where, list[i], want[i])
		}
	default:
		must.Equal(t, got, want, where)
	}
}

// byFile returns a list of objects by their field "file".
func byFile(list any) map[string]any {
	m := map[string]any{}
	for _, e := range list.([]any) {
		m[e.(map[string]any)["file"].(string)] = e
	}
	return m
}

func TestGoldenInfo(t *testing.T) {
	goldenFolders(t, func(t *testing.T, g goldenFolder, dir string) {
		table := must.Get(Open(dir))(t)
		defer table.Close()
		info := must.Get(table.Info())(t)
		var want map[string]any
		text := strings.Join(corpustest.Lines(t, filepath.Join(dir, "info.json")), "\n")
		must.Do(t, json.Unmarshal([]byte(text), &want))
		got := jsonOf(t, info).(map[string]any)
		blocklets, pages := g.Blocklets, g.Pages
		for key, n := range map[string]int{"data_files": len(info.Files), "index_files": len(info.Indexes)} {
			ours := byFile(got[key])
			theirs := byFile(want[key])
			for _, name := range slices.Sorted(maps.Keys(theirs)) {
				if strings.Contains(name, "_batchno0-0-2-") { // of the deleted segment of the table
					blocklets, pages = 4, 9
					delete(theirs, name)
					continue
				}
				contains(t, name, ours[name], theirs[name])
			}
			if merged := len(info.Segments) > 0 && key == "index_files"; n != len(theirs) && !merged {
				t.Errorf("%d %s, want %d", n, key, len(theirs))
			}
		}
		if info.Blocklets != blocklets || info.Pages != pages || info.Rows != int64(g.Rows) {
			t.Errorf("%d blocklets, %d pages, %d rows, want %d, %d, %d", info.Blocklets, info.Pages,
				info.Rows, blocklets, pages, g.Rows)
		}
		if !slices.Equal(info.Writers, g.Writer) || !slices.Equal(info.Compressors, g.Compressors) ||
			!slices.Equal(info.Encodings, g.Encodings) || !slices.Equal(info.Features, g.Features) {
			t.Errorf("%q, %q, %q, %q\nwant %q, %q, %q, %q", info.Writers, info.Compressors, info.Encodings,
				info.Features, g.Writer, g.Compressors, g.Encodings, g.Features)
		}
		for i, c := range info.Columns {
			must.Equal(t, c.Name, g.Columns[i][0], c, g.Columns[i])
			must.Equal(t, c.Type, g.Columns[i][1], c, g.Columns[i])
		}
	})
}

func TestInfoOfATable(t *testing.T) {
	dir := deletedTable(t,
		[]deletion{{segment: "0", block: "part-0-0_batchno0-0-0", times: []string{"7", "8"},
			rows: [][]int{{0, 99, 100, 149}, {1, 149}}, status: "Success"},
			{segment: "0", block: "part-0-1_batchno0-0-0", status: "Marked for Delete"}})
	table := must.Get(Open(dir))(t)
	defer table.Close()
	info := must.Get(table.Info())(t)
	want := []SegmentInfo{{Name: "0", Status: "Success", Visible: true, Files: 1, Rows: 145},
		{Name: "1", Status: "Success", Visible: true, Files: 1, Rows: 170},
		{Name: "2", Status: "Marked for Delete"}, {Name: "3", Status: "Success", Visible: true, Files: 1, Rows: 210}}
	must.Equal(t, info.Segments, want)
	if info.Rows != 145+170+210 || info.DeletedRows != 5 || len(info.Files) != 3 || len(info.Indexes) != 4 {
		t.Errorf("%d rows, %d deleted, %d files, %d index files", info.Rows, info.DeletedRows,
			len(info.Files), len(info.Indexes))
	}
}
