package cli

import (
	"errors"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/apply"
	"github.com/oribi-db/oribi/cmd/oribi/internal/demo"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
)

func (a *app) apply() *cobra.Command {
	var timestamps string
	var noSync bool
	var limit int
	c := a.verb("apply DIR FILE", "Commit write batches, one JSON object per line",
		func(cmd *cobra.Command, args []string) error {
			if err := checkCellLimit(limit); err != nil {
				return err
			}
			bar := a.applyBar(timestamps)
			defer bar.Stop()
			in, err := a.openCounted(args[1], bar)
			if err != nil {
				return err
			}
			defer in.Close()
			return withOptions(args[0], writing(cmd), oribi.Options{CellLimit: limit},
				func(store *oribi.Store) (err error) {
					out, err := a.timestamps(timestamps, args[1], args[0])
					if err != nil {
						return err
					}
					o := apply.Options{Name: args[1], NoSync: noSync, Applied: bar.Count}
					if out != nil {
						o.Timestamps = out
						defer func() { err = errors.Join(err, out.Close()) }()
					}
					return cellHint(apply.Run(cmd.Context(), store, in, o))
				})
		})
	c.Flags().StringVar(&timestamps, "timestamps", "",
		"write the timestamp of each batch to this file, a line each; - is stdout")
	cellLimitFlag(c, &limit)
	c.Flags().BoolVar(&noSync, "no-sync", false,
		"do not wait until a batch is durable: a power cut may lose the last ones")
	return c
}

// applyBar shows the progress of apply, unless timestamps are printed on the terminal.
func (a *app) applyBar(timestamps string) *progress.Bar {
	if timestamps == "-" {
		return nil
	}
	return a.bar(progress.Options{What: "apply", Unit: progress.Bytes, Counted: "batches"})
}

// timestamps creates or truncates the file that receives the timestamps; nil if none is requested.
func (a *app) timestamps(name, input, dir string) (io.WriteCloser, error) {
	if name == "" {
		return nil, nil
	}
	return a.makeOutput("timestamps", name, input, dir)
}

func (a *app) demo() *cobra.Command {
	return a.verb("demo [DIR]", "Demonstrate a store with the history of a source tree",
		func(cmd *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			err := demo.Run(cmd.Context(), a.stdout, dir)
			if errors.Is(err, oribi.ErrNotStore) {
				return withCode(exitFailed, err) // something else exists there: nothing is missing
			}
			return err
		})
}

func (a *app) version() *cobra.Command {
	return a.verb("version", "Print the version", func(*cobra.Command, []string) error { return a.printVersion() })
}

func (a *app) printVersion() error {
	version, goVersion := "(devel)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		goVersion = " " + info.GoVersion
	}
	return a.printf("oribi %s%s\n", version, goVersion)
}
