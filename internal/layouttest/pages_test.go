package layouttest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// pages lists the documentation pages of the module, as slash-separated paths.
func pages(t *testing.T) []string {
	t.Helper()
	root := moduleRoot(t)
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		found := must.Get(filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern))))(t)
		names = append(names, found...)
	}
	if len(names) < 8 {
		t.Fatalf("found only %d pages: this test looks in the wrong place", len(names))
	}
	return names
}

// link matches a Markdown link: [text](target). picture matches the file of a picture.
var (
	link    = regexp.MustCompile(`\[([^\]]*)\]\(([^)\s]+)\)`)
	picture = regexp.MustCompile(`<img src="([^"]*)"`)
)

// declared lists the top-level declarations of a Go file: names of constants, variables, types and
// functions, and methods as Type.Name.
func declared(t *testing.T, name string) []string {
	t.Helper()
	f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// TestLinksOfPagesExist follows every link within the repository. If a link to a Go file has code
// as its text, such as [`Store.Close`](../close.go), the file must declare that name.
func TestLinksOfPagesExist(t *testing.T) {
	identifiers := 0
	for _, page := range pages(t) {
		text := must.Get(os.ReadFile(page))(t)
		rel, _ := filepath.Rel(moduleRoot(t), page)
		for _, p := range picture.FindAllStringSubmatch(string(text), -1) {
			must.Do(t, must.Err(os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(p[1])))), rel)
		}
		for _, l := range link.FindAllStringSubmatch(string(text), -1) {
			name, target := l[1], l[2]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "#") {
				continue
			}
			target, _, _ = strings.Cut(target, "#")
			file := filepath.Join(filepath.Dir(page), filepath.FromSlash(target))
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the target of %s does not exist", rel, l[0])
				continue
			}
			if code := strings.Trim(name, "`"); code != name && strings.HasSuffix(file, ".go") {
				identifiers++
				if !slices.Contains(declared(t, file), code) {
					t.Errorf("%s: %s: the file does not declare %s", rel, l[0], code)
				}
			}
		}
	}
	if identifiers < 30 {
		t.Errorf("found only %d links to declarations: this test does not recognize them", identifiers)
	}
}

// TestPageOfFormatsNamesEveryFormat checks that docs/formats.md links each file that defines bytes
// of a format.
func TestPageOfFormatsNamesEveryFormat(t *testing.T) {
	root := moduleRoot(t)
	text := must.Get(os.ReadFile(filepath.Join(root, "docs", "formats.md")))(t)
	formats := 0
	must.Do(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && name != root && outside(name, d.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if !strings.Contains(string(source), "// file format: never change") &&
			!strings.Contains(string(source), "; file format: never change") {
			return nil
		}
		formats++
		rel, _ := filepath.Rel(root, name)
		if !strings.Contains(string(text), "](../"+filepath.ToSlash(rel)+")") {
			t.Errorf("docs/formats.md does not link %s, which defines bytes of a format", rel)
		}
		return nil
	}))
	if formats < 20 {
		t.Errorf("found only %d files with formats: this test does not recognize them", formats)
	}
}

// TestPagesDoNotRepeatEachOther fails for a run of words that is in the prose of two pages: one of
// them can link to the other.
func TestPagesDoNotRepeatEachOther(t *testing.T) {
	const run = 16 // words
	code := regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|^\\|.*?$")
	word := regexp.MustCompile("[A-Za-z0-9_]+")
	first := map[string]string{} // the page in which a run of words is
	for _, page := range pages(t) {
		rel, _ := filepath.Rel(moduleRoot(t), page)
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(rel, "docs/decisions/") || rel == "CHANGELOG.md" {
			continue // of the past
		}
		text := must.Get(os.ReadFile(page))(t)
		words := word.FindAllString(code.ReplaceAllString(string(text), "."), -1)
		for i := range max(0, len(words)-run+1) {
			text := strings.Join(words[i:i+run], " ")
			if other, found := first[text]; found && other != rel {
				t.Errorf("%s repeats %s: %s", rel, other, text)
				break
			}
			first[text] = rel
		}
	}
}
