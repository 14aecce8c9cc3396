package carbontable

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/internal/must"
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
			must.Do(t, column.ParseTypeName(typ))
			columns = append(columns, column)
		}
		s := must.Get(schema.New(columns, len(columns)-1))(t)
		var chosen []schema.Column
		for _, name := range strings.Fields(c.exported) {
			chosen = append(chosen, columns[s.Index(name)])
		}
		exported := must.Get(Columns(chosen, strings.Fields(c.long)))(t)
		must.Equal(t, strings.Join(SortColumns(s, exported), " "), c.want, c.key, c.exported)
	}
}

// writeFile writes a data file with one row, and properties, into a folder.
func writeFile(t *testing.T, dir string, number int, properties map[string]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	w := must.Get(carbondata.Create(out, []carbondata.Column{{Name: "a", Type: carbondata.Int}},
		carbondata.WriterOptions{Properties: properties, Task: fmt.Sprint(number)}))(t)
	defer w.Abort()
	must.Do(t, w.Append([]any{int32(number)}))
	must.Do(t, w.Close())
	must.Do(t, os.CopyFS(dir, os.DirFS(out)))
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
		table := must.Get(carbondata.Open(dir))(t)
		must.Equal(t, Key(table), c.want, c.files)
		table.Close()
	}
}
