package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// binary is the command, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "oribi-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "oribi")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		return 1
	}
	return m.Run()
}

// step is one command of a script with what it has to print.
type step struct {
	line    int
	comment []string // the lines before it
	command []string // its lines, without marks
	want    []string // what follows in the file
}

// parseScript reads a script:
//
//	# what there is to see
//	$ a command for sh
//	> more lines of it
//	what it prints on stdout
//	! what it prints on stderr
//	= its exit code, unless it is 0
func parseScript(text string) []*step {
	var steps []*step
	var comment []string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, &step{line: i + 1, comment: comment, command: []string{line[2:]}})
			comment = nil
		case strings.HasPrefix(line, "> "):
			s := steps[len(steps)-1]
			s.command = append(s.command, line[2:])
		case strings.HasPrefix(line, "#"), line == "":
			comment = append(comment, line)
		default:
			s := steps[len(steps)-1]
			s.want = append(s.want, line)
		}
	}
	return steps
}

// scrub makes what differs from run to run the same.
var scrub = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "UUID"},
	{regexp.MustCompile(`\b7\d{18}\b`), "TS"},
	{regexp.MustCompile(`"id":"\w*"`), `"id":"UUID"`},
	{regexp.MustCompile(`: key (\[.*\]|\{.*\}|\S+): `), ": key KEY: "},
	{regexp.MustCompile(`\(20\d\d-[-0-9T:.]+Z\)`), "(TIME)"},
	{regexp.MustCompile(`"(bytes|bytes_written|live|dead|log|metadata)":[1-9]\d*`), `"$1":#`},
}

func (s *step) run(t *testing.T, dir string) []string {
	cmd := exec.Command("sh", "-c", strings.Join(s.command, "\n"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	var got []string
	add := func(mark, text string) {
		for _, r := range scrub {
			text = r.pattern.ReplaceAllString(text, r.with)
		}
		for line := range strings.Lines(text) {
			got = append(got, mark+strings.TrimSuffix(line, "\n"))
		}
	}
	add("", out.String())
	add("! ", errs.String())
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		got = append(got, fmt.Sprintf("= %d", code))
	}
	return got
}

// TestScripts runs testdata/*.txt against the real command. ORIBI_REWRITE=1 writes what is printed into the scripts instead.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are for sh")
	}
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var rewritten bytes.Buffer
			for _, s := range parseScript(string(text)) {
				got := s.run(t, dir)
				fmt.Fprint(&rewritten, joined("", s.comment), "$ ", s.command[0], "\n", joined("> ", s.command[1:]), joined("", got))
				if os.Getenv("ORIBI_REWRITE") == "" && joined("", got) != joined("", s.want) {
					t.Errorf("%s:%d: %s\ngot\n%swant\n%s", name, s.line, s.command[0], joined("\t", got), joined("\t", s.want))
				}
			}
			if os.Getenv("ORIBI_REWRITE") != "" {
				if err := os.WriteFile(name, rewritten.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func joined(mark string, lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(mark + line + "\n")
	}
	return b.String()
}
