package layouttest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestExportedIdentifiersAreDocumented fails for an exported type, function, method, or group of
// constants or variables of a public package without a comment. String, Error and Unwrap, which the
// standard library describes, need none.
func TestExportedIdentifiersAreDocumented(t *testing.T) {
	for _, p := range modulePackages(t) {
		if !p.product() || internal(modulePath+"/"+p.path) || p.name == "main" {
			continue
		}
		names := must.Get(filepath.Glob(filepath.Join(moduleRoot(t), filepath.FromSlash(p.path), "*.go")))(t)
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f := must.Get(parser.ParseFile(fset, name, nil, parser.ParseComments))(t)
			files = append(files, f)
		}
		d := must.Get(doc.NewFromFiles(fset, files, modulePath+"/"+p.path))(t)
		check := func(name, text string) {
			if strings.TrimSpace(text) == "" && name != "" {
				t.Errorf("%s: %s has no comment", p, name)
			}
		}
		functions := func(fs []*doc.Func) {
			for _, f := range fs {
				if f.Name != "String" && f.Name != "Error" && f.Name != "Unwrap" {
					check(f.Name, f.Doc)
				}
			}
		}
		values := func(vs []*doc.Value) {
			for _, v := range vs {
				check(undocumented(v), v.Doc)
			}
		}
		functions(d.Funcs)
		values(d.Consts)
		values(d.Vars)
		for _, typ := range d.Types {
			check(typ.Name, typ.Doc)
			functions(typ.Funcs)
			functions(typ.Methods)
			values(typ.Consts)
			values(typ.Vars)
		}
	}
}

// undocumented returns an exported name without a comment in a group, or "" if all have one.
func undocumented(v *doc.Value) string {
	for _, spec := range v.Decl.Specs {
		if s, ok := spec.(*ast.ValueSpec); ok && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() {
			return s.Names[0].Name
		}
	}
	return ""
}
