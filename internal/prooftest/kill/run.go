package kill

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// BuildCommand compiles the command into dir. The working directory must be inside the module.
func BuildCommand(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "oribi")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", binary, "github.com/oribi-db/oribi/cmd/oribi").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, err
}

// killCalls are the system calls at which processes are killed: those that change the disk, and
// some others. Calls listed twice are chosen twice as often.
var killCalls = []string{"pwrite64", "pwrite64", "fdatasync", "fdatasync", "write", "fsync", "fallocate", "ftruncate",
	"renameat", "unlinkat", "openat", "mkdirat", "flock"}

// findTracer returns the path of strace, or "" if it is not installed or cannot kill processes on
// entry to a system call.
func findTracer(dir string) string {
	name, err := exec.LookPath("strace")
	if err != nil {
		return ""
	}
	probe := filepath.Join(dir, "probe")
	cmd := exec.Command(name, traced("mkdirat,mkdir", 1, "mkdir", probe)...)
	cmd.Run()
	if _, err := os.Stat(probe); err == nil || cmd.ProcessState.String() != killedBy {
		os.Remove(probe)
		return ""
	}
	return name
}

// TracerMissing returns the reason why no process is killed at chosen system calls, or "".
func TracerMissing(dir string) string {
	if findTracer(dir) != "" {
		return ""
	}
	return "strace is missing or not permitted: processes are killed at random times only, not at chosen system calls"
}

// traced returns the arguments of strace that run a command and kill it at the nth call of a system
// call in one of its threads.
func traced(call string, nth int, command ...string) []string {
	return append([]string{"-f", "-qq", "-o", os.DevNull, "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, nth), "--"}, command...)
}

const killedBy = "signal: killed" // text of os.ProcessState

// killPlan is when to kill a process: one of after, acks and call. The zero value means never.
type killPlan struct {
	after time.Duration // after this time
	acks  int           // after this many lines on stdout
	call  string        // on entry to a system call
	nth   int           // number of the call in its thread, from 1
	verb  string
}

func (p killPlan) String() string {
	switch {
	case p.call != "":
		return fmt.Sprintf("killed at %s %d", p.call, p.nth)
	case p.acks > 0:
		return fmt.Sprintf("killed after line %d", p.acks)
	case p.after > 0:
		return fmt.Sprintf("killed after %v", p.after)
	}
	return "not killed"
}

// plan chooses a plan, from the durations and numbers of calls that learn has recorded.
func (l *killLife) plan(verb string) killPlan {
	if l.rng.IntN(12) == 0 {
		return killPlan{} // let it complete
	}
	if l.tracer == "" || l.rng.IntN(3) == 0 {
		most := l.within[verb]
		if most == 0 {
			most = 100 * time.Millisecond
		}
		return killPlan{after: time.Millisecond + time.Duration(l.rng.Int64N(int64(most))), verb: verb}
	}
	p := killPlan{call: killCalls[l.rng.IntN(len(killCalls))], verb: verb}
	most, known := l.upTo[p.learns()]
	if !known {
		most = 10
	}
	if l.behind && l.rng.IntN(2) == 0 {
		most = min(most, 4) // during recovery
	}
	p.nth = 1 + l.rng.IntN(most)
	return p
}

func (p killPlan) learns() string { return p.verb + " " + p.call }

// learn schedules later kills earlier if this one came too late, else later.
func (l *killLife) learn(p killPlan, killed bool) {
	switch {
	case p.call != "" && killed:
		l.upTo[p.learns()] = max(l.upTo[p.learns()], p.nth+1+p.nth/2)
	case p.call != "":
		l.upTo[p.learns()] = max(2, p.nth-1)
	case p.after > 0 && killed:
		l.within[p.verb] = max(l.within[p.verb], p.after+p.after/4)
	case p.after > 0:
		l.within[p.verb] = p.after
	}
}

// killOutcome is the outcome of a process.
type killOutcome struct {
	args   []string
	out    []byte
	errs   string
	code   int
	killed bool
}

func (o *killOutcome) unexpected() error {
	return fmt.Errorf("oribi %s: exit code %d: %s%s", strings.Join(o.args, " "), o.code,
		cut(string(o.out)), cut(o.errs))
}

func cut(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

// killHang is far longer than any process takes.
const killHang = 5 * time.Minute

// run runs the command. It returns an error if the command hangs or was killed from outside.
func (l *killLife) run(p killPlan, args ...string) (killOutcome, error) {
	o := killOutcome{args: args}
	line := strings.ReplaceAll("oribi "+strings.Join(args, " "), l.Dir+string(filepath.Separator), "")
	if l.last = append(l.last, line+" # "+p.String()); len(l.last) > 16 {
		l.last = l.last[1:]
	}
	ctx, cancel := context.WithTimeout(context.Background(), killHang)
	defer cancel()
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, l.Binary, args...)
	if p.call != "" {
		cmd = exec.CommandContext(ctx, l.tracer, traced(p.call, p.nth, append([]string{l.Binary}, args...)...)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // strace forwards it
	}
	out := &killOutput{acks: p.acks, kill: func() { _ = cmd.Process.Kill() }}
	cmd.Stdout, cmd.Stderr = out, &errs
	if err := cmd.Start(); err != nil {
		return o, err
	}
	if p.after > 0 {
		defer time.AfterFunc(p.after, out.kill).Stop()
	}
	_ = cmd.Wait() // cmd.ProcessState has the result
	o.out, o.errs, o.code, o.killed = out.text.Bytes(), errs.String(), cmd.ProcessState.ExitCode(),
		cmd.ProcessState.String() == killedBy
	switch {
	case ctx.Err() != nil:
		return o, fmt.Errorf("oribi %s: did not end in %v", strings.Join(args, " "), killHang)
	case o.killed && p == killPlan{}:
		return o, fmt.Errorf("oribi %s: killed by another process", strings.Join(args, " "))
	case o.killed:
		l.counts.Kills++
		if p.call != "" {
			l.counts.Calls++
		}
	default:
		l.counts.Finished++
	}
	if p.call != "" || p.after > 0 {
		l.learn(p, o.killed)
	}
	l.behind = l.behind && readsOnly(args) || o.killed
	return o, nil
}

// readsOnly reports whether the command only reads the store.
func readsOnly(args []string) bool {
	if args[0] == "store" {
		return args[1] != "init"
	}
	return args[0] == "table" && (args[1] == "scan" || args[1] == "list")
}

// killOutput collects the output of a process and kills it after a number of lines.
type killOutput struct {
	text bytes.Buffer
	acks int
	kill func()
}

func (k *killOutput) Write(p []byte) (int, error) {
	n, _ := k.text.Write(p)
	if k.acks > 0 {
		if k.acks -= bytes.Count(p, []byte("\n")); k.acks <= 0 {
			k.kill()
		}
	}
	return n, nil
}
