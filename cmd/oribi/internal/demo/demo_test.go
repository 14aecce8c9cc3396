package demo

import (
	"bytes"
	"context"
	"github.com/oribi-db/oribi/internal/must"
	"os"
	"strings"
	"testing"
)

// The trees were listed by git, the history was computed from diffs: each checks the other.
func TestBundledHistoryLeadsToTheBundledTrees(t *testing.T) {
	s := &show{}
	s.commits = must.Get(loadHistory())(t)
	for i, c := range s.commits {
		must.Equal(t, c.seq, int64(i+1))
	}
	for _, seq := range bundledTrees {
		want, _ := must.Get2(s.expected(seq))(t)
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
		must.Equal(t, firstDifference(c.x, c.y), c.want, c.x, c.y)
	}
}

// An interrupted run returns the context's error and leaves no files.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must.Fail(t, Run(ctx, new(bytes.Buffer), ""), context.Canceled)
	must.Equal(t, len(must.Get(os.ReadDir(os.TempDir()))(t)), 0)
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
		must.Equal(t, shellWord(text), want, text)
	}
}
