package oribi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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

// fence is a fenced block of a page: text[from:to], without the fences.
type fence struct{ from, to int }

// blocks finds the fenced blocks of a language.
func blocks(text, language string) (found []fence) {
	open := "\n```" + language + "\n"
	for at := 0; ; {
		i := strings.Index(text[at:], open)
		if i < 0 {
			return found
		}
		from := at + i + len(open)
		// The newline of the opening fence may be the one before the closing fence.
		end := strings.Index(text[from-1:], "\n```\n")
		if end < 0 {
			return found
		}
		at = from + end
		found = append(found, fence{from, at})
	}
}

// onlyBlock returns the text of the only block of a language in a page.
func onlyBlock(t *testing.T, text, language string) (fence, string) {
	t.Helper()
	found := blocks(text, language)
	if len(found) != 1 {
		t.Fatalf("%d blocks of %s, want one", len(found), language)
	}
	return found[0], text[found[0].from:found[0].to]
}

// rewrite writes actual output into a page if $ORIBI_REWRITE is set.
func rewrite(t *testing.T, name, text string, b fence, with string) {
	if os.Getenv("ORIBI_REWRITE") == "" {
		return
	}
	if err := os.WriteFile(name, []byte(text[:b.from]+with+text[b.to:]), 0o644); err != nil {
		t.Fatal(err)
	}
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
	_, program := onlyBlock(t, text, "go")
	shown, want := onlyBlock(t, text, "text")
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
		rewrite(t, "README.md", text, shown, string(out))
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

// shell runs commands in a directory, with the oribi command in its path.
type shell struct{ dir, bin string }

func newShell(t *testing.T) *shell {
	t.Helper()
	if testing.Short() {
		t.Skip("links the command")
	}
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a shell")
	}
	s := &shell{bin: t.TempDir()}
	goCommand(t, "build", "-ldflags", fastLink, "-o", s.bin+string(filepath.Separator), "./cmd/oribi")
	return s
}

// run returns the output of a command, including stderr.
func (s *shell) run(command string) (string, error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = s.dir
	cmd.Env = append(cmd.Environ(), "PATH="+s.bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// varying matches what differs between runs: timestamps, as numbers and as times, and IDs.
var varying = regexp.MustCompile(`\b7\d{18}\b|\b20\d\d-[-0-9]{5}T[0-9:.]+Z\b|\b[0-9a-f]{32}\b`)

// retype runs the commands of a console block and returns the block with their output. A command is
// a line that begins with "$ ", with the following lines that begin with "> "; the rest is output.
// Output that differs only in varying parts is kept unchanged.
func (s *shell) retype(t *testing.T, text string) string {
	var out strings.Builder
	for _, part := range strings.Split("\n"+text, "\n$ ")[1:] {
		lines := strings.SplitAfter(strings.TrimSuffix(part, "\n")+"\n", "\n")
		command := lines[0]
		out.WriteString("$ " + lines[0])
		lines = lines[1:]
		for strings.HasPrefix(lines[0], "> ") {
			command += lines[0][2:]
			out.WriteString(lines[0])
			lines = lines[1:]
		}
		want := strings.Join(lines, "")
		got, err := s.run(command)
		if err != nil && !strings.Contains(got, "oribi: ") {
			t.Errorf("%s: %v", command, err)
		}
		if varying.ReplaceAllString(got, "#") == varying.ReplaceAllString(want, "#") {
			got = want
		} else {
			t.Errorf("%sprints:\n%s\nthe page says:\n%s", command, got, want)
		}
		out.WriteString(got)
	}
	return out.String()
}

// TestPages compares the console blocks of the pages with the command's output.
func TestPages(t *testing.T) {
	s := newShell(t)
	t.Run("show what commands print", s.typePages)
	t.Run("name verbs and flags that exist", s.checkVerbs)
}

// typePages runs the commands of every page, each page in an empty directory.
func (s *shell) typePages(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	typed := 0
	for _, name := range append(pages, "README.md", "CONTRIBUTING.md") {
		text := page(t, name)
		found := blocks(text, "console")
		if len(found) == 0 {
			continue
		}
		typed++
		t.Run(name, func(t *testing.T) {
			s.dir = t.TempDir()
			printed := make([]string, len(found))
			for i, b := range found {
				printed[i] = s.retype(t, text[b.from:b.to])
			}
			for i, b := range slices.Backward(found) {
				rewrite(t, name, text, b, printed[i])
				text = text[:b.from] + printed[i] + text[b.to:]
			}
		})
	}
	if typed == 0 {
		t.Error("found no commands in the pages")
	}
}

// checkVerbs compares the table in docs/command.md with the help, in both directions for the verbs.
func (s *shell) checkVerbs(t *testing.T) {
	s.dir = t.TempDir()
	verbs := regexp.MustCompile("(?m)^\\| `(oribi [a-z]+(?: [a-z]+)*)(.*)$").FindAllStringSubmatch(page(t, "docs/command.md"), -1)
	var named []string
	for _, verb := range verbs {
		named = append(named, verb[1])
		help, err := s.run(verb[1] + " --help")
		if err != nil {
			t.Errorf("%s --help: %v", verb[1], err)
		}
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(verb[2], -1) {
			if !strings.Contains(help, flag+" ") {
				t.Errorf("%s has no flag %s", verb[1], flag)
			}
		}
	}
	help, err := s.run("oribi help")
	if err != nil {
		t.Fatal(err)
	}
	_, topics, _ := strings.Cut(help, "\nPages, ")
	pages := regexp.MustCompile(`(?m)^  ([a-z]+)  `).FindAllStringSubmatch(topics, -1)
	if len(pages) < 5 {
		t.Errorf("found only %d pages in the help", len(pages))
	}
	intro, _, _ := strings.Cut(page(t, "docs/command.md"), "\n\n|")
	for _, topic := range pages {
		if !strings.Contains(intro, "`"+topic[1]+"`") && !strings.Contains(intro, "`oribi help "+topic[1]+"`") {
			t.Errorf("docs/command.md does not name the page %q of the help", topic[1])
		}
	}
	listed := regexp.MustCompile(`(?m)^  (oribi [a-z]+(?: [a-z]+)*)`).FindAllStringSubmatch(help, -1)
	if len(listed) < 20 {
		t.Fatalf("found only %d commands in the help", len(listed))
	}
	for _, verb := range listed {
		if !slices.Contains(named, verb[1]) {
			t.Errorf("docs/command.md does not name %q", verb[1])
		}
	}
}

func TestReadmeNamesTheTwoCommands(t *testing.T) {
	for _, line := range []string{"go run ./cmd/oribi demo", "go test ./..."} {
		if !strings.Contains(page(t, "README.md"), "\n    "+line+"\n") {
			t.Errorf("README.md does not show %q on a separate line", line)
		}
	}
}
