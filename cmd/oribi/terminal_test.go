//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/oribi-db/oribi/internal/must"
)

// On a terminal, records are printed as a table, in color unless the environment disables it;
// elsewhere as JSON lines.
func TestTerminalOutputIsTable(t *testing.T) {
	dir := numbers(t)
	for _, c := range []struct {
		environment, want string
	}{
		{"TERM=xterm", "\x1b[1mtable  rows  rowsets  bytes\x1b[0m\nt         0        0    0 B\n\x1b[2m(1 " +
			"row)\x1b[0m\n"},
		{"NO_COLOR=1", "table  rows  rowsets  bytes\nt         0        0    0 B\n(1 row)\n"},
		{"TERM=dumb", "table  rows  rowsets  bytes\nt         0        0    0 B\n(1 row)\n"},
	} {
		cmd := exec.Command(binary, "table", "list", dir)
		cmd.Env = append(without("NO_COLOR"), c.environment)
		var out bytes.Buffer
		if err := onTerminal(&out, cmd); err != nil {
			t.Skip("no pseudo terminal: ", err)
		}
		must.Equal(t, out.String(), c.want, c.environment)
	}
	must.Equal(t, succeed(t, nil, "table", "list", dir), `{"table":"t","rows":0,"rowsets":0,"bytes":0}`+"\n")
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

// On a terminal, a command that would change many rows asks. Everything but yes changes nothing.
func TestManyRowsAreConfirmedOnATerminal(t *testing.T) {
	dir := numbers(t)
	var rows strings.Builder
	for i := range 1500 {
		fmt.Fprintln(&rows, i)
	}
	run(t, strings.NewReader("id\n"+rows.String()), "table", "load", dir, "big", "-", "--create", "--key", "id")
	for _, c := range []struct {
		answer, rows string
		code         int
	}{{"n\r", "1500", 6}, {"\r", "1500", 6}, {"\x04", "1500", 6}, {"\x03", "1500", 130}, {"Yes\r", "0", 0}} {
		cmd := exec.Command(binary, "table", "delete", dir, "big", "--where", "id >= 0")
		terminal, err := pty.StartWithSize(cmd, &window)
		if err != nil {
			t.Skip("no pseudo terminal: ", err)
		}
		shown := ""
		for buf := make([]byte, 100); !strings.HasSuffix(shown, "[y/N] "); {
			n, err := terminal.Read(buf)
			if shown += string(buf[:n]); err != nil {
				t.Fatalf("%q: %v", shown, err)
			}
		}
		must.Equal(t, shown, `delete 1500 rows of table "big"? [y/N] `)
		must.Get(terminal.WriteString(c.answer))(t)
		readTerminal(new(bytes.Buffer), terminal)
		terminal.Close()
		if cmd.Wait(); cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("answer %q: exit code %d, want %d", c.answer, cmd.ProcessState.ExitCode(), c.code)
		}
		must.Equal(t, succeed(t, nil, "table", "count", dir, "big"), c.rows+"\n", c.answer, c.rows)
	}
}
