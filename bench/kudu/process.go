package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// process is one that ends when this one does, however that ends.
type process struct {
	*exec.Cmd
	name  string
	log   string        // the file of what it complains about
	ended chan struct{} // closed when it has
}

// start starts a command; what it prints to stderr goes to log.
//
// The system ties its life to that of the thread that starts it, not to this process's: the thread
// stays until it has ended.
func start(name, log string, c *exec.Cmd) (*process, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c.Stderr, c.Env = f, withoutProxies(os.Environ())
	dieWithParent(c)
	p := &process{Cmd: c, name: name, log: log, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			c.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// kill ends the process, which has no better way: Kudu's servers take SIGTERM for a crash.
func (p *process) kill() {
	if p != nil {
		p.Process.Kill()
		<-p.ended
	}
}

// died tells that it ended by itself, and of what.
func (p *process) died() error {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	why := lines[len(lines)-1]
	for _, line := range lines {
		if line != "" && (line[0] == 'F' || line[0] == 'E') { // fatal, or an error
			why = line
		}
	}
	return fmt.Errorf("%s died: %.300s", p.name, why)
}

// withoutProxies is an environment in which nobody looks for the loopback interface elsewhere.
func withoutProxies(env []string) (out []string) {
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			out = append(out, v)
		}
	}
	return out
}
