package tablecmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/access"
	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// History is the verb "oribi table history".
func History(a *console.Console) *cobra.Command {
	return verb.Printing(a, "history DIR NAME KEY", "Print all versions of a row, newest first",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			return access.WithTable(args[0], args[1], access.Reading, func(t *oribi.Table) error {
				s := t.Schema()
				key, err := cell.Key(s, args[2], false)
				if err != nil {
					return exit.Usage(fmt.Errorf("key: %w", err))
				}
				return PrintVersions(a, form, s, t.History(cmd.Context(), key))
			})
		})
}

// PrintVersions prints the versions of a row.
func PrintVersions(
	a *console.Console, form output.Format, s *schema.Schema, versions iter.Seq2[oribi.Version, error],
) error {
	groups := []output.Group{{Columns: console.Nullable([]schema.Column{{Name: "ts", Type: schema.String}}), Raw: true}}
	clock := form == output.Table
	if clock {
		groups = append(groups,
			output.Group{Columns: console.Nullable([]schema.Column{{Name: "time", Type: schema.String}}), Raw: true})
	}
	r := a.Records(form, append(groups,
		output.Group{Columns: []schema.Column{{Name: "op", Type: schema.String}}},
		output.Group{Name: "row", Columns: console.Nullable(s.Columns)},
	))
	some := false
	for v, err := range versions {
		if err != nil {
			return r.End(some, err)
		}
		var ts, time []byte
		if v.Kind != oribi.Base {
			ts, time = strconv.AppendUint(nil, uint64(v.Timestamp), 10), []byte(flags.ClockTime(v.Timestamp))
		}
		r.Add([][]byte{ts}, 1)
		if clock {
			r.Add([][]byte{time}, 1)
		}
		r.Add([][]byte{[]byte(v.Kind.String())}, 1)
		r.Add(v.Cells, len(s.Columns))
		some = true
		if err := r.Write(); err != nil {
			return err
		}
	}
	return r.End(some, nil)
}

// Diff is the verb "oribi table diff".
func Diff(a *console.Console) *cobra.Command {
	var from, to string
	c := verb.Printing(a, "diff DIR NAME", "Print the rows that differ between two timestamps",
		func(cmd *cobra.Command, args []string, form output.Format) error {
			now := time.Now()
			var ts [2]mvcc.Timestamp
			var err error
			for i, flag := range [2]struct{ name, word string }{{"from", from}, {"to", to}} {
				if ts[i], err = when.ParseState(flag.word, now); err != nil {
					return exit.Usage(fmt.Errorf("--%s: %w", flag.name, err))
				}
			}
			if ts[0] > ts[1] {
				return exit.Usage(errors.New("--from is later than --to"))
			}
			for _, t := range ts {
				if err := flags.Reach(cmd.Context(), t); err != nil {
					return err
				}
			}
			return access.WithStore(args[0], access.Reading, func(store *oribi.Store) error {
				t, err := access.OpenTable(store, args[1])
				if err != nil {
					return err
				}
				return diff(cmd.Context(), a, store, t, ts[0], ts[1], form)
			})
		})
	flags.Time(c, &from, "from", "", "the earlier state")
	flags.Time(c, &to, "to", "latest", "the later state")
	verb.Require(c, "from")
	return c
}

func diff(
	ctx context.Context, a *console.Console, store *oribi.Store, t *oribi.Table, from, to mvcc.Timestamp,
	form output.Format,
) error {
	if to == when.Latest {
		sn, err := store.Snapshot(ctx)
		if err != nil {
			return err
		}
		sn.SetName("diff")
		defer sn.Close()
		from, to = min(from, sn.Timestamp()), sn.Timestamp()
	}
	if form == output.Table {
		if err := printEnds(a, from, to); err != nil {
			return err
		}
	}
	s := t.Schema()
	r := a.Records(form, []output.Group{
		{Columns: []schema.Column{{Name: "op", Type: schema.String}}},
		{Name: "key", Columns: s.Columns[:s.Keys]},
		{Name: "before", Columns: console.Nullable(s.Columns)},
		{Name: "after", Columns: console.Nullable(s.Columns)},
	})
	some := false
	for d, err := range t.Diff(ctx, from, to) {
		if err != nil {
			return r.End(some, err)
		}
		r.Add([][]byte{[]byte(d.Kind.String())}, 1)
		r.Add(d.Key, s.Keys)
		r.Add(d.Before, len(s.Columns))
		r.Add(d.After, len(s.Columns))
		some = true
		if err := r.Write(); err != nil {
			return err
		}
	}
	return r.End(some, nil)
}

// printEnds prints the two states that a diff compares.
func printEnds(a *console.Console, from, to mvcc.Timestamp) error {
	var f console.Fields
	f.Add("from", fmt.Sprintf("%s (%d)", flags.ClockTime(from), from),
		"to", fmt.Sprintf("%s (%d)", flags.ClockTime(to), to))
	if err := a.PrintFields(&f, output.Table); err != nil {
		return err
	}
	return a.Printf("\n")
}
