package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	fuzzName         = "fuzz"
	executionsOfSeed = 1_000_000
	unitExecutions   = "executions"
	unitGuided       = "guided executions"
	toyPrefix        = "FuzzToy" // of targets that fail in tests of this program: they run only by name
)

// fuzzTarget is one fuzz target.
type fuzzTarget struct {
	pkg  string // in the module, with slashes
	name string
}

func (t fuzzTarget) String() string { return t.pkg + "." + t.name }

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// fuzzTargets lists the requested targets of the module, or all.
func fuzzTargets(root string, asked []string) (targets []fuzzTarget, err error) {
	var all []fuzzTarget
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			if name != root && (nested == nil || d.Name() == "testdata" ||
				strings.ContainsRune("._", rune(d.Name()[0]))) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		for _, m := range fuzzFunction.FindAllSubmatch(source, -1) {
			all = append(all, fuzzTarget{filepath.ToSlash(dir), string(m[1])})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return slices.DeleteFunc(all, func(t fuzzTarget) bool { return strings.HasPrefix(t.name, toyPrefix) }), nil
	}
	for _, name := range asked {
		before := len(targets)
		for _, t := range all {
			if (t.pkg == name || t.String() == name) && !slices.Contains(targets, t) {
				targets = append(targets, t)
			}
		}
		if len(targets) == before {
			return nil, fmt.Errorf("no fuzz target %q", name)
		}
	}
	return targets, nil
}

// fuzz runs the targets in sequence.
func (c *campaign) fuzz(ctx context.Context) error {
	targets, err := fuzzTargets(c.root, c.targets)
	if err != nil {
		return err
	}
	programs, err := os.MkdirTemp("", "oribi-proof-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(programs)
	var failed error
	for _, t := range targets {
		if _, ok := c.left(); !ok || ctx.Err() != nil {
			break
		}
		err := c.fuzzTarget(ctx, t, programs)
		if errors.Is(err, errFailed) && c.keepGoing {
			failed = err
		} else if err != nil {
			return err
		}
	}
	return failed
}

// fuzzTarget runs one target until it has the required number of executions, then runs Go's engine
// on it.
func (c *campaign) fuzzTarget(ctx context.Context, t fuzzTarget, programs string) error {
	have, err := c.have(t.String(), unitExecutions)
	if err != nil {
		return err
	}
	if have < c.executions {
		program := filepath.Join(programs, strings.ReplaceAll(t.pkg, "/", "_")+".test.exe")
		if _, err := os.Stat(program); err != nil {
			build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./"+t.pkg)
			build.Dir = c.root
			if out, err := build.CombinedOutput(); err != nil {
				return fmt.Errorf("build %s: %w\n%s", t.pkg, err, out)
			}
		}
		if err := c.executeTarget(ctx, t, program, filepath.Join(c.root, filepath.FromSlash(t.pkg)),
			c.executions-have); err != nil {
			return err
		}
	}
	return c.guide(ctx, t)
}

// executeTarget runs the body of a target without Go's engine, one process per seed, in the
// directory of its package.
func (c *campaign) executeTarget(ctx context.Context, t fuzzTarget, program, dir string, executions int64) error {
	seed, seeds, err := c.begin(t.String())
	if err != nil {
		return err
	}
	var total counts
	started := time.Now()
	for ; executions > 0 && seeds > 0; seed, seeds = seed+1, seeds-1 {
		left, ok := c.left()
		if !ok || ctx.Err() != nil {
			return nil
		}
		cmd := exec.CommandContext(ctx, program, "-test.run=^"+t.name+"$",
			"-fuzztest.seed="+strconv.FormatUint(seed, 10),
			"-fuzztest.executions="+strconv.FormatInt(min(executions, executionsOfSeed), 10),
			"-fuzztest.for="+left.String())
		cmd.Dir = dir
		var done counts
		// fuzztest ends a process whose body hangs
		output, err := runChild(ctx, cmd, 0, func(_ uint64, sum counts) { done = done.plus(sum) })
		if ctx.Err() != nil {
			return nil
		}
		r := row{target: t.String(), seeds: spans{{seed, seed}}, counts: done}
		if err == nil && done.of(unitExecutions) == 0 {
			return fmt.Errorf("%s printed no result; does it use fuzztest.Run?\n%s", t, output)
		}
		if err != nil {
			r.failures = []string{fmt.Sprintf("seed %d", seed)}
			fmt.Fprintf(c.log, "%s\n%s: seed %d: %v\nto repeat: go test ./%s -run '^%s$' -fuzztest.seed %d "+
				"-fuzztest.executions %d\n",
				output, t, seed, err, t.pkg, t.name, seed, executionsOfSeed)
			return errors.Join(fmt.Errorf("%s: %w", t, errFailed), c.enter(r))
		}
		if err := c.enter(r); err != nil {
			return err
		}
		total = total.plus(done)
		executions -= done.of(unitExecutions)
		c.report(t.String(), seed, total, unitExecutions, started)
	}
	return nil
}

var guidedExecutions = regexp.MustCompile(`fuzz: elapsed: .*, execs: (\d+)`)

// guide runs Go's engine on a target, with one worker, unless the ledger already has such a run at
// this commit.
func (c *campaign) guide(ctx context.Context, t fuzzTarget) error {
	have, err := c.have(t.String(), unitGuided)
	left, ok := c.left()
	if err != nil || have > 0 || c.guided <= 0 || !ok || ctx.Err() != nil {
		return err
	}
	if left == 0 || left > c.guided {
		left = c.guided
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", left.String(),
		"-fuzzminimizetime", "5s", "-parallel", "1", "./"+t.pkg)
	cmd.Dir = c.root
	output, err := runChild(ctx, cmd, 0, func(uint64, counts) {})
	if ctx.Err() != nil {
		return nil
	}
	r := row{target: t.String()}
	for _, m := range guidedExecutions.FindAllStringSubmatch(output, -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		r.counts = counts{{N: n, Unit: unitGuided}}
	}
	if err != nil {
		r.failures = []string{"guided"}
		fmt.Fprintf(c.log, "%s\n%s: guided: %v\n", output, t, err)
		return errors.Join(fmt.Errorf("%s: %w", t, errFailed), c.enter(r))
	}
	fmt.Fprintf(c.log, "%s %s: %s\n", time.Now().Format(time.TimeOnly), c.name(t.String()), r.counts)
	return c.enter(r)
}
