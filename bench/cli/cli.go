// Package cli is the command line of the benchmarks: list and run.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// Main is the command, with its workloads. It does not return.
func Main(all []harness.Workload) {
	harness.Main(all)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, all, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func command(ctx context.Context, all []harness.Workload, args []string) error {
	if len(args) == 0 {
		return errors.New("want list, or run")
	}
	switch args[0] {
	case "list":
		for _, w := range all {
			fmt.Printf("%-12s %s\n", w.Name, w.About)
		}
		return nil
	case "run":
		return run(ctx, all, args[1:])
	}
	return fmt.Errorf("no command %q: want list, or run", args[0])
}

// settings are the flags of run.
type settings struct {
	scale, format, dir, tool, profiles string
	rounds                             int
	strict, quiet                      bool
}

func parse(args []string) (s settings, names []string, err error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.StringVar(&s.scale, "scale", "full", "small (does the code still run) or full (figures)")
	f.IntVar(&s.rounds, "rounds", 0, "rounds of each peer; 0 = 5 at full scale, 2 at small scale")
	f.StringVar(&s.format, "format", "table", "table or json")
	f.StringVar(&s.dir, "dir", "", "directory for inputs and stores; empty = a temporary one")
	f.StringVar(&s.tool, "oribi", "", "the built command oribi; empty = it is built")
	f.StringVar(&s.profiles, "profile", "", "directory for CPU and heap profiles of the first round")
	f.BoolVar(&s.strict, "strict", false, "exit with 1 when a floor is not met")
	f.BoolVar(&s.quiet, "quiet", false, "say nothing of progress")
	for {
		if err := f.Parse(args); err != nil {
			return s, nil, err
		}
		if f.NArg() == 0 {
			break
		}
		names, args = append(names, f.Arg(0)), f.Args()[1:] // flags may stand behind names
	}
	if _, ok := harness.Scales[s.scale]; !ok {
		return s, nil, fmt.Errorf("--scale %s: want small or full", s.scale)
	}
	if s.format != "table" && s.format != "json" {
		return s, nil, fmt.Errorf("--format %s: want table or json", s.format)
	}
	return s, names, nil
}

func run(ctx context.Context, all []harness.Workload, args []string) error {
	s, names, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	workloads, err := harness.Find(all, names)
	if err != nil {
		return err
	}
	c, err := s.config(ctx)
	if err != nil {
		return err
	}
	if s.dir == "" {
		defer os.RemoveAll(c.Dir)
	}
	report, err := harness.Run(ctx, workloads, c)
	if err != nil {
		return err
	}
	write := report.WriteTable
	if s.format == "json" {
		write = report.WriteJSON
	}
	if err := write(os.Stdout); err != nil {
		return err
	}
	if s.strict && !report.Met() {
		return errors.New("a floor is not met")
	}
	return nil
}

// config finds the engine's module, the corpus and the command, and makes the directory of the run.
func (s *settings) config(ctx context.Context) (c harness.Config, err error) {
	if c.Dir = s.dir; c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "oribi-bench-"); err != nil {
			return c, err
		}
	} else if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, err
	}
	if c.Env.Root, err = moduleRoot(ctx); err != nil {
		return c, err
	}
	c.Env.Scale, c.Rounds = harness.Scales[s.scale], s.rounds
	if c.Env.Corpus = inputs.Corpus(c.Env.Root); c.Env.Corpus == "" {
		if s.scale == "full" {
			return c, fmt.Errorf("full scale needs the corpus: set %s to its directory", inputs.Variable)
		}
		fmt.Fprintln(os.Stderr, "bench: no corpus: the small cuts in the repository are used")
	}
	if s.profiles != "" {
		if c.Profiles, err = filepath.Abs(s.profiles); err != nil {
			return c, err
		}
	}
	if !s.quiet {
		c.Progress = os.Stderr
	}
	if c.Env.Tool = s.tool; c.Env.Tool == "" {
		c.Env.Tool = filepath.Join(c.Dir, "oribi"+exeSuffix())
		err = buildTool(ctx, c.Env.Root, c.Env.Tool)
	}
	return c, err
}

// moduleRoot is the directory of the engine's module, which this one is nested in.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/oribi-db/oribi").Output()
	if err != nil {
		return "", fmt.Errorf("find the engine's module (run this in its directory bench): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildTool builds the command as users build it, without cgo.
func buildTool(ctx context.Context, root, name string) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", name, "./cmd/oribi")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the command: %w: %s", err, out)
	}
	return nil
}

func exeSuffix() string {
	if os.PathSeparator == '\\' {
		return ".exe"
	}
	return ""
}
