package oribi_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
)

// page is a Markdown page with fenced code blocks.
func page(t *testing.T, name string) string {
	t.Helper()
	text := must.Get(os.ReadFile(name))(t)
	return string(text)
}

// program returns the first block of Go in a page, and the first block of text after it. It also
// returns the page around the text.
func program(t *testing.T, text string) (source, before, output, after string) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\n```go\n")
	source, rest, _ = strings.Cut(rest, "\n```\n")
	_, rest, _ = strings.Cut(rest, "\n```text\n")
	output, after, found := strings.Cut(rest, "\n```\n")
	must.Equal(t, found, true, "no block of Go and a block of text after it")
	after = "```\n" + after
	before = strings.TrimSuffix(text, output+"\n"+after)
	return source + "\n", before, output + "\n", after
}

// programDir is the environment variable with the directory of a program, and inDirectory a part of
// the program that changes to it.
const (
	programDir  = "ORIBI_TEST_DIR"
	inDirectory = `package main

import "os"

func init() {
	if err := os.Chdir(os.Getenv("` + programDir + `")); err != nil {
		panic(err)
	}
}
`
)

// goCommand runs the go command in the root directory of the module and returns its output. Unlike
// go build, go run keeps linked programs in the build cache.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", programDir+"="+dir)
	out, err := cmd.CombinedOutput()
	must.Do(t, err, "go", args, string(out))
	return string(out)
}

// TestProgramsOfPagesRun runs the statements in the README, as the body of a function, and the program
// in the guide, and compares their output with the block of text. With -short it only compiles them.
func TestProgramsOfPagesRun(t *testing.T) {
	if invariant.Race {
		t.Skip("builds the programs without the race detector")
	}
	const imports = "import (\n\"context\"\n\"fmt\"\n\n\"github.com/oribi-db/oribi\"\n)\n"
	for name, around := range map[string][2]string{
		"README.md":     {"package main\n\n" + imports + "\nfunc main() {\nctx := context.Background()\n", "\n_ = err\n}\n"},
		"docs/guide.md": {},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) { runProgramOf(t, name, around[0], around[1]) })
	}
}

// runProgramOf builds the program of a page, with the text around it, as a package of this module
// that exists only in an overlay.
func runProgramOf(t *testing.T, name, first, last string) {
	source, before, want, after := program(t, page(t, name))
	dir := t.TempDir()
	root := must.Get(os.Getwd())(t)
	replace := map[string]string{}
	for file, source := range map[string]string{"main.go": first + source + last, "dir.go": inDirectory} {
		written := filepath.Join(dir, file)
		must.Do(t, os.WriteFile(written, []byte(source), 0o600))
		replace[filepath.Join(root, "internal", "readme", file)] = written
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replace}))(t)
	overlayFile := filepath.Join(dir, "overlay.json")
	must.Do(t, os.WriteFile(overlayFile, overlay, 0o600))
	if testing.Short() {
		// With two packages nothing is linked.
		goCommand(t, "", "build", "-overlay", overlayFile, "./internal/readme", "./internal/fault")
		return
	}
	out := goCommand(t, t.TempDir(), "run", "-overlay", overlayFile, "./internal/readme")
	if out != want {
		t.Errorf("the program prints:\n%s\nthe page says:\n%s", out, want)
		if os.Getenv("ORIBI_REWRITE") != "" {
			must.Do(t, os.WriteFile(name, []byte(before+out+after), 0o644))
		}
	}
}

// TestExamplePrograms runs each program in examples on a new store and compares what it prints with
// its output.txt.
func TestExamplePrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("links the programs")
	}
	programs, err := filepath.Glob("examples/*/main.go")
	if err != nil || len(programs) == 0 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for _, program := range programs {
		dir := filepath.Dir(program)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			want := page(t, filepath.Join(dir, "output.txt"))
			got := goCommand(t, "", "run", "./"+filepath.ToSlash(dir), filepath.Join(t.TempDir(), "store"))
			must.Equal(t, got, want, "output.txt")
		})
	}
}

func TestReadmeNamesTheTwoCommands(t *testing.T) {
	for _, line := range []string{"go run ./cmd/oribi demo", "go test ./..."} {
		must.Contain(t, page(t, "README.md"), "\n    "+line+"\n",
			"README.md does not show", line, "on a separate line")
	}
}
