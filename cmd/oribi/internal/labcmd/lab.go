// Package labcmd has the verbs of "oribi lab".
package labcmd

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/console"
	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/cmd/oribi/internal/flags"
	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/cmd/oribi/internal/verb"
	"github.com/oribi-db/oribi/lab"
	"github.com/oribi-db/oribi/schema"
)

// Run is the verb "oribi lab run".
func Run(a *console.Console) *cobra.Command {
	return verb.New(a, "run SPEC OUT", "Run workloads with compaction policies and write a report",
		func(cmd *cobra.Command, args []string) error {
			spec, err := readSpec(a, args[0])
			if err != nil {
				return err
			}
			bar := a.Bar(progress.Options{What: "lab"})
			defer bar.Stop()
			return lab.Run(cmd.Context(), spec, args[1], func(done, of int64) {
				bar.SetTotal(of)
				bar.Set(done)
			})
		})
}

// maxSpecBytes bounds a spec, so that a wrong file is not read into memory.
const maxSpecBytes = 1 << 20

func readSpec(a *console.Console, name string) (*lab.Spec, error) {
	in, err := a.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxSpecBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSpecBytes {
		return nil, exit.Usage(fmt.Errorf("%s: longer than %d bytes", name, maxSpecBytes))
	}
	spec, err := lab.ParseSpec(text)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", name, err))
	}
	return spec, nil
}

// Policies is the verb "oribi lab policies".
func Policies(a *console.Console) *cobra.Command {
	return labList(a, "policies", "List the compaction policies", lab.Policies)
}

// Workloads is the verb "oribi lab workloads".
func Workloads(a *console.Console) *cobra.Command {
	return labList(a, "workloads", "List the workloads of experiments", lab.Workloads)
}

func labList(a *console.Console, use, short string, list func() []lab.About) *cobra.Command {
	return verb.Printing(a, use, short, func(_ *cobra.Command, _ []string, form output.Format) error {
		r := a.Records(form,
			[]output.Group{{Columns: []schema.Column{{Name: "name", Type: schema.String},
				{Name: "about", Type: schema.String}}}})
		for _, e := range list() {
			r.Add([][]byte{[]byte(e.Name), []byte(e.About)}, 2)
			if err := r.Write(); err != nil {
				return r.End(true, err)
			}
		}
		return r.End(true, nil)
	})
}

// Score is the verb "oribi lab score".
func Score(a *console.Console) *cobra.Command {
	var f flags.Policy
	c := verb.Printing(a, "score LAYOUT",
		"Print what a policy picks of a layout: lines of size in MB, first key, last key, "+
			"separated by tabs", func(cmd *cobra.Command, args []string, form output.Format) error {
			if f.Name == "" {
				return exit.Usage(errors.New("--policy: want none, overlap, budgeted, tiered, or leveled"))
			}
			if err := f.Parse(cmd); err != nil {
				return err
			}
			in, err := a.OpenInput(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			layout, err := lab.ReadLayout(in, args[0])
			if err != nil {
				return err
			}
			scored, err := lab.Score(layout, f.Policy, f.Budget)
			if err != nil {
				return err
			}
			number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
			var record console.Fields
			record.Text("policy", f.Name)
			record.Plain("budget_mb", number(float64(f.Budget)/(1<<20)))
			record.Plain("picked", len(scored.Choice.RowSets))
			record.Plain("size_mb", number(float64(scored.Bytes)/(1<<20)))
			record.Plain("quality", number(console.Rounded(scored.Choice.Quality, 6)))
			record.Plain("seconds", number(console.Rounded(scored.Elapsed.Seconds(), 6)))
			return a.PrintFields(&record, form)
		})
	c.Flags().StringVar(&f.Name, "policy", "overlap", "policy: none, overlap, budgeted, tiered, or leveled")
	f.AddBudget(c)
	return c
}
