package inspect

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// views are the types of all pages as JSON.
var views = []any{answer{}, storeView{}, tableView{}, rowsetView{}, blockView{}, rowsView{}, rowView{}, timelineView{}}

// TestEveryFieldIsDocumented fails for a JSON field that docs/inspect.md does not name.
func TestEveryFieldIsDocumented(t *testing.T) {
	data := must.Get(os.ReadFile("../docs/inspect.md"))(t)
	text, fields := string(data), 0
	seen := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case name == "-" || !f.IsExported() && !f.Anonymous:
			case name == "" && !f.Anonymous:
				t.Errorf("%s.%s has no JSON name", typ, f.Name)
			case name != "" && !strings.Contains(text, "`"+name+"`"):
				t.Errorf("docs/inspect.md does not name the field %s of %s", name, typ)
			default:
				fields++
				visit(f.Type)
			}
		}
	}
	for _, v := range views {
		visit(reflect.TypeOf(v))
	}
	if fields < 100 {
		t.Errorf("only %d fields", fields)
	}
	for _, pattern := range crawled {
		p := pages[pattern]
		must.Contain(t, text, "`"+p.pattern+"`", p.pattern)
		for _, param := range p.params {
			must.Contain(t, text, "`"+param+"`", param, p.pattern)
		}
	}
}
