package harness

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// peakBytes is the peak of this process's resident memory since resetPeak; 0 = unknown.
func peakBytes() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(status, []byte("VmHWM:"))
	if !found {
		return 0
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// resetPeak sets the peak back to what is resident now. Where the kernel refuses, the peak is that of the whole process.
func resetPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// processPeak is the peak of a process that has ended.
func processPeak(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
