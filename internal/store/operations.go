package store

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
)

// list returns the operations that could run, those on tables only if tables is set. The caller
// holds b.mu.
func (b *Background) list(now time.Time, tables bool) (ops []operation) {
	if now.Sub(b.looked) >= historyAfter {
		b.looked = now
		for _, w := range b.tables {
			w.seen = 0
			clear(w.futile)
		}
	}
	b.owned = 0
	if tables {
		current := b.w.core.sorted()
		b.forgetDropped(current)
		for _, t := range current {
			ops = append(ops, b.listTable(t, now)...)
		}
		ops = append(ops, b.listReclaim()...)
	}
	ops = append(ops, b.listLogGC(tables)...)
	for i := range ops {
		op := &ops[i]
		op.Blocked = b.backoff.Delayed(maintenance.Job{Kind: op.Kind, Table: op.Table}, now) ||
			op.table != nil && (b.tables[op.Table].futile[op.Kind] == op.version ||
				!op.table.MayRun(compaction.Kind(op.Kind), op.rowsets())) ||
			op.table == nil && b.counts.Of(op.Kind).Running > 0
	}
	return ops
}

// joinFlushes makes one operation of flushes of small tables that are due for the same reason: memory
// is short, the log is long, or they are old. While the log is long, a table joins if it keeps more
// than half of what the log may have: it would be next. The operation frees, costs, and gains as much as
// all of them, so it comes before each of the others, which remain in ops. The caller holds b.mu.
func (b *Background) joinFlushes(s maintenance.State, ops []operation) {
	var small []int
	short, long := s.Memory > s.SoftMemory, false
	for i := range ops {
		o := &ops[i]
		if o.Kind == maintenance.Flush && !o.Blocked && o.Memory < jointShare && !b.tables[o.Table].apart {
			small = append(small, i)
			long = long || o.Log >= s.LogTarget
		}
	}
	small = slices.DeleteFunc(small, func(i int) bool {
		return !short && ops[i].Gain <= 0 && !(long && ops[i].Log >= s.LogTarget/2)
	})
	if len(small) < 2 {
		return
	}
	slices.SortFunc(small, func(i, j int) int { return cmp.Compare(ops[j].Log, ops[i].Log) })
	all := &ops[small[0]]
	for _, i := range small[1:] {
		o := &ops[i]
		if len(all.joined)+2 > jointTables || all.Memory+o.Memory > jointBytes {
			break
		}
		all.joined = append(all.joined, o.table)
		all.Memory, all.Cost, all.Gain = all.Memory+o.Memory, all.Cost+o.Cost, all.Gain+o.Gain
	}
}

// listLogGC returns the removal of log segments. Without tables, it waits until it is time to
// confirm the metadata.
func (b *Background) listLogGC(tables bool) []operation {
	free, skips := b.w.UselessLog(), int64(0)
	if tables {
		skips = b.w.Skippable()
	}
	if !b.confirmDue && (free+skips <= 0 || !tables) {
		return nil
	}
	return []operation{{skip: skips > 0, Operation: maintenance.Operation{Kind: maintenance.LogGC,
		Log: max(free+skips, 1)}}}
}

// listReclaim returns the emptying of the sparsest container.
func (b *Background) listReclaim() []operation {
	if !b.sparse {
		return nil
	}
	live, used := b.w.core.Blocks.Sparse()
	if used == 0 {
		b.sparse = false
		return nil
	}
	return []operation{{Operation: maintenance.Operation{Kind: maintenance.Reclaim, Data: used - live, Cost: live}}}
}

// forgetDropped removes what is known of tables that no longer exist.
func (b *Background) forgetDropped(current []*Table) {
	if len(b.tables) <= len(current) {
		return // those created since the last call are not known yet
	}
	known := make(map[uint32]bool, len(current))
	for _, t := range current {
		known[t.Number] = true
	}
	for number := range b.tables {
		if !known[number] {
			delete(b.tables, number)
			b.backoff.Forget(number)
		}
	}
}

// of returns what is known of a table.
func (b *Background) of(t *Table) *tableWork {
	w := b.tables[t.Number]
	if w == nil {
		w = &tableWork{damaged: map[uint64]bool{}, futile: map[maintenance.Kind]uint64{}, first: lsn.Max}
		b.tables[t.Number] = w
	}
	return w
}

// listTable returns the operations on a table.
func (b *Background) listTable(t *Table, now time.Time) []operation {
	w, version := b.of(t), t.Version()
	ops := b.listFlushes(t, w, now)
	if w.seen != version || !w.idleAt.IsZero() && !now.Before(w.idleAt) {
		infos, err := t.Deltas(w.isDamaged)
		if err != nil {
			return nil // the table was dropped or the store closed
		}
		var idle time.Duration
		w.deltas, idle = compaction.PickDeltas(infos)
		w.seen, w.idleAt = version, time.Time{}
		if idle > 0 {
			w.idleAt = now.Add(idle)
		}
	}
	for _, c := range w.deltas {
		ops = append(ops, operation{deltas: c,
			Operation: maintenance.Operation{Kind: maintenance.Kind(c.Kind), Gain: c.Quality, Cost: c.Bytes,
				Data: c.Frees}})
	}
	if w.planned == version && len(w.plan.RowSets) > 0 && !w.merging {
		ops = append(ops, operation{plan: w.plan,
			Operation: maintenance.Operation{Kind: maintenance.Merge, Gain: w.plan.Gain, Cost: 2 * w.plan.Bytes}})
	}
	for i := range ops {
		ops[i].table, ops[i].version, ops[i].Table = t, version, t.Number
	}
	return ops
}

