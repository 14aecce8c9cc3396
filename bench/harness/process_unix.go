//go:build unix

package harness

import (
	"os/exec"
	"syscall"
)

// endTogether makes the processes that a command starts end with the command if its context is
// canceled.
func endTogether(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
