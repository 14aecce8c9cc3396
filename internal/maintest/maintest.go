// Package maintest prepares the process that runs a package's tests. It is for tests only.
package maintest

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/oribi-db/oribi/vfs"
)

// memoryDir is a directory in memory on Linux. A sync there costs nothing.
const memoryDir = "/dev/shm"

// leastFree is how many bytes must be free in memoryDir. No package's tests write as many.
const leastFree = 2 << 30

// Run runs the tests, and has less garbage collected: the heap of tests is small, and most of it is
// garbage. Temporary files are in memory if there is room, unless $TMPDIR names another directory
// or $ORIBI_FULL is set: then the tests run as in CI, on a file system with a disk. Programs that
// the tests start inherit both.
func Run(m *testing.M) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		os.Setenv("GOGC", "400")
	}
	if os.Getenv("TMPDIR") == "" && os.Getenv("ORIBI_FULL") == "" && vfs.OS.FreeBytes(memoryDir) >= leastFree {
		os.Setenv("TMPDIR", memoryDir)
	}
	return m.Run()
}
