package flags

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/figures"
	"github.com/oribi-db/oribi/internal/nearest"
	"github.com/oribi-db/oribi/schema"
)

// Policy are the flags that choose a compaction policy.
type Policy struct {
	Name, size string
	DryRun     bool

	Policy compaction.Policy // nil = none
	Budget int64
}

// Add adds the flags.
func (f *Policy) Add(c *cobra.Command) {
	c.Flags().StringVar(&f.Name, "policy", "",
		"merge what a policy picks until it picks nothing: none, overlap, budgeted, tiered, or leveled")
	f.AddBudget(c)
	c.Flags().BoolVar(&f.DryRun, "dry-run", false,
		"print what --policy picks of the rowsets on disk, one line per merge, and change nothing")
}

// AddBudget adds the flag of the budget.
func (f *Policy) AddBudget(c *cobra.Command) {
	c.Flags().StringVar(&f.size, "budget", "256MB",
		"how much a merge of --policy should rewrite at most: an integer and B, KB, MB, or GB, in powers of 1024")
}

// Parse checks the flags.
func (f *Policy) Parse(cmd *cobra.Command) (err error) {
	if f.Name == "" {
		for _, flag := range []string{"budget", "dry-run"} {
			if cmd.Flags().Changed(flag) {
				return exit.Usage(fmt.Errorf("--%s needs --policy", flag))
			}
		}
		return nil
	}
	if cmd.Flags().Changed("kind") {
		return exit.Usage(errors.New("--kind and --policy exclude each other"))
	}
	policies := compaction.Named()
	if f.Policy = policies[f.Name]; f.Policy == nil {
		return exit.Usage(fmt.Errorf("--policy: unknown policy %q%s", f.Name, nearest.Hint(f.Name, nearest.Keys(policies))))
	}
	if f.Budget, err = figures.ParseSize(f.size); err != nil {
		return exit.Usage(fmt.Errorf("--budget: %w", err))
	}
	return nil
}

// PrintPicks prints what a policy picks of a layout. A pick after the first is of the rowsets that
// are left: those that the merges before it would write are not known.
func PrintPicks(a *console.Console, layout compaction.Layout, f *Policy, form output.Format) error {
	raw := func(name string) output.Group {
		return output.Group{Columns: []schema.Column{{Name: name, Type: schema.String}}, Raw: true}
	}
	text := func(name string) output.Group {
		return output.Group{Columns: []schema.Column{{Name: name, Type: schema.String}}}
	}
	r := a.Records(form, []output.Group{text("policy"), raw("rowsets"),
		{Columns: []schema.Column{{Name: "bytes", Type: schema.Int64}}}, raw("quality"), text("why")}, "bytes")
	for {
		c := f.Policy.Pick(layout, f.Budget)
		if len(c.RowSets) == 0 {
			return r.End(true, nil)
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
			return r.End(true, err)
		}
		layout.RowSets = left
		r.Add([][]byte{[]byte(f.Name), append(list, ']'), binary.LittleEndian.AppendUint64(nil, uint64(size)),
			strconv.AppendFloat(nil, console.Rounded(c.Quality, 4), 'g', -1, 64), []byte(c.Why)}, 5)
		if err := r.Write(); err != nil {
			return r.End(true, err)
		}
	}
}
