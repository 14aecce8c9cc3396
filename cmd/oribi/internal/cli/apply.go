package cli

import (
	"errors"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/demo"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
)

func applyVerb(a *console.Console) *cobra.Command {
	var timestamps string
	var noSync bool
	var limit int
	c := verb.New(a, "apply DIR FILE", "Commit write batches, one JSON object per line",
		func(cmd *cobra.Command, args []string) error {
			if err := flags.CheckCellLimit(limit); err != nil {
				return err
			}
			bar := applyBar(a, timestamps)
			defer bar.Stop()
			in, err := a.OpenCounted(args[1], bar)
			if err != nil {
				return err
			}
			defer in.Close()
			return access.WithOptions(args[0], access.Writing(cmd), oribi.Options{CellLimit: limit},
				func(store *oribi.Store) (err error) {
					out, err := openTimestamps(a, timestamps, args[1], args[0])
					if err != nil {
						return err
					}
					o := apply.Options{Name: args[1], NoSync: noSync, Applied: bar.Count}
					if out != nil {
						o.Timestamps = out
						defer func() { err = errors.Join(err, out.Close()) }()
					}
					return flags.CellHint(apply.Run(cmd.Context(), store, in, o))
				})
		})
	c.Flags().StringVar(&timestamps, "timestamps", "",
		"write the timestamp of each batch to this file, a line each; - is stdout")
	flags.CellLimit(c, &limit)
	c.Flags().BoolVar(&noSync, "no-sync", false,
		"do not wait until a batch is durable: a power cut may lose the last ones")
	return c
}

// applyBar shows the progress of apply, unless timestamps are printed on the terminal.
func applyBar(a *console.Console, timestamps string) *progress.Bar {
	if timestamps == "-" {
		return nil
	}
	return a.Bar(progress.Options{What: "apply", Unit: progress.Bytes, Counted: "batches"})
}

// openTimestamps creates or truncates the file that receives the timestamps; nil if none is
// requested.
func openTimestamps(a *console.Console, name, input, dir string) (io.WriteCloser, error) {
	if name == "" {
		return nil, nil
	}
	return a.MakeOutput("timestamps", name, input, dir)
}

func demoVerb(a *console.Console) *cobra.Command {
	return verb.New(a, "demo [DIR]", "Demonstrate a store with the history of a source tree",
		func(cmd *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			err := demo.Run(cmd.Context(), a.Stdout, dir)
			if errors.Is(err, oribi.ErrNotStore) {
				return exit.With(exit.Failed, err) // something else exists there: nothing is missing
			}
			return err
		})
}

func versionVerb(a *console.Console) *cobra.Command {
	return verb.New(a, "version", "Print the version", func(*cobra.Command, []string) error { return printVersion(a) })
}

func printVersion(a *console.Console) error {
	version, goVersion := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		goVersion = " " + info.GoVersion
	}
	return a.Printf("oribi %s%s\n", version, goVersion)
}
