package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// The trees were listed by git, the history was computed from diffs: each checks the other.
func TestBundledHistoryLeadsToTheBundledTrees(t *testing.T) {
	s := &show{}
	var err error
	if s.commits, err = loadHistory(); err != nil {
		t.Fatal(err)
	}
	for i, c := range s.commits {
		if c.seq != int64(i+1) {
			t.Fatalf("commit %d is at position %d", c.seq, i+1)
		}
	}
	for _, seq := range bundledTrees {
		want, _, err := s.expected(seq)
		if err != nil {
			t.Fatal(err)
		}
		got := s.replayed(seq)
		if i := firstDifference(got, want); i >= 0 || len(want) < 700 {
			t.Errorf("after commit %d: %d files, want %d; the first difference is at %d", seq, len(got), len(want), i)
		}
	}
}

func TestFirstDifference(t *testing.T) {
	a, b := file{path: "a", size: 1}, file{path: "a", size: 2}
	for _, c := range []struct {
		x, y []file
		want int
	}{{nil, nil, -1}, {[]file{a}, []file{a}, -1}, {[]file{a}, []file{b}, 0}, {[]file{a}, []file{a, b},
		1}, {[]file{a, b}, []file{a}, 1}} {
		if got := firstDifference(c.x, c.y); got != c.want {
			t.Errorf("%v, %v: got %d, want %d", c.x, c.y, got, c.want)
		}
	}
}

// An interrupted run returns the context's error and leaves no files.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Run(ctx, new(bytes.Buffer), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

func TestPage(t *testing.T) {
	var out bytes.Buffer
	p := page{out: &out}
	p.title("Titlé")
	p.text("%s", strings.Repeat("word ", 30))
	p.rows([]string{"number", "text"})
	p.rows([]string{"1,000", "a"})
	p.rows([]string{"–", "bc"})
	p.end()
	want := "Titlé\n-----\n" + strings.TrimSpace(strings.Repeat("word ", 16)) + "\n" +
		strings.TrimSpace(strings.Repeat("word ", 14)) + "\n" +
		"  number  text\n   1,000  a\n       –  bc\n"
	if p.err != nil || out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{"/tmp/a_b-1.2": "/tmp/a_b-1.2", "a b": "'a b'",
		"it's": `'it'\''s'`, "a*": "'a*'", "`x`": "'`x`'",
		`a\b`: `'a\b'`, "~": "'~'", "": "''", "é": "'é'"} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
