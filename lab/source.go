package lab

import (
	"context"
	"os"

	"github.com/oribi-db/oribi/compaction"
)

// source is where the changes of a table come from. It is used by several runs at once.
type source interface {
	steps() int64          // operations or merges, at most
	prepare(s *simulation) // before a run
	run(ctx context.Context, x *experiment, done func(n int64)) error
}

// source returns the source of a workload.
func (w *Workload) source() (source, error) {
	switch {
	case w.Name == "versions":
		return versions{w}, nil
	case w.Name != "replay":
		return operations{w}, nil
	case w.Events != "":
		return readEvents(w.Events, w.Table)
	}
	f, err := os.Open(w.Layout)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := ReadLayout(f, w.Layout)
	return &layoutReplay{l, w.Merges}, err
}

// operations are inserts, updates and deletes.
type operations struct{ w *Workload }

func (o operations) steps() int64        { return o.w.Operations }
func (o operations) prepare(*simulation) {}

func (o operations) run(ctx context.Context, x *experiment, done func(int64)) error {
	w := o.w
	var ops stream
	for _, k := range kinds {
		if k.Name == w.Name {
			ops = k.stream(w, newRandom(x.spec.Seed, "operations"))
		}
	}
	unflushed, reported := int64(0), int64(0)
	for range w.Operations {
		if x.step%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next := ops.next()
		if err := x.table.apply(next); err != nil {
			return err
		}
		x.touch(next.key)
		unflushed += 8
		if next.kind != opDelete {
			unflushed += w.ValueBytes
		}
		if x.step++; unflushed >= int64(x.spec.FlushBytes) || x.step == w.Operations {
			unflushed = 0
			if err := x.flush(ctx); err != nil {
				return err
			}
			done(x.step - reported)
			reported = x.step
		}
	}
	return nil
}

// touch adds a key to the recent ones.
func (x *experiment) touch(key int64) {
	if len(x.recent) < recentKeys {
		x.recent = append(x.recent, keyOf(key))
	} else {
		x.recent[x.step%recentKeys] = keyOf(key)
	}
}

// layoutReplay begins with a layout, whose rowsets are merged one choice after the other. The time
// of the samples is the number of merges.
type layoutReplay struct {
	layout compaction.Layout
	merges int64
}

func (l *layoutReplay) steps() int64 { return l.merges }

func (l *layoutReplay) prepare(s *simulation) {
	sets := make([]*simSet, 0, len(l.layout.RowSets))
	for i := range l.layout.RowSets {
		r := &l.layout.RowSets[i]
		sets = append(sets, &simSet{id: r.ID, min: r.MinKey, max: r.MaxKey, base: float64(r.Bytes)})
		s.rowset = max(s.rowset, float64(r.Bytes))
	}
	s.costs = costs{}
	s.id = uint64(len(sets))
	s.replace(nil, sets)
}

func (l *layoutReplay) run(ctx context.Context, x *experiment, done func(int64)) error {
	for i := range l.layout.RowSets {
		x.flushed += l.layout.RowSets[i].Bytes
	}
	x.written, x.credit = x.flushed, x.spec.RewriteRatio*float64(x.flushed)
	x.sample()
	for range l.merges {
		before := x.merges
		if err := x.mergeAll(ctx, 1); err != nil {
			return err
		}
		if x.merges == before {
			break
		}
		x.step = x.merges
		x.flushes++
		if x.flushes%x.every == 0 {
			x.sample()
		}
		done(1)
	}
	done(l.merges - x.merges)
	return nil
}
