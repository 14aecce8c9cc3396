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

// BuildCommand compiles the command into dir. The working directory has to be in the module.
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

// killCalls are the system calls at which processes are killed: all that change something on a
// disk, and some around them.
var killCalls = []string{"pwrite64", "pwrite64", "fdatasync", "fdatasync", "write", "fsync", "fallocate", "ftruncate", "renameat", "unlinkat", "openat", "mkdirat", "flock"}

// findTracer finds strace, if it is there and may kill the processes that it starts as they enter a
// system call; else "".
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

// TracerMissing says why no process is killed at a chosen system call; empty if they are.
func TracerMissing(dir string) string {
	if findTracer(dir) != "" {
		return ""
	}
	return "no strace here, or it may not trace: processes are killed at moments, not at chosen system calls"
}

// traced are strace's arguments that run a command and kill it at the nth of a call in one of its
// threads.
func traced(call string, nth int, command ...string) []string {
	return append([]string{"-f", "-qq", "-o", os.DevNull, "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, nth), "--"}, command...)
}

const killedBy = "signal: killed" // as os.ProcessState tells it

// killPlan says where a process is killed; zero: nowhere. One of three.
type killPlan struct {
	after time.Duration // so long after it was started
	acks  int           // behind so many lines on stdout
	call  string        // as it enters a system call
	nth   int           // of a thread
	verb  string
}

func (p killPlan) String() string {
	switch {
	case p.call != "":
		return fmt.Sprintf("killed at %s %d", p.call, p.nth)
	case p.acks > 0:
		return fmt.Sprintf("killed behind line %d", p.acks)
	case p.after > 0:
		return fmt.Sprintf("killed after %v", p.after)
	}
	return "not killed"
}

// plan chooses. How long a verb takes, and how many calls it makes, is learnt on the way.
func (l *killLife) plan(verb string) killPlan {
	if l.rng.IntN(12) == 0 {
		return killPlan{} // it may come to its end
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
		most = min(most, 4) // while it recovers
	}
	p.nth = 1 + l.rng.IntN(most)
	return p
}

func (p killPlan) learns() string { return p.verb + " " + p.call }

// learn makes kills come earlier if one came too late, else later.
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

// killOutcome is what came of a process.
type killOutcome struct {
	args   []string
	out    []byte
	errs   string
	code   int
	killed bool
}

func (o *killOutcome) unexpected() error {
	return fmt.Errorf("oribi %s: exit code %d: %s%s", strings.Join(o.args, " "), o.code, cut(string(o.out)), cut(o.errs))
}

func cut(s string) string {
	if len(s) > 2000 {
		return s[:1000] + " … " + s[len(s)-1000:]
	}
	return s
}

// killHang is far above what any process takes.
const killHang = 5 * time.Minute

// run runs the command. An error says that it hangs, or was killed by somebody else.
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
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // which it passes on
	}
	out := &killOutput{acks: p.acks, kill: func() { _ = cmd.Process.Kill() }}
	cmd.Stdout, cmd.Stderr = out, &errs
	if err := cmd.Start(); err != nil {
		return o, err
	}
	if p.after > 0 {
		defer time.AfterFunc(p.after, out.kill).Stop()
	}
	_ = cmd.Wait() // the state tells
	o.out, o.errs, o.code, o.killed = out.text.Bytes(), errs.String(), cmd.ProcessState.ExitCode(), cmd.ProcessState.String() == killedBy
	switch {
	case ctx.Err() != nil:
		return o, fmt.Errorf("oribi %s: did not end in %v", strings.Join(args, " "), killHang)
	case o.killed && p == killPlan{}:
		return o, fmt.Errorf("oribi %s: killed from elsewhere", strings.Join(args, " "))
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

// readsOnly tells whether the command leaves a store as it is.
func readsOnly(args []string) bool {
	if args[0] == "store" {
		return args[1] != "init"
	}
	return args[0] == "table" && (args[1] == "scan" || args[1] == "list")
}

// killOutput keeps what a process prints, and kills it behind some line.
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
