package oribi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// readme is README.md.
func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// block is the first fenced block of a language in the README.
func block(t *testing.T, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(readme(t), "\n```"+language+"\n")
	text, _, ends := strings.Cut(rest, "\n```\n")
	if !found || !ends {
		t.Fatalf("README.md has no block of %s", language)
	}
	return text + "\n"
}

// goCommand runs the go command in the module's root.
func goCommand(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestReadmeProgramRuns builds the program of the README as a package of this module that exists in an overlay alone, and
// runs it. With -short it is only compiled.
func TestReadmeProgramRuns(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(block(t, "go")), 0o600); err != nil {
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
		goCommand(t, "build", "-overlay", overlayFile, "./internal/readme", "./internal/fault") // two packages: nothing is linked
		return
	}
	program := filepath.Join(dir, "program.exe")
	goCommand(t, "build", "-overlay", overlayFile, "-o", program, "./internal/readme")
	cmd := exec.Command(program)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := "It prints `" + strings.TrimSpace(string(out)) + "`."; !strings.Contains(readme(t), said) {
		t.Errorf("the program prints %q, the README says otherwise", out)
	}
}

// TestReadmeCommandsPrintWhatTheReadmeShows types the commands of the README in an empty directory.
func TestReadmeCommandsPrintWhatTheReadmeShows(t *testing.T) {
	if testing.Short() {
		t.Skip("links the command")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a shell")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	goCommand(t, "build", "-o", bin+string(filepath.Separator), "./cmd/oribi")
	shell := func(command string) string {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return out.String()
	}
	for _, part := range strings.Split("\n"+block(t, "console"), "\n$ ")[1:] {
		command, want, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		if got := shell(command); got != want {
			t.Errorf("%s\nprints:\n%s\nthe README says:\n%s", command, got, want)
		}
	}

	verbs := regexp.MustCompile("(?m)^\\| `(oribi [a-z ]+)(.*)$").FindAllStringSubmatch(readme(t), -1)
	if len(verbs) < 10 {
		t.Fatalf("found only %d commands in the table", len(verbs))
	}
	for _, verb := range verbs {
		help := shell(verb[1] + " --help")
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(verb[2], -1) {
			if !strings.Contains(help, flag) {
				t.Errorf("%s has no flag %s", verb[1], flag)
			}
		}
	}
}

func TestReadmeNamesTheTwoCommands(t *testing.T) {
	for _, line := range []string{"go run ./cmd/oribi demo", "go test ./..."} {
		if !strings.Contains(readme(t), "\n    "+line+"\n") {
			t.Errorf("README.md does not show %q on a line of its own", line)
		}
	}
}
