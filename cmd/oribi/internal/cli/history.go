package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/internal/when"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

func (a *app) tableHistory() *cobra.Command {
	var format string
	c := a.verb("history DIR NAME KEY", "Print all versions of a row, newest first",
		func(cmd *cobra.Command, args []string) error {
			form, err := a.format(format)
			if err != nil {
				return err
			}
			return withTable(args[0], args[1], reading, func(t *oribi.Table) error {
				s := t.Schema()
				key, err := cell.Key(s, args[2], false)
				if err != nil {
					return usage(fmt.Errorf("key: %w", err))
				}
				return a.printVersions(form, s, t.History(cmd.Context(), key))
			})
		})
	formatFlag(c, &format)
	return c
}

// printVersions prints the versions of a row.
func (a *app) printVersions(form output.Format, s *schema.Schema, versions iter.Seq2[oribi.Version, error]) error {
	groups := []output.Group{{Columns: nullable([]schema.Column{{Name: "ts", Type: schema.String}}), Raw: true}}
	clock := form == output.Table
	if clock {
		groups = append(groups,
			output.Group{Columns: nullable([]schema.Column{{Name: "time", Type: schema.String}}), Raw: true})
	}
	r := a.records(form, append(groups,
		output.Group{Columns: []schema.Column{{Name: "op", Type: schema.String}}},
		output.Group{Name: "row", Columns: nullable(s.Columns)},
	))
	some := false
	for v, err := range versions {
		if err != nil {
			return r.end(some, err)
		}
		var ts, time []byte
		if v.Kind != oribi.Base {
			ts, time = strconv.AppendUint(nil, uint64(v.Timestamp), 10), []byte(clockTime(v.Timestamp))
		}
		r.add([][]byte{ts}, 1)
		if clock {
			r.add([][]byte{time}, 1)
		}
		r.add([][]byte{[]byte(v.Kind.String())}, 1)
		r.add(v.Cells, len(s.Columns))
		some = true
		if err := r.write(); err != nil {
			return err
		}
	}
	return r.end(some, nil)
}

func (a *app) tableDiff() *cobra.Command {
	var format, from, to string
	c := a.verb("diff DIR NAME", "Print the rows that differ between two timestamps",
		func(cmd *cobra.Command, args []string) error {
			form, err := a.format(format)
			if err != nil {
				return err
			}
			now := time.Now()
			var ts [2]mvcc.Timestamp
			for i, flag := range [2]struct{ name, word string }{{"from", from}, {"to", to}} {
				if ts[i], err = when.ParseState(flag.word, now); err != nil {
					return usage(fmt.Errorf("--%s: %w", flag.name, err))
				}
			}
			if ts[0] > ts[1] {
				return usage(errors.New("--from is later than --to"))
			}
			for _, t := range ts {
				if err := reach(cmd.Context(), t); err != nil {
					return err
				}
			}
			return withStore(args[0], reading, func(store *oribi.Store) error {
				t, err := openTable(store, args[1])
				if err != nil {
					return err
				}
				return a.diff(cmd.Context(), store, t, ts[0], ts[1], form)
			})
		})
	formatFlag(c, &format)
	timeFlag(c, &from, "from", "", "the earlier state")
	timeFlag(c, &to, "to", "latest", "the later state")
	if err := c.MarkFlagRequired("from"); err != nil {
		panic(err) // impossible: the flag exists
	}
	return c
}

func (a *app) diff(
	ctx context.Context, store *oribi.Store, t *oribi.Table, from, to mvcc.Timestamp, form output.Format,
) error {
	if to == when.Latest {
		sn, err := store.Snapshot(ctx, oribi.Named("diff"))
		if err != nil {
			return err
		}
		defer sn.Close()
		from, to = min(from, sn.Timestamp()), sn.Timestamp()
	}
	if form == output.Table {
		if err := a.printEnds(from, to); err != nil {
			return err
		}
	}
	s := t.Schema()
	r := a.records(form, []output.Group{
		{Columns: []schema.Column{{Name: "op", Type: schema.String}}},
		{Name: "key", Columns: s.Columns[:s.Keys]},
		{Name: "before", Columns: nullable(s.Columns)},
		{Name: "after", Columns: nullable(s.Columns)},
	})
	some := false
	for d, err := range t.Diff(ctx, from, to) {
		if err != nil {
			return r.end(some, err)
		}
		r.add([][]byte{[]byte(d.Kind.String())}, 1)
		r.add(d.Key, s.Keys)
		r.add(d.Before, len(s.Columns))
		r.add(d.After, len(s.Columns))
		some = true
		if err := r.write(); err != nil {
			return err
		}
	}
	return r.end(some, nil)
}

// printEnds prints the two states that a diff compares.
func (a *app) printEnds(from, to mvcc.Timestamp) error {
	var f fields
	f.text("from", fmt.Sprintf("%s (%d)", clockTime(from), from))
	f.text("to", fmt.Sprintf("%s (%d)", clockTime(to), to))
	if err := a.printFields(&f, output.Table); err != nil {
		return err
	}
	return a.printf("\n")
}
