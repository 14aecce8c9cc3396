//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// On a terminal, records are printed as a table, in color unless the environment disables it;
// elsewhere as JSON lines.
func TestTerminalOutputIsTable(t *testing.T) {
	dir := numbers(t)
	for _, c := range []struct {
		environment, want string
	}{
		{"TERM=xterm", "\x1b[1mtable  rows  rowsets  bytes\x1b[0m\nt         0        0    0 B\n\x1b[2m(1 row)\x1b[0m\n"},
		{"NO_COLOR=1", "table  rows  rowsets  bytes\nt         0        0    0 B\n(1 row)\n"},
		{"TERM=dumb", "table  rows  rowsets  bytes\nt         0        0    0 B\n(1 row)\n"},
	} {
		cmd := exec.Command(binary, "table", "list", dir)
		cmd.Env = append(without("NO_COLOR"), c.environment)
		var out bytes.Buffer
		if err := onTerminal(&out, cmd); err != nil {
			t.Skip("no pseudo terminal: ", err)
		}
		if out.String() != c.want {
			t.Errorf("on a terminal with %s: %q, want %q", c.environment, out.String(), c.want)
		}
	}
	if got, want := must(t, nil, "table", "list", dir), `{"table":"t","rows":0,"rowsets":0,"bytes":0}`+"\n"; got != want {
		t.Errorf("without a terminal: %q, want %q", got, want)
	}
}

// without returns the environment without a variable.
func without(name string) (environment []string) {
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, name+"=") {
			environment = append(environment, e)
		}
	}
	return environment
}
