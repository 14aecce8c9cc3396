package storetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
)

// command is one command of a script file and its expected output.
type command struct {
	line    int
	comment []string // the lines before it
	text    string
	body    []string // the commands that follow with ">"
	want    []string
}

// parseScript reads a script:
//
//	# what this part shows
//	$ a command, or commands with semicolons between them, which make one write batch
//	> a command in the body of the command above, for def and through
//	expected line of output
//
// The commands are in scriptSteps. "name = command" names the timestamp that the command returns,
// for later reads; "name: command" runs a command in a transaction, a write batch, or another
// store. A command that fails prints "!", the error, and the errors of package oribi that it is.
//
// "def name" defines a command, in whose body $1, $2, … are the words of a call. "through a; b" runs
// its body, and again after each of the commands a and b. It prints the output once; an output that
// differs from the first one is printed with the command before it.
func parseScript(text string) (commands []*command) {
	var comment []string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "$ "):
			commands = append(commands, &command{line: i + 1, comment: comment, text: line[2:]})
			comment = nil
		case strings.HasPrefix(line, "> "):
			c := commands[len(commands)-1]
			c.body = append(c.body, line[2:])
		case strings.HasPrefix(line, "#"), line == "":
			comment = append(comment, line)
		default:
			c := commands[len(commands)-1]
			c.want = append(c.want, line)
		}
	}
	return commands
}

// TestScripts runs testdata/*.txt. ORIBI_REWRITE=1 rewrites the scripts with the actual output
// instead.
func TestScripts(t *testing.T) {
	names := must.Get(filepath.Glob("testdata/*.txt"))(t)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) { runScript(t, name) })
	}
}

func runScript(t *testing.T, name string) {
	if strings.HasSuffix(name, "followers.txt") {
		needFollowers(t)
	}
	text := must.Get(os.ReadFile(name))(t)
	s := &scripted{t: t, defs: map[string][]string{}}
	must.Do(t, s.renew(&arguments{}))
	var rewritten strings.Builder
	for _, c := range parseScript(string(text)) {
		s.out = nil
		s.run(c.text, c.body)
		for _, part := range [][]string{c.comment, {"$ " + c.text}, prefixed("> ", c.body), s.out} {
			for _, line := range part {
				rewritten.WriteString(line + "\n")
			}
		}
		if os.Getenv("ORIBI_REWRITE") == "" && !slices.Equal(s.out, c.want) {
			t.Errorf("%s:%d: %s\ngot\n\t%s\nwant\n\t%s", name, c.line, c.text, strings.Join(s.out, "\n\t"),
				strings.Join(c.want, "\n\t"))
		}
	}
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(name, []byte(rewritten.String()), 0o600))
	}
}

func prefixed(prefix string, lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, prefix+line)
	}
	return out
}

// scripted is the state of a script that runs.
type scripted struct {
	t        *testing.T
	wall     *fakeWall
	logical  bool // timestamps count from 1; else they come from wall
	options  oribi.Options
	store    *oribi.Store
	table    *oribi.Table
	tx       *oribi.Tx    // of a command with the name of a transaction
	batch    *oribi.Batch // of a command with the name of a write batch
	last     mvcc.Timestamp
	times    map[string]mvcc.Timestamp
	named    map[string]any // transactions, write batches, snapshots, stores
	canceled bool           // the context of the command is canceled
	defs     map[string][]string
	out      []string
}

func (s *scripted) print(format string, args ...any) {
	s.out = append(s.out, fmt.Sprintf(format, args...))
}

var (
	timeName   = regexp.MustCompile(`^(\w+) = (.*)`)
	unsetWord  = regexp.MustCompile(` \$\d`)
	targetName = regexp.MustCompile(`^(\w+): (.*)`)
)

