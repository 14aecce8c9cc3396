package history

import (
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/schema"
)

// Variant is a way of opening a store, laying out its tables, or rewriting them. A history returns
// the same results under every variant.
type Variant struct {
	Name   string
	adapt  func(o *script.Settings)
	column func(c *schema.Column)
	write  func(st *script.Step)
	moves  moves

	rowFiles bool
}

// moves is the schedule of flushes and compactions.
type moves int

const (
	asWritten moves = iota // at the steps of the history
	never
	always // and a flush after each batch
)

// Variants are those under which one history is compared.
func Variants() []Variant {
	background := func(policy string, flush int64) func(*script.Settings) {
		return func(o *script.Settings) { o.Background, o.Policy, o.FlushBytes = true, policy, flush }
	}
	shuffled := func(policy string) func(*script.Settings) {
		return func(o *script.Settings) { o.Background, o.Shuffled, o.Policy, o.FlushBytes = true, true, policy, 1<<13 }
	}
	return []Variant{
		{Name: "unchanged"},
		{Name: "small MemRowSets", adapt: func(o *script.Settings) { o.FlushBytes = 1 << 12 }},
		{Name: "large MemRowSets", adapt: func(o *script.Settings) { o.FlushBytes = 64 << 20 }},
		{Name: "small rowsets", adapt: func(o *script.Settings) { o.RowSetBytes = 1 << 10 }},
		{Name: "large rowsets", adapt: func(o *script.Settings) { o.RowSetBytes = 32 << 20 }},
		// its quarter bounds a write batch
		{Name: "little memory and cache", adapt: func(o *script.Settings) { o.Memory = 64 << 20 }},
		{Name: "much memory and cache", adapt: func(o *script.Settings) { o.Memory = 1 << 30 }},
		{Name: "background work", adapt: background("", 1<<14)},
		{Name: "background work without merges", adapt: background("none", 1<<13)},
		{Name: "background work, merges at depth 2", adapt: background("overlap2", 1<<12)},
		{Name: "background work at random, budgeted merges", adapt: shuffled("budgeted")},
		{Name: "background work at random, tiered merges", adapt: shuffled("tiered")},
		{Name: "background work at random, leveled merges", adapt: shuffled("leveled")},
		{Name: "every batch synced", write: func(st *script.Step) { st.Sync = true }},
		{Name: "no batch synced", write: func(st *script.Step) { st.Sync = false }},
		{Name: "small cblocks", column: func(c *schema.Column) { c.BlockBytes = 512 }},
		{Name: "row files", rowFiles: true},
		{Name: "default columns", column: func(c *schema.Column) {
			c.BlockBytes, c.Encoding, c.Compression = 0, schema.Auto, schema.DefaultCompression
		}},
		{Name: "plain columns under zlib", column: func(c *schema.Column) {
			c.Encoding, c.Compression = schema.Plain, schema.Zlib
		}},
		{Name: "rows never moved", moves: never},
		{Name: "a flush after each batch", moves: always},
	}
}

// Of returns a history adapted to the variant. Crashes are removed, since the surviving batches
// differ between disks.
func (v *Variant) Of(s *script.Script) *script.Script {
	out := &script.Script{Settings: s.Settings}
	if v.adapt != nil {
		v.adapt(&out.Settings)
	}
	for _, st := range s.Steps {
		switch st.Kind {
		case script.Kill, script.Cut, script.Tear:
			st = script.Step{Kind: script.Reopen}
		case script.Create, script.Alter:
			v.relay(&st)
		case script.Flush, script.FlushAll, script.Merge, script.Compact, script.Deltas, script.Minor, script.Major,
			script.Recompress, script.UndoGC, script.Maintain:
			if v.moves == never {
				continue
			}
		case script.Write, script.UpdateWhere, script.DeleteWhere, script.DeleteRange, script.Truncate:
			if v.write != nil {
				v.write(&st)
			}
		}
		if v.moves == never {
			st.During = ""
		}
		out.Steps = append(out.Steps, st)
		switch {
		case v.moves != always:
		case st.Bulk():
			out.Steps = append(out.Steps, script.Step{Kind: script.Flush, Table: st.Table})
		case st.Kind == script.Write && len(st.Ops) > 0:
			out.Steps = append(out.Steps, script.Step{Kind: script.Flush, Table: st.Ops[0].Table})
		}
	}
	return out
}

// relay changes the encodings of columns.
func (v *Variant) relay(st *script.Step) {
	st.RowFile = st.RowFile || v.rowFiles
	if v.column == nil {
		return
	}
	if st.Kind == script.Create {
		columns := slices.Clone(st.Schema.Columns)
		for i := range columns {
			v.column(&columns[i])
		}
		s, err := schema.New(columns, st.Schema.Keys)
		if err != nil {
			panic(err) // invalid variant
		}
		st.Schema = s
	}
	st.Alter = slices.Clone(st.Alter)
	for i := range st.Alter {
		if what := st.Alter[i].What; what == "add" || what == "type" {
			v.column(&st.Alter[i].Add)
		}
	}
}

// EqualAnswers generates the history of a seed, with a counting clock, and runs it under all
// variants. failed is the history of the failing variant.
func EqualAnswers(seed uint64, steps int64) (total Counts, failed *script.Script, err error) {
	o := RandomSettings(seed)
	o.Hybrid, o.History, o.NoCrashes, o.Batch = false, 0, true, 0
	r := Explore(o, func(c Counts) bool { return c.Steps < steps })
	if r.Err != nil {
		return r.Counts, r.Script, r.Err
	}
	return equal(r.Script)
}

// equal runs a history under all variants. Results are compared with the model, and here with each
// other, including the timestamps of batches; the error names the first difference.
func equal(s *script.Script) (total Counts, failed *script.Script, err error) {
	var first []uint64
	for i, v := range Variants() {
		script := v.Of(s)
		r := Run(script)
		total.Add(r.Counts)
		if r.Err != nil {
			return total, script, fmt.Errorf("%s: %w", v.Name, r.Err)
		}
		if i == 0 {
			first = r.answers
		}
		if !slices.Equal(first, r.answers) {
			at := 0
			for at < min(len(first), len(r.answers)) && first[at] == r.answers[at] {
				at++
			}
			return total, script, fmt.Errorf("%s: %d answers, the first that differs is %d of %d", v.Name,
				len(r.answers), at, len(first))
		}
	}
	return total, nil, nil
}

// answered records a result of the store, for comparison with the results of other variants.
func (r *Runner) answered(values ...any) {
	r.answers = append(r.answers, xxh3.HashString(fmt.Sprintln(values...)))
}
