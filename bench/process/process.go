// Package process runs the programs of peers that are not written in Go.
package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Process is a process that ends when this one does, for whatever reason.
type Process struct {
	*exec.Cmd
	Name  string
	Ended chan struct{} // closed when the process has ended

	log string // file with its stderr
}

// Start starts a command; its stderr goes to the file log.
//
// The system ends the process together with the thread that started it, not with this process. The
// thread therefore remains until the process has ended.
func Start(name, log string, c *exec.Cmd) (*Process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c.Stderr, c.Env = f, withoutProxies(os.Environ())
	dieWithParent(c)
	p := &Process{Cmd: c, Name: name, log: log, Ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			c.Wait()
			close(p.Ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Kill kills the process, if it runs. Kudu's servers treat SIGTERM as a crash, so no gentler way
// exists.
func (p *Process) Kill() {
	if p != nil {
		p.Process.Kill()
		<-p.Ended
	}
}

// Died returns the error for a process that ended by itself, with the reason that it printed.
func (p *Process) Died() error {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	why := lines[len(lines)-1]
	for _, line := range lines {
		if line != "" && (line[0] == 'F' || line[0] == 'E') { // a fatal message, or an error
			why = line
		}
	}
	return fmt.Errorf("%s died: %.300s", p.Name, why)
}

// withoutProxies returns an environment in which programs do not use a proxy for the loopback
// interface.
func withoutProxies(env []string) (out []string) {
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			out = append(out, v)
		}
	}
	return out
}

// Output returns what a command prints to stdout; the error includes the last line of its stderr.
func Output(c *exec.Cmd) (string, error) {
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(complaint.String()), "\n")
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return strings.TrimSpace(string(out)), err
}

// Program is a process that answers requests. A request is a line of words; the answer is a line
// that begins with "ok", or "error" with the reason. Either may be followed by more bytes, in a
// form that the two have agreed on.
type Program struct {
	*Process
	To   *bufio.Writer
	From *bufio.Reader

	input io.Closer
}

// StartProgram starts a program; its stderr goes to the file log.
func StartProgram(name, log string, c *exec.Cmd) (*Program, error) {
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: Wait closes that pipe, and Wait is called at once.
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c.Stdout = stdout
	p, err := Start(name, log, c)
	stdout.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	return &Program{Process: p, To: bufio.NewWriterSize(in, 1<<18), From: bufio.NewReaderSize(out, 1<<18), input: in},
		nil
}

// End ends the program, if it runs.
func (p *Program) End() {
	if p != nil {
		p.input.Close()
		p.Kill()
	}
}

// Ask sends a request, calls send for the data after it, and returns the words of the answer after
// "ok".
func (p *Program) Ask(send func() error, words ...string) ([]string, error) {
	_, err := p.To.WriteString(strings.Join(words, " ") + "\n")
	if err == nil && send != nil {
		err = send()
	}
	if err == nil {
		err = p.To.Flush()
	}
	answer, failed := p.From.ReadString('\n') // the answer may say why it stopped reading
	if failed != nil {
		return nil, fmt.Errorf("%s: %w", words[0], errors.Join(err, p.Died()))
	}
	got := strings.Fields(answer)
	if len(got) == 0 || got[0] != "ok" {
		return nil, fmt.Errorf("%s: %s", words[0], strings.TrimSpace(answer))
	}
	return got[1:], err
}
