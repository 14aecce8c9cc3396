package oribi

import (
	"context"
	"errors"
	"log/slog"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/record"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// tabletStore is the store as its tablets see it.
type tabletStore struct{ s *Store }

func (ts tabletStore) LastLSN() lsn.LSN { return ts.s.timeline.LastLSN() }

func (ts tabletStore) NewCreation() *blockmanager.Creation { return ts.s.blocks.NewCreation() }

// Wait syncs the log up to lsn and waits until all of it is published.
func (ts tabletStore) Wait(ctx context.Context, lsn lsn.LSN) error {
	s := ts.s
	if err := s.commits.Log.Sync(lsn); err != nil {
		s.commits.Poison(err)
		return err
	}
	return s.timeline.WaitLSN(ctx, lsn)
}

func (ts tabletStore) Timestamp() (mvcc.Timestamp, error) { return ts.s.timeline.Clock.Now() }

func (ts tabletStore) Visible() mvcc.Timestamp { return ts.s.timeline.Visible() }

// Append is store.Commits.Announce.
func (ts tabletStore) Append(rec *record.Writer, table uint32) (at mvcc.Timestamp, lsn lsn.LSN, publish func(), err error) {
	return ts.s.commits.Announce(rec, table)
}

// HistoryFloor returns the present time less the retention, or a lower timestamp that a snapshot or
// a running read pins. It returns Min if history is kept forever or the clock is not a physical
// one. It never returns less than the table's present floor, which a longer retention does not
// lower. From then on, reads of the table below the floor are refused.
func (ts tabletStore) HistoryFloor(t *tablet.Tablet, historySec int64) mvcc.Timestamp {
	s := ts.s
	floor := s.timeline.Oldest(historySec)
	if s.timeline.InFlight() {
		floor = min(floor, s.timeline.Visible()) // reads of the newest state do not see what is in flight
	}
	return max(s.pins.Choose(t.Number, floor), t.Metadata().HistoryFloor)
}

// Now is 0 for a clock that is not a physical one.
func (ts tabletStore) Now() mvcc.Timestamp { return ts.s.timeline.PhysicalTime() }

func (ts tabletStore) NextJob() uint64 { return ts.s.lastJob.Add(1) }

func (ts tabletStore) Event(e compaction.Event) {
	ts.s.counters.job(&e)
	if e.Begin {
		ts.s.listen(e)
		return
	}
	ts.s.opts.Logger.Debug("compaction", slog.String("kind", string(e.Kind)), slog.String("table", e.Table),
		slog.Int64("bytes", e.BytesWritten), slog.Duration("took", e.Duration), slog.Any("err", e.Err))
	ts.s.listen(e)
}

// CommitMeta adds to the edit what every metadata commit contains, commits it, installs it in
// memory, and removes the log segments that the confirmed metadata does not need.
func (ts tabletStore) CommitMeta(c tablet.MetaCommit) error {
	s := ts.s
	if err := s.commitMeta(&c); err != nil {
		return err
	}
	failed := store.ErrPanic
	defer func() {
		if failed != nil { // memory does not show what the metadata says
			s.commits.Poison(failed)
		}
	}()
	if failed = c.Install(); failed != nil {
		return failed
	}
	return s.releaseLog()
}

// releaseLog removes the log segments that the confirmed metadata does not need. A segment that
// cannot be removed takes space and does no other harm, so that is a warning, and the next call
// tries again. The error is that of a poisoned store.
func (s *Store) releaseLog() error {
	err := s.commits.Log.Release(s.logBegin())
	if err == nil || errors.Is(err, fault.ErrPoisoned) {
		return err
	}
	s.opts.Logger.Warn("removing log segments failed", slog.Any("err", err))
	return nil
}

// logNeeds returns an LSN that no operation is below which a table has in memory and not in files,
// apart from one table, and no batch that is not published.
func (s *Store) logNeeds(except *tablet.Tablet) lsn.LSN {
	start := s.timeline.FirstUnpublished()
	for _, t := range s.sortedTables() {
		if t.tab != except {
			start = min(start, t.tab.FirstLSN())
		}
	}
	return start
}

// skippable returns how many bytes of the log skipLog would make removable: those after log_start
// that no table needs, because batches are empty, or of dropped tables.
func (s *Store) skippable() int64 {
	return max(0, s.commits.Log.BytesFrom(s.blocks.LogStart())-s.commits.Log.BytesFrom(s.logNeeds(nil)))
}

// skipLog commits a log_start that passes over what no table needs. Elsewhere that is done by
// flushes.
func (s *Store) skipLog() error {
	s.metaMu.Lock()
	defer s.metaMu.Unlock()
	start := s.logNeeds(nil)
	if err := s.commits.Log.Sync(start - 1); err != nil {
		s.commits.Poison(err)
		return err
	}
	row := s.stored
	row.ClockHigh = max(row.ClockHigh, s.timeline.Visible())
	row.LogEnd = max(row.LogEnd, s.commits.Log.Durable())
	return s.commitTables(blockmanager.Edit{LogStart: start, Put: []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}}, row)
}

// commitMeta is CommitMeta up to the commit.
//
// It finds log_start in this order, so that it misses no operation: first the first unpublished
// LSN, then the lowest LSN in the memory stores. An operation that is not in a store when
// commitMeta asks it was not applied, so not published, so its LSN is not below the first
// unpublished one. A table whose last commit is not installed yet has all stores from before it.
func (s *Store) commitMeta(c *tablet.MetaCommit) error {
	s.metaMu.Lock()
	defer s.metaMu.Unlock()
	start := min(s.logNeeds(c.Table), c.First())
	// The log has to reach up to log_start: LSNs below it that a power cut took would be given
	// again, to batches that replay passes over.
	if err := s.commits.Log.Sync(start - 1); err != nil {
		s.commits.Poison(err)
		return err
	}
	edit := c.Edit()
	edit.LogStart = start
	row := s.stored
	row.ClockHigh = max(row.ClockHigh, s.timeline.Visible())
	row.LogEnd = max(row.LogEnd, s.commits.Log.Durable())
	edit.Put = append(edit.Put, blockmanager.Row{Key: meta.StoreKey(), Value: row.Encode()})
	if err := s.blocks.Commit(edit); err != nil {
		if !isNoSpace(err) {
			s.commits.Poison(err)
		}
		return err
	}
	s.stored = row
	s.commits.Gate.Committed(c.Table.Number)
	c.Committed()
	return nil
}
