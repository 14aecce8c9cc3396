package layouttest

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// TestPublicPackagesExportNoInternalTypes fails if an exported function, method, field, type,
// variable or constant of a public package mentions a type of a package under internal/: a program
// in another module could not name it, and `go doc` would not show it.
func TestPublicPackagesExportNoInternalTypes(t *testing.T) {
	packages := publicPackages(t)
	for _, required := range []string{"", "rowset", "delta", "bloom", "cfile", "blockmanager", "memrowset",
		"compaction"} {
		if !slices.ContainsFunc(packages,
			func(p *types.Package) bool { path, _ := insideModule(p.Path()); return path == required }) {
			t.Errorf("%s is not public", display(required))
		}
	}
	for _, p := range packages {
		s := surface{pkg: p, seen: map[types.Type]bool{}}
		scope := p.Scope()
		for _, name := range scope.Names() {
			if obj := scope.Lookup(name); obj.Exported() {
				s.object(obj)
			}
		}
		for _, f := range s.found {
			t.Errorf("%s: %s", strings.TrimPrefix(p.Path(), modulePath+"/"), f)
		}
	}
}

// publicPackages returns the type-checked packages that another module can import, except commands.
func publicPackages(t *testing.T) []*types.Package {
	t.Helper()
	exports := map[string]string{}
	var paths []string
	for _, p := range listed(t) {
		exports[p.ImportPath] = p.Export
		if _, inside := insideModule(p.ImportPath); inside && !internal(p.ImportPath) && p.Name != "main" {
			paths = append(paths, p.ImportPath)
		}
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var packages []*types.Package
	for _, path := range paths {
		p := must.Get(imp.Import(path))(t)
		packages = append(packages, p)
	}
	return packages
}

// internal reports whether only packages of this module can import path.
func internal(path string) bool {
	rel, inside := insideModule(path)
	return inside && slices.Contains(strings.Split(rel, "/"), "internal")
}

// surface collects the internal types that the exported identifiers of a package mention.
type surface struct {
	pkg   *types.Package
	seen  map[types.Type]bool
	found []string
}

// object visits the type of an exported identifier and, for a type declared in the package, its
// exported fields and methods.
func (s *surface) object(obj types.Object) {
	name, ok := obj.(*types.TypeName)
	if !ok {
		s.mention(obj.Name(), obj.Type())
		return
	}
	named, ok := obj.Type().(*types.Named)
	if name.IsAlias() || !ok {
		s.mention(obj.Name(), obj.Type())
		return
	}
	s.members(obj.Name(), named)
}

func (s *surface) members(name string, named *types.Named) {
	for p := range named.TypeParams().TypeParams() {
		s.mention(name, p.Constraint())
	}
	s.mention(name, named.Underlying())
	for m := range named.Methods() {
		if m.Exported() {
			s.mention(name+"."+m.Name(), m.Type())
		}
	}
}

// mention records the internal types that occur in t as a caller sees it: named types by name,
// others by their components.
func (s *surface) mention(where string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		s.mention(where, types.Unalias(t))
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && internal(p.Path()) {
			s.found = append(s.found,
				fmt.Sprintf("%s mentions %s", where, types.TypeString(t, types.RelativeTo(s.pkg))))
		}
		for a := range t.TypeArgs().Types() {
			s.mention(where, a)
		}
		// An unexported type of the package that a caller can reach has exported members too.
		if t.Obj().Pkg() == s.pkg && !t.Obj().Exported() && !s.seen[t] {
			s.seen[t] = true
			s.members(t.Obj().Name(), t.Origin())
		}
	case *types.Pointer:
		s.mention(where, t.Elem())
	case *types.Slice:
		s.mention(where, t.Elem())
	case *types.Array:
		s.mention(where, t.Elem())
	case *types.Chan:
		s.mention(where, t.Elem())
	case *types.Map:
		s.mention(where, t.Key())
		s.mention(where, t.Elem())
	case *types.Signature:
		for p := range t.TypeParams().TypeParams() {
			s.mention(where, p.Constraint())
		}
		for v := range t.Params().Variables() {
			s.mention(where, v.Type())
		}
		for v := range t.Results().Variables() {
			s.mention(where, v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				s.mention(where+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				s.mention(where+"."+m.Name(), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			s.mention(where, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			s.mention(where, term.Type())
		}
	}
}

// TestPublicPackagesExportTheirErrors fails if a public package returns an error of internal/fault
// that it does not export: a caller in another module could not test for it with errors.Is.
func TestPublicPackagesExportTheirErrors(t *testing.T) {
	made := map[string]string{"Corruptf": "ErrCorrupt", "Unsupportedf": "ErrUnsupported"}
	for _, p := range publicPackages(t) {
		path, _ := insideModule(p.Path())
		if testSupport(path) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(moduleRoot(t), filepath.FromSlash(path), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(path, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
			ast.Inspect(f, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := sel.X.(*ast.Ident); !ok || of.Name != "fault" {
					return true
				}
				want := sel.Sel.Name
				if e, ok := made[want]; ok {
					want = e
				}
				if strings.HasPrefix(want, "Err") && p.Scope().Lookup(want) == nil {
					t.Errorf("%s returns %s and does not export it", display(path), want)
				}
				return true
			})
		}
	}
}
