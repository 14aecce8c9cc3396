package layouttest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

const modulePath = "github.com/oribi-db/oribi"

// pkg is one directory with Go files.
type pkg struct {
	path    string // in the module, with slashes; empty for the root
	name    string // from the files that are not tests; empty if all are tests
	imports []imported
	docs    []string // package comments of the files that are not tests
}

// imported is one import in one file. Files of all platforms and build tags count.
type imported struct {
	path string
	file string // in the module
	test bool   // in a _test.go file
}

func (p *pkg) String() string { return display(p.path) }

// product reports whether p has files other than tests.
func (p *pkg) product() bool { return p.name != "" }

func display(path string) string {
	if path == "" {
		return "oribi (the root)"
	}
	return path
}

// insideModule returns the path within the module of an import path.
func insideModule(importPath string) (string, bool) {
	if importPath == modulePath {
		return "", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// relativeRoot is the directory with go.mod; tests run in the directory of their package.
const relativeRoot = "../.."

// moduleRoot is relativeRoot as an absolute path.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root := must.Get(filepath.Abs(relativeRoot))(t)
	must.Get(os.Stat(filepath.Join(root, "go.mod")))(t)
	return root
}

// modulePackages parses the imports of every Go file of the module. It skips nested modules,
// testdata and hidden directories, like the go command.
func modulePackages(t *testing.T) []*pkg {
	t.Helper()
	return must.Get(parsedPackages())(t)
}

// parsedPackages parses once, for all tests.
var parsedPackages = sync.OnceValues(func() (packages []*pkg, err error) {
	byPath := map[string]*pkg{}
	err = filepath.WalkDir(relativeRoot, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(relativeRoot, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && outside(name, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.ContainsRune("._", rune(d.Name()[0])) {
			return nil
		}
		dir := strings.TrimSuffix(strings.TrimSuffix(rel, d.Name()), "/")
		p := byPath[dir]
		if p == nil {
			p = &pkg{path: dir}
			byPath[dir] = p
			packages = append(packages, p)
		}
		return p.add(name, rel)
	})
	return packages, err
})

// outside reports whether a directory below the root is not part of the module.
func outside(dir, base string) bool {
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// add parses the package clause, comments and imports of one file.
func (p *pkg) add(name, rel string) error {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	test := strings.HasSuffix(rel, "_test.go")
	if !test {
		p.name = f.Name.Name
		if f.Doc != nil {
			p.docs = append(p.docs, f.Doc.Text())
		}
	}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		p.imports = append(p.imports, imported{path: path, file: rel, test: test})
	}
	return nil
}
