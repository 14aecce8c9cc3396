package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
)

// overlapping creates a store with a table t of rows rows: in two rowsets over the same keys,
// one of which has two delta files, and the last third in memory.
func overlapping(t *testing.T, rows int) string {
	t.Helper()
	ground := t.TempDir()
	dir, file := filepath.Join(ground, "S"), filepath.Join(ground, "rows.csv")
	succeed(t, "store", "init", dir)
	if _, errs, code := command(
		strings.NewReader(`{"columns":[{"name":"k","type":"int32","key":true},{"name":"v","type":"string"}]}`), "table", "create", dir, "t", "--schema", "-"); code != 0 {
		t.Fatal(errs)
	}
	for step, first := range []int{0, 1, 0, 0, rows} { // the first key; every other key follows
		var text strings.Builder
		text.WriteString("k,v\n")
		for i := range rows / 3 {
			fmt.Fprintf(&text, "%d,text %d\n", 2*i+first, i+step)
		}
		must.Do(t, os.WriteFile(file, []byte(text.String()), 0o600))
		exits(t, 0, "table", "load", dir, "t", file, "--mode", "upsert")
		if first < rows {
			succeed(t, "table", "flush", dir, "t")
		}
	}
	return dir
}

// goneReader is a pipe whose reader has closed its end.
type goneReader struct{}

func (goneReader) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// In every output form, a command whose reader has closed its end exits with code 0 and prints no
// error.
func TestCommandsExitQuietlyWhenReaderCloses(t *testing.T) {
	dir := overlapping(t, 99)
	loose := filepath.Join(filepath.Dir(dir), "loose")
	succeed(t, "table", "extract", dir, "t", loose)
	find := func(pattern string) string {
		names, err := filepath.Glob(filepath.Join(loose, "rowset-*", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		return names[0]
	}
	column, filter, undo := find("*.cfile"), find("*.bloom"), find("undo-*")
	var runs [][]string
	for _, format := range []string{"table", "csv", "jsonl", "json"} {
		for _, args := range [][]string{{"store", "info", dir}, {"store", "du", dir}, {"store", "du", dir, "--files"},
			{"table", "list", dir}, {"table", "describe", dir, "t"}, {"table", "describe", dir, "t", "--stats"},
			{"table", "scan", dir, "t"}, {"table", "get", dir, "t", "2"}, {"table", "history", dir, "t", "2"},
			{"table", "diff", dir, "t", "--from", "0", "--to", "latest"},
			{"cfile", "info", column}, {"cfile", "dump", column}, {"cfile", "blocks", column},
			{"cfile", "advise", column}, {"bloom", "info", filter}, {"delta", "dump", undo}} {
			runs = append(runs, append(args, "--format", format))
		}
	}
	runs = append(runs, [][]string{{"store", "verify", dir}, {"table", "count", dir, "t"},
		{"table", "compact", dir, "t"}, {"table", "flush", dir, "t"},
		{"cfile", "seek", column, "2"}, {"cfile", "verify", column}, {"cfile", "blocks", "--annotate", column},
		{"bloom", "probe", filter, "00"},
		{"help"}, {"help", "table", "scan"}, {"table", "scan", "--help"}, {"version"},
		{"completion", "bash"}, {"demo"}}...)
	for _, args := range runs {
		var errs bytes.Buffer
		a := &console.Console{Stdout: &console.Stdout{Out: goneReader{}}, Stderr: &errs}
		if code := run(context.Background(), a, args); code != 0 || errs.Len() > 0 {
			t.Errorf("oribi %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
		}
	}
}

// countdown is a context that is canceled after a number of calls of Err.
type countdown struct {
	context.Context
	left atomic.Int64
	done chan struct{}
}

func newCountdown(asked int) *countdown {
	c := &countdown{Context: context.Background(), done: make(chan struct{})}
	c.left.Store(int64(asked))
	return c
}

func (c *countdown) Done() <-chan struct{} { return c.done }

func (c *countdown) Err() error {
	switch left := c.left.Add(-1); {
	case left >= 0:
		return nil
	case left == -1:
		close(c.done)
	}
	return context.Canceled
}

// Interrupted at any point where it checks for an interrupt, a command exits with code 130, prints
// one line that says so, and leaves the store with all its rows. Its output so far ends with a
// complete line.
func TestInterruptedCommandsLeaveStoreIntact(t *testing.T) {
	rows, growth := 15_000, 2
	if testing.Short() {
		rows, growth = 9_000, 10
	}
	dir := overlapping(t, rows)
	for _, args := range [][]string{{"table", "scan", dir, "t"}, {"table", "count", dir, "t", "--where", "k > 5"},
		{"table", "diff", dir, "t", "--from", "0", "--to", "latest"},
		{"table", "describe", dir, "t", "--stats"}, {"store", "verify", dir}, {"table", "flush", dir, "t"},
		{"table", "compact", dir, "t", "--kind", "minor"}, {"table", "compact", dir, "t", "--kind", "major"},
		{"table", "compact", dir, "t"}} {
		name := "oribi " + strings.Join(args, " ")
		interrupted := 0
		for asked := 0; ; asked += 1 + asked*growth/2 {
			var out, errs bytes.Buffer
			a := &console.Console{Stdout: &console.Stdout{Out: &out}, Stderr: &errs}
			code := run(newCountdown(asked), a, args)
			if n := out.Len(); n > 0 && out.Bytes()[n-1] != '\n' {
				t.Errorf("%s, canceled at check %d: it printed part of a line", name, asked)
			}
			if code == 0 {
				break
			}
			if interrupted++; code != exit.Interrupted || errs.String() != "oribi: interrupted\n" {
				t.Fatalf("%s, canceled at check %d: exit code %d: %s", name, asked, code, errs.String())
			}
		}
		if interrupted == 0 {
			t.Errorf("%s is never interrupted", name)
		}
		must.Equal(t, succeed(t, "table", "count", dir, "t"), fmt.Sprintln(rows), name)
		must.Equal(t, succeed(t, "store", "verify", dir), "ok\n", name)
	}
}
