//go:build unix

package harness

import (
	"os/exec"
	"syscall"
)

// endTogether has the processes that a command starts end with it when its context does.
func endTogether(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
