package carbontable

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/schema"
)

func TestSortColumnsAreTheFirstOfTheKey(t *testing.T) {
	for _, c := range []struct{ key, exported, long, want string }{
		{"a:string b:int64 c:date", "a b c x", "", "a b c"},
		{"a:string b:int64 c:date", "c b a x", "", "a b c"},
		{"a:string b:int64 c:date", "c a x", "", "a"},
		{"a:string b:int64 c:date", "b c x", "", ""},
		{"a:timestamp b:uint32 c:uint64 d:int16", "a b c d", "", "a b c d"},
		{"a:string b:binary c:int32", "a b c", "", "a"},
		{"a:int32 b:int8 c:int32", "a b c", "", "a"},
		{"a:int32 b:decimal(9,2)", "a b", "", "a"},
		{"a:string b:varchar(9) c:int64", "a b c", "b", "a"},
		{"a:string b:varchar(9) c:int64", "a b c", "", "a b c"},
		{"a:string", "x", "", ""},
	} {
		var columns []schema.Column
		for _, text := range append(strings.Fields(c.key), "x:double") {
			name, typ, _ := strings.Cut(text, ":")
			column := schema.Column{Name: name, Nullable: name == "x"}
			if err := column.ParseTypeName(typ); err != nil {
				t.Fatal(err)
			}
			columns = append(columns, column)
		}
		s, err := schema.New(columns, len(columns)-1)
		if err != nil {
			t.Fatal(err)
		}
		var chosen []schema.Column
		for _, name := range strings.Fields(c.exported) {
			chosen = append(chosen, columns[s.Index(name)])
		}
		exported, err := Columns(chosen, strings.Fields(c.long))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(SortColumns(s, exported), " "); got != c.want {
			t.Errorf("key %s, exported %s: sort columns %s, want %s", c.key, c.exported, got, c.want)
		}
	}
}

// writeFile writes a data file with one row, and properties, into a folder.
func writeFile(t *testing.T, dir string, number int, properties map[string]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	w, err := carbondata.Create(out, []carbondata.Column{{Name: "a", Type: carbondata.Int}},
		carbondata.WriterOptions{Properties: properties, Task: fmt.Sprint(number)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := w.Append([]any{int32(number)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
}

func TestKeyIsWhatAllFilesName(t *testing.T) {
	for _, c := range []struct {
		files []map[string]string
		want  []string
	}{
		{[]map[string]string{KeyProperties([]string{"a", `"b", é`})}, []string{"a", `"b", é`}},
		{[]map[string]string{KeyProperties([]string{"a"}), KeyProperties([]string{"a"})}, []string{"a"}},
		{[]map[string]string{KeyProperties([]string{"a"}), KeyProperties([]string{"b"})}, nil},
		{[]map[string]string{KeyProperties([]string{"a"}), nil}, nil},
		{[]map[string]string{nil, KeyProperties([]string{"a"})}, nil},
		{[]map[string]string{{keyProperty: "a"}}, nil},
		{[]map[string]string{nil}, nil},
	} {
		dir := t.TempDir()
		for i, properties := range c.files {
			writeFile(t, dir, i, properties)
		}
		table, err := carbondata.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := Key(table); !slices.Equal(got, c.want) {
			t.Errorf("%v: key %q, want %q", c.files, got, c.want)
		}
		table.Close()
	}
}
