package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The environment variable that makes a process run one step. It contains the step as JSON; the
// process writes its result as JSON to stdout.
const specVariable = "ORIBI_BENCH_STEP"

// spec describes the step that a process runs.
type spec struct {
	Workload string `json:"workload"`
	Peer     string `json:"peer"`
	Step     string `json:"step"`
	Env      Env    `json:"env"`
	Program  string `json:"program"` // program that has the peer; empty = this one
}

// Steps of a peer.
const (
	stepPrepare = "prepare"
	stepMeasure = "measure"
	stepMemory  = "memory"
	stepCheck   = "check"
	stepAct     = "act"
	stepReady   = "ready"
)

// Main runs the step for which the harness started the process, and exits. It returns if a user
// started the process. ready prepares what a program needs in addition to being built, or returns
// an error if that is impossible.
func Main(all []Workload, ready ...func(env *Env) error) {
	text := os.Getenv(specVariable)
	if text == "" {
		return
	}
	m, err := runStep(all, text, ready)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runStep(all []Workload, text string, ready []func(env *Env) error) (Measurement, error) {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Measurement{}, err
	}
	if s.Step == stepReady {
		for _, r := range ready {
			if err := r(&s.Env); err != nil {
				return Measurement{}, err
			}
		}
		return Measurement{}, nil
	}
	found, err := Find(all, []string{s.Workload})
	if err != nil {
		return Measurement{}, err
	}
	p := found[0].peer(s.Peer)
	if p == nil {
		return Measurement{}, fmt.Errorf("workload %s has no peer %q", s.Workload, s.Peer)
	}
	env := s.Env
	env.spec = &s
	m, err := p.do(s.Step, &env)
	m.PeakBytes, m.CPU, m.Written, m.Busy = env.used.peak, env.used.cpu, env.used.written, env.used.busy
	if m.PeakBytes == 0 {
		m.PeakBytes = peakBytes()
	}
	return m, err
}

// do runs one step of the peer.
func (p *Peer) do(step string, env *Env) (m Measurement, err error) {
	switch step {
	case stepPrepare:
		if p.Prepare != nil {
			err = p.Prepare(env)
		}
	case stepMeasure:
		m, err = p.Measure(env)
	case stepMemory:
		err = p.Memory(env)
	case stepAct:
		err = p.Act(env)
	case stepCheck:
		m.Checksum, err = p.Check(env)
	default:
		err = fmt.Errorf("no step %q", step)
	}
	return m, err
}

// selfCommand returns a command that runs this program again with a step.
func selfCommand(ctx context.Context, s spec, step string) (*exec.Cmd, error) {
	self := s.Program
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	s.Step = step
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self)
	c.Env = append(os.Environ(), specVariable+"="+string(text))
	return c, nil
}

// Ready makes the program of a nested module prepare what it needs. The error is the reason why it
// cannot run.
func Ready(ctx context.Context, program string, env Env) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c, err := selfCommand(ctx, spec{Env: env, Program: program}, stepReady)
	if err != nil {
		return err
	}
	endTogether(c)
	_, err = c.Output()
	if ctx.Err() != nil {
		return fmt.Errorf("not ready: %w", ctx.Err())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return errors.New(oneLine(exit.Stderr))
	}
	return err
}

// readyTimeout is long enough for large downloads.
const readyTimeout = 10 * time.Minute

// start runs one step in a separate process and reads its result.
func start(ctx context.Context, s spec, step string) (Measurement, error) {
	var m Measurement
	c, err := selfCommand(ctx, s, step)
	if err != nil {
		return m, err
	}
	endTogether(c)
	out, err := c.Output()
	if err != nil {
		return m, stepError(s, step, err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, stepError(s, step, fmt.Errorf("result %.100q: %w", out, err))
	}
	return m, nil
}

func stepError(s spec, step string, err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, oneLine(exit.Stderr))
	}
	return fmt.Errorf("%s/%s: %s: %w", s.Workload, s.Peer, step, err)
}

// oneLine joins the first lines that a process printed before it failed.
func oneLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[:min(len(lines), 3)], "; ")
}

// measureCommand runs the peer's command and measures its time from start to end.
func measureCommand(ctx context.Context, p *Peer, s spec) (Measurement, error) {
	env := s.Env
	env.spec = &s
	made, err := p.Command(&env)
	if err != nil {
		return Measurement{}, stepError(s, "command", err)
	}
	c := exec.CommandContext(ctx, made.Path, made.Args[1:]...) // the run removes it when it ends
	c.Env, c.Dir, c.Stdin, c.Stdout = made.Env, made.Dir, made.Stdin, made.Stdout
	endTogether(c)
	run := func() (err error) { _, err = c.Output(); return err }
	if c.Stdout != nil {
		run = c.Run // the peer chooses where the output goes
	}
	before, begin := lookAround(), time.Now()
	if err = run(); err != nil {
		return Measurement{}, stepError(s, "command", err)
	}
	took, after := time.Since(begin), lookAround()
	if out, ok := c.Stdout.(io.Closer); ok {
		if err := out.Close(); err != nil {
			return Measurement{}, stepError(s, "command", err)
		}
	}
	m, err := start(ctx, s, stepCheck)
	m.Value = took.Seconds()
	m.PeakBytes = processPeak(c.ProcessState)
	m.CPU = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	// the bytes written by a process are unknown once it has ended
	m.Written, m.Busy = 0, before.busy(after, took, m.CPU)
	return m, err
}
