package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/maintest"
	"github.com/oribi-db/oribi/internal/must"
)

// commandName is a name for the test binary. Under this name it runs the command, so that the
// scripts run what was compiled for the tests.
const commandName = "oribi"

// binary is the path of the test binary under that name.
var binary string

func TestMain(m *testing.M) {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == commandName {
		main()
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	// A binary built with -race sleeps for a second before it exits, unless configured otherwise;
	// the scripts run hundreds of them.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	dir, err := os.MkdirTemp("", "oribi-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, commandName)
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	program, err := os.Executable()
	if err == nil && os.Symlink(program, binary) != nil {
		err = os.Link(program, binary) // creating symbolic links may not be permitted
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return maintest.Run(m)
}

// step is one command of a script and its expected output.
type step struct {
	line     int
	comment  []string // the lines before it
	command  []string // its lines, without marks
	terminal bool     // it runs on a pseudo terminal of 80 columns
	want     []string // what follows in the file
}

// parseScript reads a script:
//
//	# what this part shows
//	$ a command for sh
//	@ a command that runs on a terminal of 80 columns, which shows stdout and stderr
//	> the next line of a command
//	expected line of stdout; an empty line is a dot
//	! expected line of stderr
//	= expected exit code, unless it is 0
func parseScript(text string) []*step {
	var steps []*step
	var comment []string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "@ "):
			steps = append(steps, &step{line: i + 1, comment: comment,
				command: []string{line[2:]}, terminal: line[0] == '@'})
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

// scrub replaces what differs from run to run.
var scrub = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "UUID"},
	{regexp.MustCompile(`\b[78]\d{18}\b`), "TS"},
	{regexp.MustCompile(`"id":"\w*"`), `"id":"UUID"`},
	{regexp.MustCompile(`: key (\[.*\]|\{.*\}|\S+): `), ": key KEY: "},
	{regexp.MustCompile(`\(20\d\d-[-0-9T:.]+Z\)`), "(TIME)"},
	{regexp.MustCompile(`(TS +)20\d\d-[-0-9T:.]+Z`), "${1}TIME"},
	{regexp.MustCompile(`20\d\d-[-0-9T:.]+Z \(TS\)`), "TIME (TS)"},
	{regexp.MustCompile(`(CREATE_TIME_TS[ ",:value]*)0x000001[0-9a-f]{10}`), "${1}TIME"},
	{regexp.MustCompile(`"(bytes|bytes_written|live|dead|log|metadata)":[1-9]\d*`), `"$1":#`},
}

// size matches a size with its unit. In a column it is replaced by as many characters, so that the
// script shows its alignment.
var size = regexp.MustCompile(`( {2,})?\b\d[\d.]* ([KM]i)?B\b`)

func scrubSize(text string) string {
	if strings.HasPrefix(text, "  ") {
		return strings.Repeat(" ", len(text)-1) + "#"
	}
	return "#"
}

// run runs a step in the current directory and returns what follows it in the script.
func (s *step) run(t *testing.T) []string {
	var out, errs bytes.Buffer
	line, code := strings.Join(s.command, "\n"), 0
	if s.terminal {
		code = shellOnTerminal(t, line, &out)
	} else {
		code = shell(t, line, &out, &errs)
	}
	var got []string
	add := func(mark, text string) {
		for _, r := range scrub {
			text = r.pattern.ReplaceAllString(text, r.with)
		}
		text = size.ReplaceAllStringFunc(text, scrubSize)
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if mark == "" && line == "" {
				line = "."
			}
			got = append(got, mark+line)
		}
	}
	add("", out.String())
	add("! ", errs.String())
	if code != 0 {
		got = append(got, fmt.Sprintf("= %d", code))
	}
	return got
}

// scriptVariable is the environment variable of a process that runs one script.
const scriptVariable = "ORIBI_TEST_SCRIPT"

// TestScripts runs testdata/*.txt. ORIBI_REWRITE=1 rewrites the scripts with the actual output
// instead. Each script has a process of its own, whose current directory is the script's.
func TestScripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the scripts are for sh")
	}
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, name := range names {
		short := strings.TrimSuffix(filepath.Base(name), ".txt")
		t.Run(short, func(t *testing.T) {
			if os.Getenv(scriptVariable) == short {
				runScript(t, name)
				return
			}
			if invariant.Race && short == "demo" {
				t.Skip("takes long, in few goroutines")
			}
			t.Parallel()
			cmd := exec.Command(testProgram(t), "-test.run=^TestScripts$/^"+short+"$")
			cmd.Env = append(os.Environ(), scriptVariable+"="+short, "NO_COLOR=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// testProgram returns the path of the test binary.
func testProgram(t *testing.T) string {
	return must.Get(os.Executable())(t)
}

func runScript(t *testing.T, name string) {
	name = must.Get(filepath.Abs(name))(t)
	text := must.Get(os.ReadFile(name))(t)
	if bytes.Contains(text, []byte("$CORPUS")) {
		t.Setenv("CORPUS", corpustest.Dir(t))
	}
	t.Chdir(t.TempDir())
	var rewritten bytes.Buffer
	for _, s := range parseScript(string(text)) {
		got := s.run(t)
		fmt.Fprint(&rewritten, joined("", s.comment), s.mark(), s.command[0], "\n",
			joined("> ", s.command[1:]), joined("", got))
		if os.Getenv("ORIBI_REWRITE") == "" && joined("", got) != joined("", s.want) {
			t.Errorf("%s:%d: %s\ngot\n%swant\n%s", name, s.line, s.command[0], joined("\t", got), joined("\t", s.want))
		}
	}
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(name, rewritten.Bytes(), 0o644))
	}
}

func (s *step) mark() string {
	if s.terminal {
		return "@ "
	}
	return "$ "
}

func joined(mark string, lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(mark + line + "\n")
	}
	return b.String()
}
