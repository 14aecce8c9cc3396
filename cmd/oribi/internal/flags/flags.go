// Package flags has the flags that several verbs share, and parses their values.
package flags

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// mostAhead is how far ahead of the clock a timestamp may be. A store opened for reading accepts
// timestamps up to the machine's clock, so the command waits until the clock reaches the timestamp.
const mostAhead = mvcc.MaxAhead

// Reach waits until the machine's clock has passed ts, if that is at most mostAhead away. The store
// refuses later timestamps.
func Reach(ctx context.Context, ts mvcc.Timestamp) error {
	if ts == when.Latest {
		return nil
	}
	ahead := time.Until(ts.Time().Add(time.Microsecond))
	if ahead <= 0 || ahead > mostAhead {
		return nil
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AsOf adds the flag that names the state to read.
func AsOf(c *cobra.Command, asOf *string) {
	Time(c, asOf, "as-of", "latest", "read the state at this time")
}

// ParseAsOf parses the value of a flag into a read option. It waits for a timestamp that is
// slightly ahead of the clock.
func ParseAsOf(ctx context.Context, word string) (oribi.ReadOption, error) {
	ts, err := when.ParseState(word, time.Now())
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--as-of: %w", err))
	}
	if ts == when.Latest {
		return oribi.Latest(), nil
	}
	return oribi.AsOf(ts), Reach(ctx, ts)
}

// Explain adds the flag that asks for an explanation of a read.
func Explain(c *cobra.Command, explain *bool) {
	c.Flags().BoolVar(explain, "explain", false, "print on stderr what was read, skipped, and tested")
}

// Explanation returns memory for the explanation of a read, nil if it is not wanted.
func Explanation(explain bool) *oribi.Explanation {
	if !explain {
		return nil
	}
	return new(oribi.Explanation)
}

// PrintExplanation prints the explanation of a read on stderr, unless it is nil.
func PrintExplanation(a *console.Console, e *oribi.Explanation) {
	if e != nil {
		fmt.Fprint(a.Stderr, e)
	}
}

// Chosen returns the columns that a flag names, or all of them without the flag.
func Chosen(s *schema.Schema, flag string, list []string, given bool) ([]schema.Column, error) {
	if !given {
		return s.Columns, nil
	}
	if len(list) == 0 {
		return nil, exit.Usage(fmt.Errorf("--%s names no column", flag))
	}
	var columns []schema.Column
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			return nil, exit.Usage(fmt.Errorf("--%s: column %q appears twice", flag, name))
		}
	}
	cols, err := s.Project(list)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("--%s: %w", flag, err))
	}
	for _, k := range cols {
		columns = append(columns, s.Columns[k])
	}
	return columns, nil
}

// Names returns the names of columns.
func Names(columns []schema.Column) []string {
	list := make([]string, len(columns))
	for i := range columns {
		list[i] = columns[i].Name
	}
	return list
}

// ClockTime returns the microsecond of a timestamp as RFC 3339 of constant width.
func ClockTime(ts mvcc.Timestamp) string {
	return ts.Time().UTC().Format(ClockForm)
}

// ClockForm is RFC 3339 with microseconds, in UTC.
const ClockForm = "2006-01-02T15:04:05.000000Z"

// Time adds a flag that names a point in time.
func Time(c *cobra.Command, value *string, name, initial, use string) {
	c.Flags().StringVar(value, name, initial, fmt.Sprintf("%s: %s; times without a zone are UTC", use, when.Points))
}

// Pair splits name=value.
func Pair(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%q: want a column's name, = and a value", text)
	}
	return name, value, nil
}

// OrList joins at least two names: a, b, or c.
func OrList(names []string) string {
	last := len(names) - 1
	if last == 1 {
		return names[0] + " or " + names[1]
	}
	return strings.Join(names[:last], ", ") + ", or " + names[last]
}

// Choice sets *to to the value that a flag names.
func Choice[T any](flag, name string, values map[string]T, to *T) error {
	v, ok := values[name]
	if !ok {
		return exit.Usage(fmt.Errorf("--%s: unknown %q%s", flag, name, nearest.Hint(name, nearest.Keys(values))))
	}
	*to = v
	return nil
}

// CellLimit adds the flag of commands that write rows.
func CellLimit(c *cobra.Command, limit *int) {
	c.Flags().IntVar(limit, "cell-limit", 0, "maximum bytes of a cell, up to 4194304 (default 65536)")
}

// CheckCellLimit checks the value of the flag of CellLimit.
func CheckCellLimit(limit int) error {
	if err := (&oribi.Options{CellLimit: limit}).Validate(); err != nil {
		return exit.Usage(fmt.Errorf("--cell-limit: %w", err))
	}
	return nil
}

// CellHint says how to allow longer cells.
func CellHint(err error) error {
	if errors.Is(err, fault.ErrCellLimit) {
		return exit.WithHelp(err, "to allow longer cells: --cell-limit BYTES")
	}
	return err
}
