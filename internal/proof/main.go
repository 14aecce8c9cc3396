// Command proof runs the random tests of the module for hours and records what they did.
//
//	go run ./internal/proof NAME [flags]
//
// NAME is fuzz, for the parsers of all formats, or one of the proofs over whole stores in package
// prooftest. A campaign runs seeds 1, 2, 3, … and ends after --for, after --seeds, after the last
// seed of a proof that is exhaustive, at an interrupt or at the first failure. It prints how to
// repeat the failure and exits with code 1. The work done is recorded in docs/safety.md: one row for
// each commit, proof and target, to which later campaigns add.
//
// All work is done in separate processes: a crash of the process is a failure like any other, and
// memory that a run leaks is freed with its process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/prooftest"
	"github.com/oribi-db/oribi/internal/prooftest/followers"
)

func main() {
	if followers.Child() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], prooftest.Proofs(), os.Stdout, os.Stderr))
}

// options are a campaign's flags.
type options struct {
	within     time.Duration
	resume     bool
	seed       uint64
	seeds      uint64
	ledger     string
	commit     string
	targets    []string
	executions int64
	guided     time.Duration
	keepGoing  bool
}

// run executes the command and returns the exit code: 1 for a failure, 2 for invalid flags or a
// campaign that cannot run.
func run(ctx context.Context, args []string, proofs []prooftest.Proof, out, log io.Writer) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		fmt.Fprint(log, usage(proofs))
		return 2
	}
	name := args[0]
	if name == workerName {
		return work(ctx, args[1:], proofs, out, log)
	}
	var o options
	flags := flag.NewFlagSet("proof "+name, flag.ContinueOnError)
	flags.SetOutput(log)
	flags.DurationVar(&o.within, "for", 0, "stop after this time; 0 = no limit")
	flags.BoolVar(&o.resume, "resume", false, "start after the highest seed in the ledger")
	flags.Uint64Var(&o.seed, "seed", 1, "first seed")
	flags.Uint64Var(&o.seeds, "seeds", 0, "maximum number of seeds per target; 0 = no limit")
	flags.StringVar(&o.ledger, "ledger", filepath.Join("docs", "safety.md"),
		"file in which the campaign is recorded, relative to the module's root; empty = none")
	flags.StringVar(&o.commit, "commit", "", "commit under test (default: the commit of the work tree)")
	flags.Func("target", "fuzz: a target, as package.FuzzName, or a package for all its targets; may be repeated "+
		"(default all)", func(s string) error {
		o.targets = append(o.targets, s)
		return nil
	})
	flags.Int64Var(&o.executions, "executions", 10_000_000,
		"fuzz: run each target until the ledger has this many executions for the commit")
	flags.DurationVar(&o.guided, "guided", 30*time.Second,
		"fuzz: time that Go's fuzzing engine then gets for each target, once per commit; 0 = none")
	flags.BoolVar(&o.keepGoing, "keep-going", false, "fuzz: continue with the next target after a failure")
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(log, "proof: unexpected argument %q\n", flags.Arg(0))
		return 2
	}
	err := runCampaign(ctx, name, proofs, o, log)
	if err != nil {
		fmt.Fprintln(log, "proof:", err)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errFailed):
		return 1
	}
	return 2
}

func usage(proofs []prooftest.Proof) string {
	var b strings.Builder
	fmt.Fprintln(&b, "usage: go run ./internal/proof NAME [flags]\n\nNAME is one of:")
	for _, p := range proofs {
		fmt.Fprintf(&b, "  %-15s %s\n", p.Name, p.About)
	}
	fmt.Fprintf(&b, "  %-15s %s\n", fuzzName,
		"Every fuzz target: millions of executions in process, then Go's engine, which uses coverage.")
	fmt.Fprintln(&b, "\nRun a proof with --help to list its flags.")
	return b.String()
}

// runCampaign runs one campaign and enters it in the ledger. errFailed means that the tested code
// is wrong; any other error means that the campaign could not run.
func runCampaign(ctx context.Context, name string, proofs []prooftest.Proof, o options, log io.Writer) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	c := &campaign{options: o, proof: name, root: root, log: log}
	if o.within > 0 {
		c.deadline = time.Now().Add(o.within)
	}
	if o.ledger != "" && !filepath.IsAbs(o.ledger) {
		c.ledger = filepath.Join(root, o.ledger)
	}
	if c.commit == "" && c.ledger != "" {
		if c.commit, err = describe(root, c.ledger); err != nil {
			return err
		}
	}
	if name == fuzzName {
		return c.fuzz(ctx)
	}
	for _, p := range proofs {
		if p.Name == name {
			c.last = p.Seeds
			return c.stores(ctx)
		}
	}
	return fmt.Errorf("no proof %q", name)
}

// moduleRoot returns the directory with go.mod: the working directory or one above it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			err = errors.New("no go.mod in the working directory or above it")
		}
		dir = up
	}
	return "", err
}

// describe returns the commit of the work tree, with a suffix if there are changes other than those
// of the ledger.
func describe(root, ledger string) (string, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short=10", "HEAD")
	if err != nil {
		return "", fmt.Errorf("cannot read the commit from git (set it with --commit): %w", err)
	}
	args := []string{"status", "--porcelain", "--", "."}
	if rel, err := filepath.Rel(root, ledger); err == nil && filepath.IsLocal(rel) {
		args = append(args, ":(exclude)"+filepath.ToSlash(rel))
	}
	changes, err := git(args...)
	if err == nil && changes != "" {
		commit += " and changes"
	}
	return commit, err
}
