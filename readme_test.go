package oribi_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// page is a Markdown page with fenced code blocks.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// onlyBlock returns the only fenced block of a language in a page, and the text around it.
func onlyBlock(t *testing.T, text, language string) (before, block, after string) {
	t.Helper()
	open := "\n```" + language + "\n"
	before, rest, _ := strings.Cut(text, open)
	block, after, closed := strings.Cut(rest, "\n```\n")
	if !closed || strings.Contains(after, open) {
		t.Fatalf("not one block of %s", language)
	}
	return before + open, block + "\n", "```\n" + after
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
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestReadmeProgramRuns builds the program of the README as a package of this module that exists
// only in an overlay, and compares its output with the text block. With -short it only compiles the
// program.
func TestReadmeProgramRuns(t *testing.T) {
	text := page(t, "README.md")
	_, program, _ := onlyBlock(t, text, "go")
	before, want, after := onlyBlock(t, text, "text")
	dir := t.TempDir()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, source := range map[string]string{"main.go": program, "dir.go": inDirectory} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, "internal", "readme", name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		goCommand(t, "", "build", "-overlay", overlayFile, "./internal/readme", "./internal/fault") // with two packages nothing is linked
		return
	}
	out := goCommand(t, t.TempDir(), "run", "-overlay", overlayFile, "./internal/readme")
	if out != want {
		t.Errorf("the program prints:\n%s\nthe README says:\n%s", out, want)
		if os.Getenv("ORIBI_REWRITE") != "" {
			if err := os.WriteFile("README.md", []byte(before+out+after), 0o644); err != nil {
				t.Fatal(err)
			}
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
			if got != want {
				t.Errorf("it prints\n%swant, in output.txt,\n%s", got, want)
			}
		})
	}
}

func TestReadmeNamesTheTwoCommands(t *testing.T) {
	for _, line := range []string{"go run ./cmd/oribi demo", "go test ./..."} {
		if !strings.Contains(page(t, "README.md"), "\n    "+line+"\n") {
			t.Errorf("README.md does not show %q on a separate line", line)
		}
	}
}
