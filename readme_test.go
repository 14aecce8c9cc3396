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

// fastLink omits symbols and debugging information, as go run does.
const fastLink = "-s -w"

// goCommand runs the go command in the root directory of the module.
func goCommand(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestReadmeProgramRuns builds the program of the README as a package of this module that exists
// only in an overlay, and compares its output with the text block. With -short it only compiles the
// program.
func TestReadmeProgramRuns(t *testing.T) {
	text := page(t, "README.md")
	_, program, _ := onlyBlock(t, text, "go")
	before, want, after := onlyBlock(t, text, "text")
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "internal", "readme", "main.go"): source}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		goCommand(t, "build", "-overlay", overlayFile, "./internal/readme", "./internal/fault") // with two packages nothing is linked
		return
	}
	binary := filepath.Join(dir, "program.exe")
	goCommand(t, "build", "-ldflags", fastLink, "-overlay", overlayFile, "-o", binary, "./internal/readme")
	cmd := exec.Command(binary)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) != want {
		t.Errorf("the program prints:\n%s\nthe README says:\n%s", out, want)
		if os.Getenv("ORIBI_REWRITE") != "" {
			if err := os.WriteFile("README.md", []byte(before+string(out)+after), 0o644); err != nil {
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
			// Unlike go build, go run keeps linked programs in the build cache.
			cmd := exec.Command("go", "run", "./"+filepath.ToSlash(dir), filepath.Join(t.TempDir(), "store"))
			cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
			got, err := cmd.CombinedOutput()
			if err != nil || string(got) != want {
				t.Errorf("%v: it prints\n%swant, in output.txt,\n%s", err, got, want)
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
