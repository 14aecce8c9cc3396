package lab

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/oribi-db/oribi/internal/nearest"
)

// limits are the least and the greatest value of the fields that are numbers; with above, the least
// value itself is excluded.
var limits = map[string]struct {
	least, most float64
	above       bool
}{
	"flush_bytes":   {1 << 10, 1 << 36, false},
	"rowset_bytes":  {1 << 10, 1 << 36, false},
	"rewrite_ratio": {0, 1e6, false},
	"budget":        {1, 1 << 62, false},
	"keys":          {1, 1e8, false},
	"operations":    {1, 1e8, false},
	"value_bytes":   {1, 64 << 10, false},
	"history":       {1, 1e8, false},
	"theta":         {0, 10, true},
	"hot":           {0, 1, true},
	"late":          {0, 0.5, false},
	"series":        {1, 1e5, false},
	"versions":      {2, 1000, false},
	"merges":        {1, 1e6, false},
	"depth":         {2, 1e6, false},
	"runs":          {2, 1e6, false},
	"ratio":         {1.5, 1000, false},
	"small_rowsets": {-1, 1e6, false},
	"min_quality":   {0, 1e6, true},
}

// maxExperiments is the greatest number of experiments of a spec: their results are kept in memory.
const maxExperiments = 1000

// inRange reports what is wrong with the value of a field.
func inRange(name string, field any) error {
	limit, limited := limits[name]
	if !limited {
		return nil
	}
	var x float64
	var shown any
	switch f := field.(type) {
	case *int64:
		x, shown = float64(*f), *f
	case *Size:
		x, shown = float64(*f), *f
	case *float64:
		x, shown = *f, *f
	}
	if x < limit.least || x > limit.most || limit.above && x == limit.least || math.IsNaN(x) {
		from := "at least %v"
		if limit.above {
			from = "above %v"
		}
		if _, size := field.(*Size); size {
			return fmt.Errorf("%v: want "+from+", at most %v", shown, Size(limit.least), Size(limit.most))
		}
		return fmt.Errorf("%v: want "+from+", at most %v", shown, limit.least, limit.most)
	}
	return nil
}

// setDefault sets a field of value 0.
func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// fill fills in the defaults.
func (s *Spec) fill() {
	setDefault(&s.Engine, Simulated)
	setDefault(&s.FlushBytes, 1<<20)
	setDefault(&s.RowSetBytes, 1<<20)
	s.Workloads, s.Policies = slices.Clone(s.Workloads), slices.Clone(s.Policies)
	for i := range s.Workloads {
		s.Workloads[i].fill()
	}
	for i := range s.Policies {
		p := &s.Policies[i]
		setDefault(&p.Label, p.Name)
		setDefault(&p.Budget, 16<<20)
	}
}

func (w *Workload) fill() {
	setDefault(&w.Label, w.Name)
	if w.Name == "replay" {
		if w.Events == "" {
			setDefault(&w.Merges, 100)
		}
		return
	}
	if w.Name == "versions" {
		setDefault(&w.Keys, 10_000)
		setDefault(&w.Versions, 8)
		setDefault(&w.ValueBytes, 100)
		setDefault(&w.History, 2*w.Keys*w.Versions)
		return
	}
	setDefault(&w.Keys, 100_000)
	setDefault(&w.Operations, 200_000)
	setDefault(&w.ValueBytes, 100)
	switch w.Name {
	case "zipf":
		setDefault(&w.Theta, 0.99)
	case "hot-updates":
		setDefault(&w.Hot, 0.1)
	case "time-series":
		setDefault(&w.Series, 1)
	case "old-deletes":
		setDefault(&w.History, max(1, w.Operations/10))
	}
}

// check reports the first fault of a spec whose defaults are filled in.
func (s *Spec) check() error {
	if s.Engine != Simulated && s.Engine != Real {
		return fmt.Errorf(`engine: %q: want "simulated" or "real"`, s.Engine)
	}
	if err := rangesOf("", s.fields()); err != nil {
		return err
	}
	if len(s.Workloads) == 0 {
		return errors.New("workloads: want at least one")
	}
	if len(s.Policies) == 0 {
		return errors.New("policies: want at least one")
	}
	if n := len(s.Workloads) * len(s.Policies); n > maxExperiments {
		return fmt.Errorf("policies: %d experiments (workloads times policies): want at most %d", n, maxExperiments)
	}
	labels := map[string]string{}
	for i := range s.Workloads {
		at := fmt.Sprintf("workloads[%d]", i)
		if err := s.Workloads[i].check(at, s.Engine); err != nil {
			return err
		}
		if err := label(labels, at, s.Workloads[i].Label); err != nil {
			return err
		}
	}
	clear(labels)
	for i := range s.Policies {
		at := fmt.Sprintf("policies[%d]", i)
		if err := s.Policies[i].check(at); err != nil {
			return err
		}
		if err := label(labels, at, s.Policies[i].Label); err != nil {
			return err
		}
	}
	return nil
}

// label reports a label that two runs would share.
func label(seen map[string]string, at, label string) error {
	if first, known := seen[label]; known {
		return fmt.Errorf("%s.label: %s has the label %q too: want different labels", at, first, label)
	}
	seen[label] = at
	return nil
}

// rangesOf checks the numbers among fields. Zero is the default of a field that may be left out.
func rangesOf(at string, fields map[string]any) error {
	for _, name := range nearest.Keys(fields) {
		if isZero(fields[name]) {
			continue
		}
		if err := inRange(name, fields[name]); err != nil {
			return fmt.Errorf("%s: %w", place(at, name), err)
		}
	}
	return nil
}

func (w *Workload) check(at string, engine Engine) error {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.Name == w.Name })
	if i < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return fmt.Errorf("%s.name: unknown workload %q%s", at, w.Name, nearest.Hint(w.Name, names))
	}
	if name := unused(w.fields(), append([]string{"name", "label"}, kinds[i].fields...)); name != "" {
		return fmt.Errorf("%s.%s: the workload %s has no such field", at, name, w.Name)
	}
	if w.Name == "versions" && engine != Real {
		return fmt.Errorf(`%s: versions reads rows: want the engine "real"`, at)
	}
	if w.Name == "replay" {
		switch {
		case (w.Layout == "") == (w.Events == ""):
			return fmt.Errorf("%s: replay: want either a layout or events", at)
		case engine == Real:
			return fmt.Errorf(`%s: replay has no rows: want the engine "simulated"`, at)
		case w.Events != "" && w.Merges != 0:
			return fmt.Errorf("%s.merges: only with a layout", at)
		case w.Layout != "" && w.Table != "":
			return fmt.Errorf("%s.table: only with events", at)
		}
	}
	return rangesOf(at, w.fields())
}

func (p *Policy) check(at string) error {
	used, known := options[p.Name]
	if !known {
		return fmt.Errorf("%s.name: unknown policy %q%s", at, p.Name, nearest.Hint(p.Name, nearest.Keys(options)))
	}
	if name := unused(p.fields(), append([]string{"name", "label", "budget"}, used...)); name != "" {
		return fmt.Errorf("%s.%s: the policy %s has no such field", at, name, p.Name)
	}
	if err := rangesOf(at, p.fields()); err != nil {
		return err
	}
	if _, err := p.policy(); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}
