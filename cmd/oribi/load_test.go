//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/oribi-db/oribi/internal/must"
)

// Ctrl-C ends a load between two batches; the rows reported as loaded are in the table.
func TestInterruptedLoadReportsCommittedRows(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	cmd := exec.Command(binary, "table", "load", dir, "t", "-", "--batch", "10",
		"--input-format", "csv", "--skip-bad", "-")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	var rows strings.Builder
	rows.WriteString("k,v\n")
	for k := range 39 {
		fmt.Fprintf(&rows, "%d,x\n", k)
	}
	// Bad lines fill a batch like good ones do: once they are written, the preceding batches are
	// committed.
	rows.WriteString(strings.Repeat("bad\n", 20))
	must.Get(io.WriteString(in, rows.String()))(t)
	must.Get(io.ReadFull(out, make([]byte, len("bad\n"))))(t)
	must.Do(t, cmd.Process.Signal(os.Interrupt))
	io.Copy(io.Discard, out)
	cmd.Wait()
	lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(lines[len(lines)-1], "loaded "), " rows"))
	if code := cmd.ProcessState.ExitCode(); code != 130 || lines[0] != "oribi: interrupted" ||
		!strings.Contains(lines[1], "insert_ignore") || err != nil || n < 30 {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	must.Equal(t, succeed(t, nil, "table", "count", dir, "t"), fmt.Sprintln(n), n)
}

// On a terminal a load prints the same lines; if a bar was drawn, it is removed.
func TestLoadOnATerminal(t *testing.T) {
	dir := numbers(t)
	file := filepath.Join(t.TempDir(), "rows.csv")
	must.Do(t, os.WriteFile(file, []byte("k,v\n1,a\n2,b\n"), 0o600))
	for i, want := range []string{"loaded 2 rows\n", "oribi: " + file + ":2: column \"k\": key 1: key exists\n" +
		"to load the rest of a file: --mode insert_ignore; to replace rows: --mode upsert\nloaded 0 rows\n"} {
		terminal, err := pty.Start(exec.Command(binary, "table", "load", dir, "t", file))
		if err != nil {
			t.Skip("no pseudo terminal: ", err)
		}
		out, _ := io.ReadAll(terminal) // ends in an error when the other end is closed, as terminals do
		terminal.Close()
		text := strings.ReplaceAll(string(out), "\r\n", "\n")
		if at := strings.LastIndex(text, "\x1b[K"); at >= 0 {
			text = text[at+len("\x1b[K"):]
		}
		must.Equal(t, text, want, i)
	}
}

// A load fails if its file is truncated while it is read.
func TestLoadReportsTruncatedFile(t *testing.T) {
	t.Parallel()
	dir := numbers(t)
	file := filepath.Join(t.TempDir(), "rows.csv")
	var rows strings.Builder
	rows.WriteString("k,v\n")
	for k := range 200_000 {
		fmt.Fprintf(&rows, "%d,%07d\n", k, k)
	}
	must.Do(t, os.WriteFile(file, []byte(rows.String()), 0o600))
	// The records that are skipped go into a pipe that is not read until the file is truncated, so
	// the load blocks on it.
	cmd := exec.Command(binary, "table", "load", dir, "t", file, "--skip-bad", "-", "--no-header", "--columns", "v,k")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	must.Get(io.ReadFull(out, make([]byte, 1)))(t)
	must.Do(t, os.Truncate(file, 2_000_000))
	io.Copy(io.Discard, out)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 ||
		!strings.Contains(errs.String(), "the file became shorter while it was read") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
