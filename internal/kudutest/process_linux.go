package kudutest

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a process with this one, also if a test's time is up and nothing is cleaned up.
func dieWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
