package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest"
)

const (
	workerName     = "worker"         // first argument of a worker process
	seedsOfProcess = 15               // per process: a poisoned store leaks some megabytes in its process
	quietStore     = 10 * time.Minute // one seed takes seconds: a process without output for so long hangs
)

// workerCommand returns the command of a worker process, which runs seeds [seed, seed+seeds) until
// the time is over.
func workerCommand(ctx context.Context, proof string, seed, seeds uint64, left time.Duration) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, program, workerName, "-proof", proof, "-seed", strconv.FormatUint(seed, 10),
		"-seeds", strconv.FormatUint(seeds, 10),
		"-for", left.String()), nil
}

// work is the body of a worker process. It prints a line for each completed seed and stops at the
// first failure.
func work(ctx context.Context, args []string, proofs []prooftest.Proof, out, log io.Writer) int {
	flags := flag.NewFlagSet(workerName, flag.ContinueOnError)
	flags.SetOutput(log)
	name := flags.String("proof", "", "which")
	first := flags.Uint64("seed", 1, "first seed")
	seeds := flags.Uint64("seeds", 1, "number of seeds")
	within := flags.Duration("for", 0, "time limit; 0 = none")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var run func(uint64, string) prooftest.Result
	for _, p := range proofs {
		if p.Name == *name {
			run = p.Run
		}
	}
	begin := time.Now()
	for seed := *first; seed < *first+*seeds && ctx.Err() == nil &&
		(*within == 0 || time.Since(begin) < *within); seed++ {
		dir, err := os.MkdirTemp("", "oribi-proof-")
		if err != nil {
			fmt.Fprintln(log, err)
			return 2
		}
		r := run(seed, dir)
		os.RemoveAll(dir)
		if r.Err != nil {
			fmt.Fprintln(log, r.Err)
			showScript(log, *name, seed, &r)
			return 1
		}
		fmt.Fprintf(out, "proof: seed %d: %s\n", seed, tallied(r.Tallies))
	}
	return 0
}

// showScript writes the history of a failure to a file.
func showScript(log io.Writer, name string, seed uint64, r *prooftest.Result) {
	s := r.Shortened(30 * time.Second)
	if s == nil {
		return
	}
	f, err := os.CreateTemp("", fmt.Sprintf("oribi-%s-%d-*.script", name, seed))
	if err == nil {
		_, err = io.WriteString(f, s.String())
		err = errors.Join(err, f.Close())
	}
	switch {
	case err != nil:
		fmt.Fprintln(log, err)
	case r.Alone:
		fmt.Fprintf(log, "shortened history: go test ./internal/storetest -run TestReplayHistoryFile "+
			"-proof.script=%s\n", f.Name())
	default:
		fmt.Fprintf(log, "history (fails only when run by its seed): %s\n", f.Name())
	}
}

// runChild runs a worker process and calls each for every seed that the process reports as
// completed. It returns the first and last lines of the other output. A process that prints nothing
// for the duration quiet is killed and prints the stacks of its goroutines; 0 is no limit.
func runChild(
	ctx context.Context, cmd *exec.Cmd, quiet time.Duration, each func(seed uint64, sum counts),
) (output string, err error) {
	cmd.WaitDelay = 10 * time.Second // for output that its own children keep open
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := newWatchdog(cmd.Process, quiet)
	var rest excerpt
	var wg sync.WaitGroup
	wg.Go(func() {
		lines := bufio.NewReader(read)
		for {
			line, err := lines.ReadString('\n')
			stop.heard()
			if seed, sum, ok := doneLine(line); ok {
				each(seed, sum)
			} else {
				rest.add(line)
			}
			if err != nil {
				return
			}
		}
	})
	err = cmd.Wait()
	write.Close()
	wg.Wait()
	if stop.end() {
		err = fmt.Errorf("no output for %v: %w", quiet, errors.Join(err))
	}
	return rest.String(), err
}

// doneLine reads "NAME: seed 5: 1 histories, 40 steps".
func doneLine(line string) (seed uint64, sum counts, ok bool) {
	_, line, ok = strings.Cut(strings.TrimSuffix(line, "\n"), ": seed ")
	if !ok {
		return 0, nil, false
	}
	number, list, ok := strings.Cut(line, ": ")
	if !ok {
		return 0, nil, false
	}
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, nil, false
	}
	sum, err = parseCounts(list)
	return seed, sum, err == nil
}

// watchdog ends a process that prints nothing for too long.
type watchdog struct {
	quiet time.Duration
	timer *time.Timer

	mu    sync.Mutex
	fired bool
}

func newWatchdog(p *os.Process, quiet time.Duration) *watchdog {
	w := &watchdog{quiet: quiet}
	if quiet > 0 {
		w.timer = time.AfterFunc(quiet, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.fired { // a Go program prints its stacks
				w.fired = p.Signal(syscall.SIGQUIT) == nil
				w.timer.Reset(10 * time.Second)
				if w.fired {
					return
				}
			}
			w.fired = true
			_ = p.Kill()
		})
	}
	return w
}

func (w *watchdog) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil && !w.fired {
		w.timer.Reset(w.quiet)
	}
}

// end stops the watchdog and reports whether it ended the process.
func (w *watchdog) end() bool {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fired
}

// excerpt keeps the first and last lines of a text.
type excerpt struct {
	first, last []string
	dropped     int
}

const excerptLines = 200 // of each

func (e *excerpt) add(line string) {
	if len(line) > 4096 {
		line = line[:4096] + " …\n"
	}
	if len(e.first) < excerptLines {
		e.first = append(e.first, line)
		return
	}
	if len(e.last) == excerptLines {
		e.last = append(e.last[:0], e.last[1:]...)
		e.dropped++
	}
	e.last = append(e.last, line)
}

func (e *excerpt) String() string {
	text := strings.Join(e.first, "")
	if e.dropped > 0 {
		text += fmt.Sprintf("[%d lines]\n", e.dropped)
	}
	return text + strings.Join(e.last, "")
}