// listFlushes returns the flush and the delta flush of a table.
func (b *Background) listFlushes(t *Table, w *tableWork, now time.Time) (ops []operation) {
	s := b.w
	u := t.Unflushed()
	b.owned += u.Owned
	if u.Gone != w.gone { // which is no new layout
		w.gone, w.seen = u.Gone, 0
		delete(w.futile, maintenance.UndoGC)
	}
	first := min(u.FirstRow, u.FirstChange)
	if first != w.first {
		w.first, w.since = first, now
	}
	if first == lsn.Max {
		return nil
	}
	memory := u.Rows + u.Changes
	gain := maintenance.FlushGain(memory, b.o.FlushBytes, now.Sub(w.since))
	ops = append(ops, operation{Operation: maintenance.Operation{Kind: maintenance.Flush, Memory: memory, Cost: memory,
		Log: s.Log.BytesFrom(first), Gain: gain, Full: u.Rows >= b.o.FlushBytes}})
	if u.FirstChange != lsn.Max {
		ops = append(ops, operation{Operation: maintenance.Operation{Kind: maintenance.DeltaFlush, Memory: u.Changes,
			Cost: u.Changes,
			Log: s.Log.BytesFrom(u.FirstChange) - s.Log.BytesFrom(max(u.FirstRow,
				u.FirstChange)), Full: s.core.Budget.UsedBy(budget.Delta)-u.Owned >= s.deltaLimit()}})
	}
	return ops
}

// beginPlanning returns the tables of which the policy has not seen the present layout. If there
// are any, it counts a rewriting operation that runs, and the caller calls plan.
func (b *Background) beginPlanning() (tables []*Table) {
	if b.planning {
		return nil
	}
	for _, t := range b.w.core.sorted() {
		w := b.of(t)
		if w.planned != t.Version() && !w.merging && t.MayRun(compaction.Merge, nil) {
			w.merging = true
			tables = append(tables, t)
		}
	}
	if len(tables) > 0 {
		b.planning = true
		b.rewriting++
	}
	return tables
}

// plan asks the policy what to merge in each of the tables that beginPlanning has returned.
func (b *Background) plan(tables []*Table) {
	for _, t := range tables {
		b.mu.Lock()
		w := b.of(t)
		damaged := make(map[uint64]bool, len(w.damaged))
		for id := range w.damaged {
			damaged[id] = true
		}
		b.mu.Unlock()
		version := t.Version()
		var p tablet.MergePlan
		var hidden bool
		var err error
		if b.ctx.Err() == nil {
			p, hidden, err = w.merges.Plan(t.Tablet, b.o.Policy, min(maxCompaction, b.w.core.Options.MemoryLimit),
				func(id uint64) bool { return damaged[id] })
		}
		if err != nil && !errors.Is(err, fault.ErrNoTable) && !errors.Is(err, fault.ErrClosed) {
			b.w.core.Options.Logger.Error("policy failed", slog.String("table", t.Name()), slog.Any("err", err))
		}
		b.mu.Lock()
		// after an error the policy is asked again when the layout has changed
		w.plan, w.planned, w.hidden, w.merging = p, version, hidden, false
		b.mu.Unlock()
	}
	b.mu.Lock()
	b.planning = false
	b.rewriting--
	b.end()
	b.mu.Unlock()
}

// perform runs an operation and returns the number of bytes that it wrote to new files, or for
// LogGC the number of bytes that it removed.
func (b *Background) perform(ctx context.Context, op operation) (bytes int64, err error) {
	switch op.Kind {
	case maintenance.Flush:
		if len(op.joined) > 0 {
			tables := []*tablet.Tablet{op.table.Tablet}
			for _, t := range op.joined {
				tables = append(tables, t.Tablet)
			}
			return b.w.FlushAll(ctx, tables)
		}
		r, err := op.table.Flush(ctx)
		return r.BytesWritten, err
	case maintenance.DeltaFlush:
		r, err := op.table.FlushDeltas(ctx)
		return r.BytesWritten, err
	case maintenance.Minor, maintenance.Major, maintenance.Recompress, maintenance.UndoGC:
		return op.table.CompactDeltas(ctx, op.deltas)
	case maintenance.Merge:
		b.mu.Lock()
		w := b.of(op.table)
		b.mu.Unlock()
		return w.merges.Run(ctx, op.table.Tablet, op.plan)
	case maintenance.Reclaim:
		if b.w.core.throttle != nil {
			if err := b.w.core.throttle(ctx, op.Cost); err != nil {
				return 0, err
			}
		}
		_, err := b.w.core.Blocks.Rewrite(ctx)
		return op.Cost, err
	default: // maintenance.LogGC
		before := b.w.Log.Bytes()
		if op.skip {
			if err := b.w.SkipLog(); err != nil {
				return 0, err
			}
		}
		err := b.w.Confirm()
		return max(0, before-b.w.Log.Bytes()), err
	}
}
