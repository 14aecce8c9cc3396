package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// settings are the flags of run.
type settings struct {
	scale, format, dir, out, tool, profiles string
	workloads, peers                        names
	rounds                                  int
	strict, quiet                           bool
}

// names is a flag that may be given several times, and with commas.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(s string) error {
	*n = append(*n, strings.Split(s, ",")...)
	return nil
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.Var(&s.workloads, "workload", "workloads, by name, * for any text; as the arguments besides (default all)")
	f.Var(&s.peers, "peer", "peers beside our own, by name or by the part before a dash (default all)")
	f.StringVar(&s.scale, "scale", "hour", "small (does the code still run, 30 seconds), hour (a million rows) or night (50 million)")
	f.IntVar(&s.rounds, "rounds", 0, "rounds of each peer; 0 = 1 at small scale, else 5")
	f.StringVar(&s.format, "format", "table", "what is printed at the end: table or json")
	f.StringVar(&s.out, "out", "results", "directory for results.json, table.md and page.html")
	f.StringVar(&s.dir, "dir", "", "where the directory for inputs and stores is made, which the run removes at its end; empty = where the system has temporary files")
	f.StringVar(&s.tool, "oribi", "", "the built command oribi; empty = it is built")
	f.StringVar(&s.profiles, "profile", "", "directory for profiles of the first round: processor, memory, locks, waiting; profiles.md tells where we lose")
	f.BoolVar(&s.strict, "strict", false, "exit with 1 when a floor is not met")
	f.BoolVar(&s.quiet, "quiet", false, "say nothing of progress")
	for {
		if err := f.Parse(args); err != nil {
			return s, err
		}
		if f.NArg() == 0 {
			break
		}
		s.workloads, args = append(s.workloads, f.Arg(0)), f.Args()[1:] // flags may stand behind names
	}
	if _, ok := harness.Scales[s.scale]; !ok {
		return s, fmt.Errorf("no scale %q: want small, hour or night", s.scale)
	}
	if s.format != "table" && s.format != "json" {
		return s, fmt.Errorf("no format %q: want table or json", s.format)
	}
	return s, nil
}

func run(ctx context.Context, all []harness.Workload, args []string) error {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	workloads, err := harness.Find(all, s.workloads)
	if err == nil {
		workloads, err = harness.Select(workloads, s.peers)
	}
	if err != nil {
		return err
	}
	c, err := s.config(ctx)
	if c.Dir != "" {
		defer os.RemoveAll(c.Dir)
	}
	if err != nil {
		return err
	}
	s.nested(ctx, workloads, &c)
	workloads = harness.Leave(workloads, c.Missing)
	bar := &progressBar{out: os.Stderr, quiet: s.quiet}
	c.Progress, c.Keep = bar.step, s.keep
	report, err := harness.Run(ctx, workloads, c)
	bar.end()
	if len(report.Workloads) > 0 {
		err = errors.Join(err, s.print(os.Stdout, report))
	}
	if c.Profiles != "" && ctx.Err() == nil {
		err = errors.Join(err, writeFile(filepath.Join(s.out, "profiles.md"), func(w io.Writer) error { return writeProfiles(ctx, w, c.Profiles, report) }))
	}
	if err == nil && s.strict && !report.Met() {
		err = errors.New("a floor is not met")
	}
	return err
}

func (s *settings) print(w io.Writer, r *harness.Report) error {
	if s.format == "json" {
		return r.WriteJSON(w)
	}
	return r.WriteTable(w)
}

// keep writes the results so far; each file is whole at any time.
func (s *settings) keep(r *harness.Report) error {
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("keep results: %w", err)
	}
	for name, write := range map[string]func(io.Writer) error{"results.json": r.WriteJSON, "table.md": r.WriteMarkdown, "page.html": r.WritePage} {
		if err := writeFile(filepath.Join(s.out, name), write); err != nil {
			return fmt.Errorf("keep results: %w", err)
		}
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name + ".part")
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		os.Remove(name + ".part")
		return err
	}
	return os.Rename(name+".part", name)
}

// config finds the engine's module, the corpus and the command, and makes the directory of the run.
func (s *settings) config(ctx context.Context) (c harness.Config, err error) {
	in := s.dir
	if in != "" {
		if in, err = filepath.Abs(in); err == nil {
			err = os.MkdirAll(in, 0o755)
		}
		if err != nil {
			return c, err
		}
	}
	if c.Dir, err = os.MkdirTemp(in, "oribi-bench-"); err != nil {
		return c, err
	}
	if c.Env.Root, err = moduleRoot(ctx); err != nil {
		return c, err
	}
	c.Env.Scale, c.Rounds = harness.Scales[s.scale], s.rounds
	if c.Env.Corpus = inputs.Corpus(c.Env.Root); c.Env.Corpus == "" {
		if s.scale != "small" {
			return c, fmt.Errorf("scale %s needs the corpus: set %s to its directory", s.scale, inputs.Variable)
		}
		fmt.Fprintln(os.Stderr, "bench: no corpus: the small cuts in the repository are used")
	}
	if s.profiles != "" {
		if c.Profiles, err = filepath.Abs(s.profiles); err != nil {
			return c, err
		}
	}
	if c.Env.Tool = s.tool; c.Env.Tool == "" {
		c.Env.Tool = filepath.Join(c.Dir, "oribi"+exeSuffix())
		err = buildTool(ctx, c.Env.Root, c.Env.Tool)
	}
	return c, err
}

// nested builds the programs of nested modules whose peers are to run: those that were named, all
// where the scale wants them. What does not build, does not get what it needs, or was not asked
// for, is missing.
func (s *settings) nested(ctx context.Context, workloads []harness.Workload, c *harness.Config) {
	c.Programs = map[string]string{}
	for _, module := range harness.Modules(workloads) {
		if !c.Env.Scale.Nested && !slices.ContainsFunc(s.peers, func(name string) bool { return harness.HasPeer(workloads, module, name) }) {
			c.Missing = append(c.Missing, harness.Missing{Peer: module, Module: module, Why: "not built at this scale unless named: --peer " + module})
			continue
		}
		if !s.quiet {
			fmt.Fprintln(os.Stderr, "bench: building", module)
		}
		name := filepath.Join(c.Dir, module+exeSuffix())
		err := build(ctx, filepath.Join(c.Env.Root, "bench", module), ".", name, "1", "-tags", nestedTags)
		if err == nil {
			err = harness.Ready(ctx, name, c.Env)
		}
		if err != nil {
			c.Missing = append(c.Missing, harness.Missing{Peer: module, Module: module, Why: err.Error()})
			continue
		}
		c.Programs[module] = name
	}
	for _, m := range c.Missing {
		fmt.Fprintf(os.Stderr, "bench: not run: %s: %s\n", m.Peer, m.Why)
	}
}

// nestedTags are those that the nested modules are built with: DuckDB's driver has its Arrow part
// behind one.
const nestedTags = "duckdb_arrow"
