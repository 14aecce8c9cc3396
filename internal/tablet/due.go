package tablet

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/delta"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/rewrite"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// This file has the questions that background work asks a table: which operations are due, what
// they would cost, and whether they may run now.

// Version returns a number that changes with each change of the table's rowsets, schema or
// MemRowSets.
func (t *Tablet) Version() uint64 { return t.version.Load() }

// MayRun reports whether a job of a kind that reads some rowsets could begin now, without waiting
// for other jobs of the table. The answer may be outdated when the caller has it: then the job
// waits.
func (t *Tablet) MayRun(kind compaction.Kind, rowsets []uint64) bool {
	flush := kind == compaction.Flush || kind == compaction.DeltaFlush
	return t.claims.free(flush, kind == compaction.UndoGC, rowsets)
}

// Unflushed is the size of the data that a flush which begins now would write.
type Unflushed struct {
	Rows, Changes         int64   // bytes of the MemRowSets and of delta mem stores
	FirstRow, FirstChange lsn.LSN // the lowest LSNs in them; lsn.Max = none

	Owned int64 // bytes of the delta mem stores that a flush leaves to compactions
	Gone  int   // rowsets without a row that a read sees
}

// first returns the lowest timestamp that can be read.
func (t *Tablet) first() mvcc.Timestamp {
	r := t.opts.Store.Retained(t, t.Metadata().HistorySec)
	return r.First()
}

// Unflushed describes the memory of the table. It is zero if the table was dropped or closed.
func (t *Tablet) Unflushed() Unflushed {
	u := Unflushed{FirstRow: lsn.Max, FirstChange: lsn.Max}
	st, err := t.acquire()
	if err != nil {
		return u
	}
	defer st.release()
	for _, m := range st.mems {
		u.Rows += m.Bytes()
	}
	owned := t.claims.compactedIDs()
	var changed []*delta.MemStore
	first := t.first()
	for _, d := range st.tree.Sets {
		if d.Dead(mvcc.Everything) && d.Dead(mvcc.AsOf(first)) {
			u.Gone++
		}
		switch m := d.Tracker().Mem; {
		case m.Empty():
		case owned[d.Metadata().ID]:
			u.Owned += m.Bytes()
		default:
			u.Changes += m.Bytes()
			changed = append(changed, m)
		}
	}
	u.FirstRow, u.FirstChange = firstLSN(st.mems, nil), firstLSN(nil, changed)
	return u
}

// leastFold is how many bytes the redos of a rowset have at least when they are folded. A page of them
// is read in less time than the metadata commit of the fold takes.
const leastFold = 4 << 10

