package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/oribi-db/oribi/compaction"
)

// eventReplay adds the rowsets that the flushes and ingests of an event log wrote, in their order.
// The merges of the log are left out: the policy's merges are done instead. Redos that were flushed
// go to the rowsets that have the same keys now. The time of the samples is the number of these
// events.
type eventReplay struct {
	events []compaction.Event
	rowset int64                   // size of a rowset
	first  []compaction.RowSetInfo // rowsets at the beginning of the log
}

// readEvents reads the flushes of one table from an event log. Without a name, the log must be of
// one table.
func readEvents(name, table string) (*eventReplay, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := new(eventReplay)
	begun := false
	for e, err := range compaction.ReadEvents(f) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if e.Kind == compaction.Stall || e.Begin || e.Err != nil {
			continue
		}
		if table == "" {
			table = e.Table
		}
		if e.Table != table {
			continue
		}
		if !begun {
			begun = true
			r.first = ordered(e.Before.RowSets)
		}
		r.rowset = max(r.rowset, e.After.RowSetBytes)
		if e.Outputs = ordered(e.Outputs); e.Kind == compaction.Flush || e.Kind == compaction.Ingest ||
			e.Kind == compaction.DeltaFlush {
			e.Before, e.After = compaction.Layout{}, compaction.Layout{}
			r.events = append(r.events, e)
		}
	}
	if len(r.events) == 0 {
		if table != "" {
			return nil, fmt.Errorf("%s: no flush of the table %q", name, table)
		}
		return nil, fmt.Errorf("%s: no flushes", name)
	}
	return r, nil
}

// ordered returns the rowsets that have keys, by their first key. A log from elsewhere may have
// them in any order.
func ordered(sets []compaction.RowSetInfo) (out []compaction.RowSetInfo) {
	for _, set := range sets {
		if bytes.Compare(set.MinKey, set.MaxKey) <= 0 {
			out = append(out, set)
		}
	}
	slices.SortStableFunc(out, func(a, b compaction.RowSetInfo) int { return bytes.Compare(a.MinKey, b.MinKey) })
	return out
}

func (r *eventReplay) steps() int64 { return int64(len(r.events)) }

func (r *eventReplay) prepare(s *simulation) {
	s.costs = costs{}
	if r.rowset > 0 {
		s.rowset = float64(r.rowset)
	}
	var sets []*simSet
	for i := range r.first {
		sets = append(sets, s.replayed(&r.first[i]))
	}
	s.replace(nil, sets)
}

// replayed returns a rowset of a log.
func (s *simulation) replayed(r *compaction.RowSetInfo) *simSet {
	s.id++
	return &simSet{id: s.id, min: r.MinKey, max: r.MaxKey, rows: r.Rows, live: r.LiveRows, base: float64(r.Bytes)}
}

func (r *eventReplay) run(ctx context.Context, x *experiment, done func(int64)) error {
	sim := x.table.(*simulation)
	for i := range r.first {
		x.flushed += r.first[i].Bytes
	}
	x.written, x.credit = x.flushed, x.spec.RewriteRatio*float64(x.flushed)
	for i := range r.events {
		sim.replay(&r.events[i])
		x.step++
		if err := x.compactAndSample(ctx); err != nil {
			return err
		}
		done(1)
	}
	return nil
}

// replay adds what a flush of a log wrote.
func (s *simulation) replay(e *compaction.Event) {
	s.ops++
	if e.Kind == compaction.DeltaFlush {
		s.replayDeltas(e)
		return
	}
	var outputs []*simSet
	for i := range e.Outputs {
		outputs = append(outputs, s.replayed(&e.Outputs[i]))
	}
	slices.SortStableFunc(outputs, func(a, b *simSet) int { return bytes.Compare(a.min, b.min) })
	s.replace(nil, outputs)
	s.event(e.Kind, e.Why, nil, outputs, e.RowsWritten, e.BytesWritten)
}

// replayDeltas divides the bytes of a delta flush among the rowsets that now have the keys of those
// that it changed, by their sizes.
func (s *simulation) replayDeltas(e *compaction.Event) {
	var changed []*simSet
	total := 0.0
	for _, set := range s.sets {
		overlaps := func(r compaction.RowSetInfo) bool {
			return bytes.Compare(set.min, r.MaxKey) <= 0 && bytes.Compare(r.MinKey, set.max) <= 0
		}
		if slices.ContainsFunc(e.Outputs, overlaps) {
			changed = append(changed, set)
			total += set.base
		}
	}
	for _, set := range changed {
		set.redos++
		if total > 0 {
			set.redoBytes += float64(e.BytesWritten) * set.base / total
		}
		set.updates, set.changed = set.updates+1, s.ops
		s.touch(set)
	}
	s.event(e.Kind, e.Why, nil, changed, 0, e.BytesWritten)
}
