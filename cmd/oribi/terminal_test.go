//go:build unix

package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// On a terminal records are printed as a table, elsewhere as lines of JSON.
func TestTerminalGetsATable(t *testing.T) {
	dir := numbers(t)
	terminal, err := pty.Start(exec.Command(binary, "table", "list", dir))
	if err != nil {
		t.Skip("no pseudo terminal: ", err)
	}
	defer terminal.Close()
	out, _ := io.ReadAll(terminal) // ends in an error, as terminals do whose other side is gone
	if got, want := strings.ReplaceAll(string(out), "\r", ""), "table  rows  rowsets  bytes\nt         0        0      0\n"; got != want {
		t.Errorf("on a terminal: %q, want %q", got, want)
	}
	if got, want := must(t, nil, "table", "list", dir), `{"table":"t","rows":0,"rowsets":0,"bytes":0}`+"\n"; got != want {
		t.Errorf("elsewhere: %q, want %q", got, want)
	}
}
