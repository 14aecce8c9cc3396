package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// mostAhead is how far ahead of the clock a timestamp may be. A store opened for reading accepts
// timestamps up to the machine's clock, so the command waits until the clock reaches the timestamp.
const mostAhead = mvcc.MaxAhead

// reach waits until the machine's clock has passed ts, if that is at most mostAhead away. The store
// refuses later timestamps.
func reach(ctx context.Context, ts mvcc.Timestamp) error {
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

func formatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVar(format, "format", "", "table, csv, jsonl or json (default: table on a terminal, else jsonl)")
}

func asOfFlag(c *cobra.Command, asOf *string) {
	timeFlag(c, asOf, "as-of", "latest", "read the state at this time")
}

// asOf parses the value of a flag into a read option. It waits for a timestamp that is slightly
// ahead of the clock.
func asOf(ctx context.Context, word string) (oribi.ReadOption, error) {
	ts, err := when.ParseState(word, time.Now())
	if err != nil {
		return nil, usage(fmt.Errorf("--as-of: %w", err))
	}
	if ts == when.Latest {
		return oribi.Latest(), nil
	}
	return oribi.AsOf(ts), reach(ctx, ts)
}

func explainFlag(c *cobra.Command, explain *bool) {
	c.Flags().BoolVar(explain, "explain", false, "print on stderr what was read, skipped, and tested")
}

// explanation returns memory for the explanation of a read, nil if it is not wanted.
func explanation(explain bool) *oribi.Explanation {
	if !explain {
		return nil
	}
	return new(oribi.Explanation)
}

// printExplanation prints the explanation of a read on stderr, unless it is nil.
func (a *app) printExplanation(e *oribi.Explanation) {
	if e != nil {
		fmt.Fprint(a.stderr, e)
	}
}

// chosen returns the columns that a flag names, or all of them without the flag.
func chosen(s *schema.Schema, flag string, list []string, given bool) ([]schema.Column, error) {
	if !given {
		return s.Columns, nil
	}
	if len(list) == 0 {
		return nil, usage(fmt.Errorf("--%s names no column", flag))
	}
	var columns []schema.Column
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			return nil, usage(fmt.Errorf("--%s: column %q appears twice", flag, name))
		}
	}
	cols, err := s.Project(list)
	if err != nil {
		return nil, usage(fmt.Errorf("--%s: %w", flag, err))
	}
	for _, k := range cols {
		columns = append(columns, s.Columns[k])
	}
	return columns, nil
}

func names(columns []schema.Column) []string {
	list := make([]string, len(columns))
	for i := range columns {
		list[i] = columns[i].Name
	}
	return list
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

// pair splits name=value.
func pair(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", fmt.Errorf("%q: want a column's name, = and a value", text)
	}
	return name, value, nil
}

// orList joins at least two names: a, b, or c.
func orList(names []string) string {
	last := len(names) - 1
	if last == 1 {
		return names[0] + " or " + names[1]
	}
	return strings.Join(names[:last], ", ") + ", or " + names[last]
}

// choice sets *to to the value that a flag names.
func choice[T any](flag, name string, values map[string]T, to *T) error {
	v, ok := values[name]
	if !ok {
		return usage(fmt.Errorf("--%s: unknown %q%s", flag, name, nearest.Hint(name, nearest.Keys(values))))
	}
	*to = v
	return nil
}

// cellLimitFlag adds the flag of commands that write rows.
func cellLimitFlag(c *cobra.Command, limit *int) {
	c.Flags().IntVar(limit, "cell-limit", 0, "maximum bytes of a cell, up to 4194304 (default 65536)")
}

// checkCellLimit checks its value.
func checkCellLimit(limit int) error {
	if err := (&oribi.Options{CellLimit: limit}).Validate(); err != nil {
		return usage(fmt.Errorf("--cell-limit: %w", err))
	}
	return nil
}

// cellHint says how to allow longer cells.
func cellHint(err error) error {
	if errors.Is(err, fault.ErrCellLimit) {
		return withHelp(err, "to allow longer cells: --cell-limit BYTES")
	}
	return err
}
