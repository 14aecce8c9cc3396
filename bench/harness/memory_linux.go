package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// peakBytes returns the peak of this process's resident memory since it started; 0 = unknown.
func peakBytes() int64 { return procField("self", "status", "VmHWM:") << 10 }

// procField returns a number from a file of a process in /proc; 0 = unknown.
func procField(process, file, name string) int64 {
	text, err := os.ReadFile(filepath.Join("/proc", process, file))
	if err != nil {
		return 0
	}
	return fieldAfter(text, name)
}

// watched are the processes that Clock measures.
func (e *Env) watched() (names []string) {
	for _, p := range e.processes {
		names = append(names, strconv.Itoa(p))
	}
	if len(names) == 0 {
		names = []string{"self"}
	}
	return names
}

// peakBytes returns the peak since resetPeak.
func (e *Env) peakBytes() (n int64) {
	for _, p := range e.watched() {
		n += procField(p, "status", "VmHWM:") << 10
	}
	return n
}

// resetPeak sets the peak to the current resident memory. If the kernel refuses, the peak of the
// whole process is reported.
func (e *Env) resetPeak() {
	for _, p := range e.watched() {
		os.WriteFile(filepath.Join("/proc", p, "clear_refs"), []byte("5"), 0)
	}
}

// cpuSeconds returns the CPU time: exact for this process, and in clock ticks for others.
func (e *Env) cpuSeconds() (s float64) {
	if len(e.processes) == 0 {
		return cpuSeconds()
	}
	for _, p := range e.watched() {
		text, err := os.ReadFile(filepath.Join("/proc", p, "stat"))
		if err != nil {
			continue
		}
		// The second field is the program's name in parentheses, which may contain anything. User
		// and system time are fields 14 and 15.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		for i := 11; i < 13 && i < len(fields); i++ {
			ticks, _ := strconv.ParseInt(string(fields[i]), 10, 64)
			s += float64(ticks) / ticksPerSecond
		}
	}
	return s
}

// writtenBytes returns the number of bytes that the processes have caused to be written to the
// disk.
func (e *Env) writtenBytes() (n int64) {
	for _, p := range e.watched() {
		n += procField(p, "io", "\nwrite_bytes:")
	}
	return n
}

// processPeak returns the peak of a process that has ended, or 0 if it is unknown: a child's peak
// includes the memory of this process when it started the child.
func processPeak(p *os.ProcessState) int64 {
	if u, ok := p.SysUsage().(*syscall.Rusage); ok && u.Maxrss<<10 > peakBytes() {
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

// fieldAfter returns the number that follows a name.
func fieldAfter(text []byte, name string) int64 {
	_, rest, found := bytes.Cut(text, []byte(name))
	if !found {
		return 0
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// allocated returns the disk space that a file uses.
func allocated(info os.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// freeBytes returns the free space on the disk of dir.
func freeBytes(dir string) (n int64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}

// dropCache asks the system to evict the files in dir from the page cache.
func dropCache(dir string) error {
	return eachFile(dir, func(f *os.File) error {
		if err := f.Sync(); err != nil {
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// around contains counters of the whole machine.
type around struct {
	stalled time.Duration // time in which some task waited for a CPU
	used    float64       // CPU seconds of all processes
}

func lookAround() (a around) {
	if text, err := os.ReadFile("/proc/pressure/cpu"); err == nil {
		if line, _, ok := bytes.Cut(text, []byte("\n")); ok {
			if _, total, ok := bytes.Cut(line, []byte("total=")); ok {
				us, _ := strconv.ParseInt(string(total), 10, 64)
				a.stalled = time.Duration(us) * time.Microsecond
			}
		}
	}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		line, _, _ := bytes.Cut(text, []byte("\n"))
		for i, f := range bytes.Fields(line) {
			// the name, idle, waiting for the disk; guest time is already included
			if i == 0 || i == 4 || i == 5 || i > 7 {
				continue
			}
			ticks, _ := strconv.ParseInt(string(f), 10, 64)
			a.used += float64(ticks) / ticksPerSecond
		}
	}
	return a
}

const (
	ticksPerSecond = 100
	busyShare      = 0.1
)

// busy reports whether other processes used the CPUs: some task waited for a CPU for more than a
// tenth of the time (a peer with many threads may cause that alone), and other processes used more
// than a tenth of a CPU.
func (a around) busy(b around, took time.Duration, own float64) bool {
	if took <= 0 {
		return false
	}
	others := b.used - a.used - own - 2.0/ticksPerSecond
	return (b.stalled-a.stalled).Seconds() > busyShare*took.Seconds() && others > busyShare*took.Seconds()
}
