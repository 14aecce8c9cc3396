package layouttest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

var (
	citation = regexp.MustCompile(`(?i)\b([a-z]+) (?:spec|specification)[^§.]{0,20}(§[0-9][§0-9., –and]*)|` +
		`\b(design) (§[0-9][§0-9., –and]*)`)
	section = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)*`)
	heading = regexp.MustCompile(`(?m)^#+ ([0-9]+(?:\.[0-9]+)*)`)
)

// Each section that a comment cites, such as "tablet spec §13.1", is in a page of docs/spec.
func TestCitedSectionsExist(t *testing.T) {
	root := moduleRoot(t)
	pages := must.Get(filepath.Glob(filepath.Join(root, "docs", "spec", "*.md")))(t)
	sections := map[string]map[string]bool{}
	for _, name := range pages {
		text := must.Get(os.ReadFile(name))(t)
		in := map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			in[m[1]] = true
		}
		sections[strings.TrimSuffix(filepath.Base(name), ".md")] = in
	}
	cited := 0
	must.Do(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && name != root && outside(name, d.Name()) {
				return filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, m := range citation.FindAllStringSubmatch(strings.Join(strings.Fields(group.Text()), " "), -1) {
				page, list := strings.ToLower(m[1]+m[3]), m[2]+m[4]
				for _, s := range section.FindAllString(list, -1) {
					if cited++; !sections[page][s] {
						t.Errorf("%s: %q: there is no section %s in docs/spec/%s.md",
							files.Position(group.Pos()), m[0], s, page)
					}
				}
			}
		}
		return nil
	}))
	if t.Logf("%d sections are cited", cited); cited < 200 {
		t.Error("most citations were not found")
	}
}
