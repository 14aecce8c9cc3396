//go:build !linux

package harness

import (
	"os"
	"time"
)

// Resident memory, bytes written, allocated blocks, free disk space and the load of the machine are
// known on Linux only.

func peakBytes() int64 { return 0 }

func freeBytes(string) (n int64, known bool) { return 0, false }

func (*Env) peakBytes() int64 { return 0 }

func (*Env) resetPeak() {}

func processPeak(*os.ProcessState) int64 { return 0 }

func (*Env) cpuSeconds() float64 { return 0 }

func (*Env) writtenBytes() int64 { return 0 }

func allocated(info os.FileInfo) int64 { return info.Size() }

// dropCache does nothing on this system.
func dropCache(string) error { return nil }

type around struct{}

func lookAround() around { return around{} }

func (around) busy(around, time.Duration, float64) bool { return false }
