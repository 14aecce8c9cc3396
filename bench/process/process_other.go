//go:build !linux

package process

import "os/exec"

// dieWithParent does nothing here: Kudu runs on Linux only.
func dieWithParent(*exec.Cmd) {}
