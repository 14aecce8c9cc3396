package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/internal/when"
)

// time converts between timestamps and clock time.
func (a *app) time() *cobra.Command {
	var format string
	c := a.verb("time TS", "Convert a timestamp to clock time, and back", func(_ *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		ts, err := when.Parse(args[0], time.Now())
		if err != nil {
			return usage(err)
		}
		if ts == when.Latest {
			return usage(errors.New("latest is not a clock time: want " +
				strings.TrimSuffix(when.Points, ", or latest")))
		}
		var f fields
		f.plain("ts", uint64(ts))
		f.text("time", clockTime(ts))
		return a.printFields(&f, form)
	})
	formatFlag(c, &format)
	return c
}
