package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// settings contains the flags of run.
type settings struct {
	scale, format, dir, out, tool, profiles string
	workloads, peers                        names
	rounds, large                           int
	strict, quiet, resume                   bool
}

// names is a flag that may be repeated and whose values may be separated by commas.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(s string) error {
	*n = append(*n, strings.Split(s, ",")...)
	return nil
}

func parse(args []string) (s settings, err error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.Var(&s.workloads, "workload", "workloads by name, * matches any text; also as arguments (default all)")
	f.Var(&s.peers, "peer", "peers in addition to our own, by name or by the part before a dash (default all)")
	f.StringVar(&s.scale, "scale", "hour",
		"small (30 seconds, checks that the code runs), hour (a million rows) or night (50 million)")
	f.IntVar(&s.rounds, "rounds", 0, "rounds per peer; 0 = 1 at small scale, else 5")
	f.IntVar(&s.large, "large", 0, "rows of the table of *-uniform; 0 = 4 million at scale hour")
	f.StringVar(&s.format, "format", "table", "output at the end: table or json")
	f.StringVar(&s.out, "out", "results", "directory for results.json, table.md and page.html")
	f.StringVar(&s.dir, "dir", "",
		"parent of the temporary directory for inputs and stores; empty = the system's default")
	f.StringVar(&s.tool, "oribi", "", "path of the oribi command; empty = build it")
	f.StringVar(&s.profiles, "profile", "",
		"directory for profiles of the first round (CPU, memory, locks, waiting) and profiles.md, which summarizes "+
			"the workloads in which we lose")
	f.BoolVar(&s.strict, "strict", false, "exit with code 1 if a goal is not met")
	f.BoolVar(&s.resume, "resume", false,
		"continue the run whose results are in --out: measure only the workloads that they lack")
	f.BoolVar(&s.quiet, "quiet", false, "do not show progress")
	for {
		if err := f.Parse(args); err != nil {
			return s, err
		}
		if f.NArg() == 0 {
			break
		}
		s.workloads, args = append(s.workloads, f.Arg(0)), f.Args()[1:] // flags may follow names
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
	c.Commit = commitOf(ctx, c.Env.Root)
	if s.resume {
		c.Resume, err = readReport(filepath.Join(s.out, resultsFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
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
		err = errors.Join(err, writeFile(filepath.Join(s.out, "profiles.md"), func(w io.Writer) error {
			return writeProfiles(ctx, w, c.Profiles, report)
		}))
	}
	if err == nil && s.strict && !report.Met() {
		err = errors.New("a goal is not met")
	}
	return err
}

func (s *settings) print(w io.Writer, r *harness.Report) error {
	if s.format == "json" {
		return r.WriteJSON(w)
	}
	return r.WriteTable(w)
}

// keep writes the results so far. It replaces each file atomically.
func (s *settings) keep(r *harness.Report) error {
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("keep results: %w", err)
	}
	for name, write := range map[string]func(io.Writer) error{resultsFile: r.WriteJSON,
		"table.md": r.WriteMarkdown, "page.html": r.WritePage} {
		if err := writeFile(filepath.Join(s.out, name), write); err != nil {
			return fmt.Errorf("keep results: %w", err)
		}
	}
	return nil
}

// commitOf returns the commit of the module in root, or "" without git.
func commitOf(ctx context.Context, root string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--abbrev=12",
		"--exclude=*", "--dirty="+harness.Changed).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
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

// config finds the engine's module, the corpus and the command, and creates the run's directory.
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
	if s.large > 0 {
		c.Env.Scale.Large = s.large
	}
	if c.Env.Corpus = inputs.Corpus(c.Env.Root); c.Env.Corpus == "" {
		if s.scale != "small" {
			return c, fmt.Errorf("scale %s needs the corpus: set %s to its directory", s.scale, inputs.Variable)
		}
		fmt.Fprintln(os.Stderr, "bench: no corpus: using the small inputs in the repository")
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

// nested builds the programs of the nested modules whose peers are to run: the named ones, or all
// if the scale includes them. A program that does not build, lacks something it needs, or was not
// requested is listed as missing.
func (s *settings) nested(ctx context.Context, workloads []harness.Workload, c *harness.Config) {
	c.Programs = map[string]string{}
	for _, module := range harness.Modules(workloads) {
		if !c.Env.Scale.Nested && !slices.ContainsFunc(s.peers, func(name string) bool {
			return harness.HasPeer(workloads, module, name)
		}) {
			c.Missing = append(c.Missing,
				harness.Missing{Peer: module, Module: module,
					Why: "not built at this scale; to include it: --peer " + module})
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

// nestedTags are the build tags of the nested modules: DuckDB's driver needs one for Arrow.
const nestedTags = "duckdb_arrow"
