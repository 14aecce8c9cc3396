package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
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

// clockTime returns the microsecond of a timestamp as RFC 3339 of constant width.
func clockTime(ts mvcc.Timestamp) string {
	return ts.Time().UTC().Format(clockForm)
}

// clockForm is RFC 3339 with microseconds, in UTC.
const clockForm = "2006-01-02T15:04:05.000000Z"

// timeFlag adds a flag that names a point in time.
func timeFlag(c *cobra.Command, value *string, name, initial, use string) {
	c.Flags().StringVar(value, name, initial, fmt.Sprintf("%s: %s; times without a zone are UTC", use, when.Points))
}
