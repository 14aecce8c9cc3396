package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi/cmd/oribi/internal/output"
	"github.com/oribi-db/oribi/cmd/oribi/internal/progress"
	"github.com/oribi-db/oribi/lab"
	"github.com/oribi-db/oribi/schema"
)

func (a *app) labRun() *cobra.Command {
	return a.verb("run SPEC OUT", "Run workloads with compaction policies and write a report",
		func(cmd *cobra.Command, args []string) error {
			spec, err := a.readSpec(args[0])
			if err != nil {
				return err
			}
			bar := a.bar(progress.Options{What: "lab"})
			defer bar.Stop()
			return lab.Run(cmd.Context(), spec, args[1], func(done, of int64) {
				bar.SetTotal(of)
				bar.Set(done)
			})
		})
}

// maxSpecBytes bounds a spec, so that a wrong file is not read into memory.
const maxSpecBytes = 1 << 20

func (a *app) readSpec(name string) (*lab.Spec, error) {
	in, err := a.openInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxSpecBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSpecBytes {
		return nil, usage(fmt.Errorf("%s: longer than %d bytes", name, maxSpecBytes))
	}
	spec, err := lab.ParseSpec(text)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", name, err))
	}
	return spec, nil
}

func (a *app) labPolicies() *cobra.Command {
	return a.labList("policies", "List the compaction policies", lab.Policies)
}

func (a *app) labWorkloads() *cobra.Command {
	return a.labList("workloads", "List the workloads of experiments", lab.Workloads)
}

func (a *app) labList(use, short string, list func() []lab.About) *cobra.Command {
	var format string
	c := a.verb(use, short, func(*cobra.Command, []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		r := a.records(form,
			[]output.Group{{Columns: []schema.Column{{Name: "name", Type: schema.String},
				{Name: "about", Type: schema.String}}}})
		for _, e := range list() {
			r.add([][]byte{[]byte(e.Name), []byte(e.About)}, 2)
			if err := r.write(); err != nil {
				return r.end(true, err)
			}
		}
		return r.end(true, nil)
	})
	formatFlag(c, &format)
	return c
}

func (a *app) labScore() *cobra.Command {
	var format string
	var f policyFlags
	c := a.verb("score LAYOUT", "Print what a policy picks of a layout: lines of size in MB, first key, last key, "+
		"separated by tabs", func(cmd *cobra.Command, args []string) error {
		form, err := a.format(format)
		if err != nil {
			return err
		}
		if f.name == "" {
			return usage(errors.New("--policy: want none, overlap, budgeted, tiered, or leveled"))
		}
		if err := f.parse(cmd); err != nil {
			return err
		}
		in, err := a.openInput(args[0])
		if err != nil {
			return err
		}
		defer in.Close()
		layout, err := lab.ReadLayout(in, args[0])
		if err != nil {
			return err
		}
		scored, err := lab.Score(layout, f.policy, f.budget)
		if err != nil {
			return err
		}
		number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
		var record fields
		record.text("policy", f.name)
		record.plain("budget_mb", number(float64(f.budget)/(1<<20)))
		record.plain("picked", len(scored.Choice.RowSets))
		record.plain("size_mb", number(float64(scored.Bytes)/(1<<20)))
		record.plain("quality", number(rounded(scored.Choice.Quality, 6)))
		record.plain("seconds", number(rounded(scored.Elapsed.Seconds(), 6)))
		return a.printFields(&record, form)
	})
	formatFlag(c, &format)
	c.Flags().StringVar(&f.name, "policy", "overlap", "policy: none, overlap, budgeted, tiered, or leveled")
	f.addBudget(c)
	return c
}