// Deltas returns the descriptions of the rowsets from which the rules choose delta compactions,
// without those that compactions own or that skip reports. nil skips none.
func (t *Tablet) Deltas(skip func(id uint64) bool) (infos []compaction.DeltaInfo, err error) {
	st, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer st.release()
	row := t.Metadata()
	ages := rewrite.Ages{First: t.first(), Now: t.opts.Store.Now(), Opened: t.opened}
	if ages.Now > 0 && t.opts.RecompressAfter >= 0 {
		ages.Rest = mvcc.FromTime(ages.Now.Time().Add(-t.opts.RecompressAfter))
	}
	owned := t.claims.compactedIDs()
	for _, d := range st.tree.Sets {
		s := d.State()
		if !owned[s.Meta.ID] && (skip == nil || !skip(s.Meta.ID)) {
			info := rewrite.DescribeDeltas(s, d.Schema, ages, row.RowFile, t.opts.Store.BlockBytes)
			if info.RedoBytes < leastFold {
				info.Updated = nil
			}
			info.Gone = info.Gone || st.schema.allExpired(d, ages.First)
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// MergePlan is a merge that a policy has picked. The zero plan is to merge nothing.
type MergePlan struct {
	compaction.Choice
	Gain  float64 // by how much it improves reads, above 0
	Bytes int64   // of the rowsets
}

// Merges plans and runs the merges of one table in the background, one at a time, so that they end
// for any policy: a merge that has left neither fewer rowsets nor fewer overlaps is not repeated
// until other rowsets come in, or until many rows are deleted. The zero value is ready to use. It
// is not safe for concurrent use.
type Merges struct {
	series mergeSeries
	// known has the rowsets at the last call of Plan, and the rowsets written since. It is nil
	// before the first call.
	known map[uint64]bool
	live  int64 // live rows when the series began
}

// deletedShare is the share of the live rows that must be deleted for rowsets to be merged again.
const deletedShare = 8

// begin begins a new series if the layout has changed other than by the merges of m.
func (m *Merges) begin(l compaction.Layout) {
	live, fresh := int64(0), m.known == nil
	known := make(map[uint64]bool, len(l.RowSets))
	for i := range l.RowSets {
		r := &l.RowSets[i]
		live += r.LiveRows
		known[r.ID] = true
		fresh = fresh || !m.known[r.ID]
	}
	if fresh || live < m.live-m.live/deletedShare {
		m.series, m.live = newMergeSeries(), live
	}
	m.known = known
}

// Plan asks the policy what to merge. It does not show it rowsets that compactions own or that skip
// reports; hidden reports whether there are any that compactions own. A choice that cannot be
// carried out, and a panic, are sent as the event of a merge that failed, and returned. The policy
// is called without a lock.
func (m *Merges) Plan(t *Tablet, p compaction.Policy, budget int64,
	skip func(id uint64) bool) (plan MergePlan, hidden bool, err error) {
	layout, err := t.layout()
	if err != nil {
		return plan, false, err
	}
	m.begin(layout)
	m.series.observe(layout)
	layout, owned := t.unowned(layout)
	hidden = len(owned) > 0
	layout.RowSets = slices.DeleteFunc(layout.RowSets, func(r compaction.RowSetInfo) bool {
		return skip != nil && skip(r.ID)
	})
	c, err := t.pick(p, layout, budget)
	if err == nil && m.series.repeats(c) { // or the choice is none
		return plan, hidden, nil
	}
	if err == nil {
		err = c.Check(layout)
	}
	if err != nil {
		t.opts.Store.Event(t.refused(c, layout, err))
		return plan, hidden, err
	}
	plan = MergePlan{Choice: c, Gain: c.Worth(layout)}
	for i := range layout.RowSets {
		if slices.Contains(c.RowSets, layout.RowSets[i].ID) {
			plan.Bytes += layout.RowSets[i].Bytes
		}
	}
	return plan, hidden, nil
}

// Run carries out a plan, and returns the number of bytes written. It does nothing if another job
// has replaced one of the rowsets since.
func (m *Merges) Run(ctx context.Context, t *Tablet, plan MergePlan) (bytes int64, err error) {
	err = t.compacting(ctx, plan.RowSets, func() error {
		layout, err := t.layout()
		if err != nil || plan.Check(layout) != nil {
			return err
		}
		e, err := t.mergeSets(ctx, plan.RowSets, plan.Why, true)
		if err != nil {
			return err
		}
		bytes = e.BytesWritten
		m.series.wrote(e)
		for _, a := range e.Added {
			m.known[a.Row.ID] = true
		}
		return nil
	})
	return bytes, err
}

// Damaged returns which of the rowsets of a rewrite that failed with err are damaged: the rowset
// that err names, or else the rowsets in which a check finds damage. The check reads the rowsets in
// full, except row files, which a rewrite does not read. It may find none: then the damage was in
// the files that the rewrite has written, or the bytes were read wrongly once.
func (t *Tablet) Damaged(ctx context.Context, err error, ids []uint64) (damaged []uint64) {
	if !errors.Is(err, fault.ErrCorrupt) {
		return nil
	}
	var e *rowset.ReadError
	if errors.As(err, &e) {
		return []uint64{e.ID}
	}
	err = t.check(ctx, func(id uint64) bool { return slices.Contains(ids, id) },
		func(m *rowset.Metadata, _ block.ID, _ error) { damaged = append(damaged, m.ID) }, nil)
	if err != nil {
		t.opts.Logger.Error("no check for damage", slog.String("table", t.Name()), slog.Any("err", err))
	}
	return damaged
}

// inRowSet returns err as an error of reading a rowset; nil for nil.
func inRowSet(id uint64, err error) error {
	if err == nil {
		return nil
	}
	return &rowset.ReadError{ID: id, Err: err}
}

// mergeInput is a rowset as the input of a merge.
type mergeInput struct {
	*rowset.Histories
	id uint64
}

func (in mergeInput) Next() (*change.Rows, error) {
	rows, err := in.Histories.Next()
	return rows, inRowSet(in.id, err)
}

func (in mergeInput) NextStored() (*rowset.StoredRows, error) {
	rows, err := in.Histories.NextStored()
	return rows, inRowSet(in.id, err)
}

func (in mergeInput) Complete() error { return inRowSet(in.id, in.Histories.Complete()) }