// run runs a command with its body.
func (s *scripted) run(text string, body []string) {
	if m := timeName.FindStringSubmatch(text); m != nil {
		s.run(m[2], body)
		s.times[m[1]] = s.last
		return
	}
	if m := targetName.FindStringSubmatch(text); m != nil {
		s.runIn(m[1], m[2], body)
		return
	}
	word, rest, _ := strings.Cut(text, " ")
	switch lines, defined := s.defs[word]; {
	case word == "def":
		s.defs[rest] = body
	case word == "through":
		s.through(rest, body)
	case defined:
		for _, line := range lines {
			for i, w := range splitCommand(rest)[0] {
				line = strings.ReplaceAll(line, fmt.Sprint("$", i+1), w)
			}
			s.run(unsetWord.ReplaceAllString(line, ""), nil)
		}
	default:
		s.fail(s.step(text))
	}
}

// runIn runs a command in a transaction, a write batch or a store.
func (s *scripted) runIn(name, text string, body []string) {
	switch x := s.named[name].(type) {
	case *oribi.Tx:
		s.tx = x
		defer func() { s.tx = nil }()
	case *oribi.Batch:
		s.batch = x
		defer func() { s.batch = nil }()
	case *oribi.Store:
		defer func(store *oribi.Store, table *oribi.Table) { s.store, s.table = store, table }(s.store, s.table)
		var err error
		if s.store = x; text != "refresh" && text != "tables" {
			s.table, err = x.Table(s.table.Name())
		}
		if err != nil {
			s.fail(err)
			return
		}
	default:
		s.t.Fatalf("%s: nothing has the name %s", text, name)
	}
	s.run(text, body)
}

// through runs body, and again after each command.
func (s *scripted) through(commands string, body []string) {
	before := s.out
	var first []string
	for i, step := range append([]string{""}, strings.Split(commands, "; ")...) {
		s.out = nil
		if step != "" {
			s.run(step, nil)
			s.out = slices.DeleteFunc(s.out, func(line string) bool { return line[0] != '!' })
		}
		for _, line := range body {
			s.run(line, nil)
		}
		if i == 0 {
			first = s.out
		} else if !slices.Equal(s.out, first) {
			first = append(slices.Clone(first), append([]string{"after " + step + ":"}, s.out...)...)
			break
		}
	}
	s.out = append(before, first...)
}

// classes are the errors that a caller can test for.
var classes = map[string]error{"NotFound": oribi.ErrNotFound, "NoTable": oribi.ErrNoTable,
	"NoColumn": oribi.ErrNoColumn, "KeyExists": oribi.ErrKeyExists, "Exists": oribi.ErrExists, "Row": oribi.ErrRow,
	"Schema": oribi.ErrSchema, "TooOld": oribi.ErrTooOld, "Future": oribi.ErrFuture, "Conflict": oribi.ErrConflict,
	"Overflow": oribi.ErrOverflow, "BatchTooLarge": oribi.ErrBatchTooLarge, "Corrupt": oribi.ErrCorrupt,
	"Unsupported": oribi.ErrUnsupported, "NotStore": oribi.ErrNotStore, "Locked": oribi.ErrLocked,
	"ReadOnly": oribi.ErrReadOnly, "Poisoned": oribi.ErrPoisoned, "Closed": oribi.ErrClosed,
	"NoSpace": oribi.ErrNoSpace, "Committed": oribi.ErrCommitted, "TxEnded": oribi.ErrTxEnded}

// fail prints an error, if it is not nil.
func (s *scripted) fail(err error) {
	if err == nil {
		return
	}
	var is []string
	for name, class := range classes {
		if errors.Is(err, class) {
			is = append(is, name)
		}
	}
	slices.Sort(is)
	s.print("! %s %v", scrubbedTimes.ReplaceAllString(err.Error(), "TS"), is)
}

// scrubbedTimes matches timestamps of a physical clock in errors. They depend on a random number.
var scrubbedTimes = regexp.MustCompile(`\d{19} \(20\S*\)`)
