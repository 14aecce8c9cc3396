package lab

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
)

// ReadCost counts the reads of files by scans and lookups as of the time of one version of all
// rows, in a store that was just opened.
type ReadCost struct {
	Stage   string // what was done last: flush, minor, major, merge, undo-gc
	Version int64  // from 1
	Rows    int64  // that the scan returned

	ScanReads, ScanBytes int64 // of a scan of the table
	GetReads, GetBytes   int64 // of reads of VersionGets rows by key
}

// VersionGets is the number of rows that are read by key for a ReadCost.
const VersionGets = 100

// versions writes several versions of all rows, each flushed, and reads each of them: then, and
// after each kind of compaction.
type versions struct{ w *Workload }

func (v versions) steps() int64        { return v.w.Keys * v.w.Versions }
func (v versions) prepare(*simulation) {}

func (v versions) run(ctx context.Context, x *experiment, done func(int64)) error {
	t := x.table.(*realTable)
	var times []mvcc.Timestamp
	for version := range v.w.Versions {
		if err := v.write(ctx, x, version); err != nil {
			return err
		}
		times = append(times, t.last)
		done(v.w.Keys)
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"flush", func() error { return nil }},
		{"minor", func() error { return t.deltas(compaction.MinorDelta, "") }},
		{"major", func() error { return t.deltas(compaction.MajorDelta, "") }},
		{"merge", func() error { return t.table.Compact(ctx) }},
		{"undo-gc", func() error {
			t.ops.Add(v.w.History + 1) // all versions but the newest are older than the history
			times = []mvcc.Timestamp{newest}
			return t.deltas(compaction.UndoGC, "")
		}},
	} {
		if err := s.do(); err != nil {
			return err
		}
		x.step++ // a sample each
		x.sample()
		for i, ts := range times {
			cost, err := t.readCost(ctx, ts, v.w.Keys)
			if err != nil {
				return fmt.Errorf("after %s: %w", s.name, err)
			}
			cost.Stage, cost.Version = s.name, v.w.Versions-int64(len(times)-1-i)
			x.result.Reads = append(x.result.Reads, cost)
		}
	}
	return nil
}

// write inserts all rows, in two rowsets that overlap, or updates all of them.
func (v versions) write(ctx context.Context, x *experiment, version int64) error {
	parts := int64(1)
	if version == 0 {
		parts = 2
	}
	for part := range parts {
		for key := part; key < v.w.Keys; key += parts {
			kind := opUpdate
			if version == 0 {
				kind = opInsert
			}
			if err := x.table.apply(op{kind, key}); err != nil {
				return err
			}
			x.step++
		}
		if err := x.table.flush(); err != nil {
			return err
		}
	}
	if x.perRow == 0 {
		x.perRow = basePerRow(x.table.layout())
	}
	x.sample()
	return ctx.Err()
}

// newest is the time of a read of the newest state.
const newest mvcc.Timestamp = 0

// readCost opens the store again and reads the table as of ts.
func (t *realTable) readCost(ctx context.Context, ts mvcc.Timestamp, keys int64) (c ReadCost, err error) {
	measured := func(read func() error) (reads, bytes int64, err error) {
		if err := t.reopen(); err != nil {
			return 0, 0, err
		}
		r, b := t.files.reads.Load(), t.files.bytes.Load()
		err = read()
		return t.files.reads.Load() - r, t.files.bytes.Load() - b, err
	}
	var asOf oribi.ReadOption
	if ts != newest {
		asOf = oribi.AsOf(ts)
	}
	c.ScanReads, c.ScanBytes, err = measured(func() error {
		for b, err := range t.table.Scan(ctx, asOf).Batches() {
			if err != nil {
				return err
			}
			c.Rows += int64(b.Selected())
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	c.GetReads, c.GetBytes, err = measured(func() error {
		for i := range int64(VersionGets) {
			if _, err := t.table.Get(ctx, oribi.Row{"key": shuffled(i, keys)}, asOf); err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}
