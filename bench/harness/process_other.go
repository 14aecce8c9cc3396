//go:build !unix

package harness

import "os/exec"

// endTogether does nothing on this system: processes that a command started end by themselves.
func endTogether(*exec.Cmd) {}
