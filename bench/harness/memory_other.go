//go:build !linux

package harness

import "os"

// Resident memory is told on linux alone.

func peakBytes() int64 { return 0 }

func resetPeak() {}

func processPeak(*os.ProcessState) int64 { return 0 }

func cpuSeconds() float64 { return 0 }
