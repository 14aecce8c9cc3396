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

// Env contains what a step of a peer may use.
type Env struct {
	Scale  Scale
	Root   string // directory of the engine's module
	Corpus string // directory of the corpus; empty = none
	Inputs string // directory of the files that all peers of all workloads read
	Dir    string // the peer's own directory
	Tool   string // path of the oribi command
	Round  int    // number of the round, from 0
	// Profile is the prefix of the profiles to take of timed work: CPU, memory, locks, waiting.
	// Empty = none.
	Profile string

	spec      *spec
	used      usage
	processes []int // processes that do the work; empty = this one
}

// Watch makes Clock measure the given processes instead of this one, which only waits for them.
func (e *Env) Watch(processes []int) { e.processes = processes }

// usage is the result of a Clock: peak memory, CPU time, and bytes written.
type usage struct {
	peak    int64
	grown   int64
	cpu     float64
	written int64
	busy    bool
}

// Path returns the path of a file or directory in the peer's own directory.
func (e *Env) Path(name string) string { return filepath.Join(e.Dir, name) }

// Input returns the path of a file made by Workload.Inputs.
func (e *Env) Input(name string) string { return filepath.Join(e.Inputs, name) }

// Written returns the number of bytes written to the disk while Clock ran; 0 = none or unknown.
func (e *Env) Written() int64 { return e.used.written }

// Grown returns by how much the peak of resident memory while Clock ran exceeds the memory in use when
// it began.
func (e *Env) Grown() int64 { return e.used.grown }

// CPU returns the CPU seconds, user and system, used while Clock ran.
func (e *Env) CPU() float64 { return e.used.cpu }

// Clock runs work and returns its duration. It collects garbage first. The peak of resident memory
// is the peak during work, including memory that was in use before. For several processes the peaks
// are added, although they may have occurred at different times.
func (e *Env) Clock(work func() error) (time.Duration, error) {
	debug.FreeOSMemory()
	e.resetPeak()
	idle := e.peakBytes()
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
	peak := e.peakBytes()
	e.used.peak, e.used.grown = max(e.used.peak, peak), max(e.used.grown, peak-idle)
	stop()
	return took, err
}

// profile starts the requested profiles.
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
	profileFraction  = 10     // one lock contention in this many is sampled
	profileBlockRate = 10_000 // nanoseconds of waiting per sample
)

// Self returns a command that runs the peer's Act.
func (e *Env) Self(ctx context.Context) (*exec.Cmd, error) { return selfCommand(ctx, *e.spec, stepAct) }
