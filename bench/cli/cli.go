// Package cli is the command line of the benchmarks: list, run, compare and page.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/oribi-db/oribi/bench/harness"
)

// Main is the command, with its workloads. It does not return.
func Main(all []harness.Workload) {
	harness.Main(all)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, all, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

const usage = "use list, run, compare or page"

func command(ctx context.Context, all []harness.Workload, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "list":
		for _, w := range all {
			fmt.Printf("%-16s %s\n", w.Name, w.About)
			var names []string
			for _, p := range w.Peers {
				names = append(names, p.Name)
			}
			fmt.Printf("%-16s peers: %s\n", "", strings.Join(names, ", "))
		}
		return nil
	case "run":
		return run(ctx, all, args[1:])
	case "compare":
		return compare(args[1:])
	case "page":
		return page(ctx, all, args[1:])
	}
	return fmt.Errorf("unknown command %q: %s", args[0], usage)
}

// compare prints what became slower or faster from one run to another.
func compare(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: compare OLD NEW (two files results.json)")
	}
	var reports [2]*harness.Report
	for i, name := range args {
		var err error
		if reports[i], err = readReport(name); err != nil {
			return err
		}
	}
	slower, err := harness.Compare(os.Stdout, reports[0], reports[1])
	if err == nil && slower > 0 {
		err = fmt.Errorf("%d results became slower", slower)
	}
	return err
}

// readReport reads the results of a run.
func readReport(name string) (*harness.Report, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := harness.ReadReport(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// page writes the figures in docs/performance.md and README.md: those of a complete run, which it
// copies to testdata, or those in testdata.
func page(ctx context.Context, all []harness.Workload, args []string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	switch len(args) {
	case 0:
	case 1:
		if err := keepResults(root, args[0], all); err != nil {
			return err
		}
	default:
		return errors.New("usage: page [RESULTS] (the results.json of a run)")
	}
	return writePages(root)
}

// moduleRoot returns the directory of the engine's module, in which this one is nested.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/oribi-db/oribi").Output()
	if err != nil {
		return "", fmt.Errorf("find the engine's module (run this in its bench directory): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// buildTool builds the command as users do, without cgo.
func buildTool(ctx context.Context, root, name string) error {
	return build(ctx, root, "./cmd/oribi", name, "0")
}

// build builds a program of the module in dir.
func build(ctx context.Context, dir, pkg, name, cgo string, flags ...string) error {
	build := exec.CommandContext(ctx, "go", append(append([]string{"build", "-o", name}, flags...), pkg)...)
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("go build %s in %s: %w: %s", pkg, dir, err, lines[len(lines)-1])
	}
	return nil
}

func exeSuffix() string {
	if os.PathSeparator == '\\' {
		return ".exe"
	}
	return ""
}
