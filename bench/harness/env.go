package harness

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"time"
)

// Env is where a step of a peer finds what it needs.
type Env struct {
	Scale  Scale
	Root   string // directory of the engine's module
	Corpus string // directory of the corpus; empty = there is none
	Inputs string // files that all peers of all workloads read
	Dir    string // the peer's own
	Tool   string // the command oribi, built
	Round  int    // from 0
	// Profile takes profiles of what the clock saw: processor, memory, locks, waiting. Empty =
	// none.
	Profile string

	spec      *spec
	used      usage
	processes []int // those that do the work; empty = this one
}

// Watch has the clock see processes instead of this one, which waits for them.
func (e *Env) Watch(processes []int) { e.processes = processes }

// usage is what the clock saw.
type usage struct {
	peak    int64
	cpu     float64
	written int64
	busy    bool
}

// Path is a file or directory of the peer's own.
func (e *Env) Path(name string) string { return filepath.Join(e.Dir, name) }

// Input is a file made by Workload.Inputs.
func (e *Env) Input(name string) string { return filepath.Join(e.Inputs, name) }

// Written is how many bytes were sent to the disk while the clock ran; 0 = none or unknown.
func (e *Env) Written() int64 { return e.used.written }

// Clock runs work and tells how long it took. What was there before is collected first; the peak of
// resident memory is that of work, though with what was there before. Of several processes the
// peaks, which may not have been at the same time, are added up.
func (e *Env) Clock(work func() error) (time.Duration, error) {
	debug.FreeOSMemory()
	e.resetPeak()
	stop, err := e.profile()
	if err != nil {
		return 0, err
	}
	before := lookAround()
	cpu, written := e.cpuSeconds(), e.writtenBytes()
	start := time.Now()
	err = work()
	took := time.Since(start)
	used := e.cpuSeconds() - cpu
	e.used.cpu += used
	e.used.written += e.writtenBytes() - written
	e.used.busy = e.used.busy || before.busy(lookAround(), took, used)
	e.used.peak = max(e.used.peak, e.peakBytes())
	stop()
	return took, err
}

// profile begins the profile that was asked for.
func (e *Env) profile() (stop func(), err error) {
	if e.Profile == "" {
		return func() {}, nil
	}
	if err := os.MkdirAll(filepath.Dir(e.Profile), 0o755); err != nil {
		return nil, err
	}
	cpu, err := os.Create(e.Profile + ".cpu.prof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	runtime.SetMutexProfileFraction(profileFraction)
	runtime.SetBlockProfileRate(profileBlockRate)
	return func() {
		pprof.StopCPUProfile()
		cpu.Close()
		runtime.GC()
		for _, kind := range []string{"allocs", "heap", "mutex", "block"} {
			if f, err := os.Create(e.Profile + "." + kind + ".prof"); err == nil {
				pprof.Lookup(kind).WriteTo(f, 0)
				f.Close()
			}
		}
		runtime.SetMutexProfileFraction(0)
		runtime.SetBlockProfileRate(0)
	}, nil
}

const (
	profileFraction  = 10     // one of so many lock contentions is noted
	profileBlockRate = 10_000 // nanoseconds of waiting a sample
)

// Self is a command that runs the peer's Act.
func (e *Env) Self(ctx context.Context) (*exec.Cmd, error) { return selfCommand(ctx, *e.spec, stepAct) }
