package cli

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// policyFlags are the flags that choose a compaction policy.
type policyFlags struct {
	name, size string
	dryRun     bool

	policy compaction.Policy // nil = none
	budget int64
}

func (f *policyFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.name, "policy", "",
		"merge what a policy picks until it picks nothing: none, overlap, budgeted, tiered, or leveled")
	f.addBudget(c)
	c.Flags().BoolVar(&f.dryRun, "dry-run", false,
		"print what --policy picks of the rowsets on disk, one line per merge, and change nothing")
}

func (f *policyFlags) addBudget(c *cobra.Command) {
	c.Flags().StringVar(&f.size, "budget", "256MB",
		"how much a merge of --policy should rewrite at most: an integer and B, KB, MB, or GB, in powers of 1024")
}

// parse checks the flags.
func (f *policyFlags) parse(cmd *cobra.Command) (err error) {
	if f.name == "" {
		for _, flag := range []string{"budget", "dry-run"} {
			if cmd.Flags().Changed(flag) {
				return usage(fmt.Errorf("--%s needs --policy", flag))
			}
		}
		return nil
	}
	if cmd.Flags().Changed("kind") {
		return usage(errors.New("--kind and --policy exclude each other"))
	}
	policies := compaction.Named()
	if f.policy = policies[f.name]; f.policy == nil {
		return usage(fmt.Errorf("--policy: unknown policy %q%s", f.name, nearest.Hint(f.name, nearest.Keys(policies))))
	}
	if f.budget, err = figures.ParseSize(f.size); err != nil {
		return usage(fmt.Errorf("--budget: %w", err))
	}
	return nil
}

// printPicks prints what a policy picks of a layout. A pick after the first is of the rowsets that
// are left: those that the merges before it would write are not known.
func (a *app) printPicks(layout compaction.Layout, f *policyFlags, form output.Format) error {
	raw := func(name string) output.Group {
		return output.Group{Columns: []schema.Column{{Name: name, Type: schema.String}}, Raw: true}
	}
	text := func(name string) output.Group {
		return output.Group{Columns: []schema.Column{{Name: name, Type: schema.String}}}
	}
	r := a.records(form, []output.Group{text("policy"), raw("rowsets"),
		{Columns: []schema.Column{{Name: "bytes", Type: schema.Int64}}}, raw("quality"), text("why")}, "bytes")
	for {
		c := f.policy.Pick(layout, f.budget)
		if len(c.RowSets) == 0 {
			return r.end(true, nil)
		}
		list, size := []byte{'['}, int64(0)
		left := layout.RowSets[:0:0]
		for _, set := range layout.RowSets {
			if !slices.Contains(c.RowSets, set.ID) {
				left = append(left, set)
				continue
			}
			if size += set.Bytes; len(list) > 1 {
				list = append(list, ',')
			}
			list = strconv.AppendUint(list, set.ID, 10)
		}
		if err := c.Check(layout); err != nil {
			return r.end(true, err)
		}
		layout.RowSets = left
		r.add([][]byte{[]byte(f.name), append(list, ']'), binary.LittleEndian.AppendUint64(nil, uint64(size)),
			strconv.AppendFloat(nil, rounded(c.Quality, 4), 'g', -1, 64), []byte(c.Why)}, 5)
		if err := r.write(); err != nil {
			return r.end(true, err)
		}
	}
}
