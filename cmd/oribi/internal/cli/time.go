package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/when"
)

// timeVerb converts between timestamps and clock time.
func timeVerb(a *console.Console) *cobra.Command {
	return verb.Printing(a, "time TS", "Convert a timestamp to clock time, and back",
		func(_ *cobra.Command, args []string, form output.Format) error {
			ts, err := when.Parse(args[0], time.Now())
			if err != nil {
				return exit.Usage(err)
			}
			if ts == when.Latest {
				return exit.Usage(errors.New("latest is not a clock time: want " +
					strings.TrimSuffix(when.Points, ", or latest")))
			}
			var f console.Fields
			f.Plain("ts", uint64(ts))
			f.Text("time", flags.ClockTime(ts))
			return a.PrintFields(&f, form)
		})
}
