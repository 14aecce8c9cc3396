package oribi

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/mvcc"
)

// replayLimit is how much of the log Close leaves for the next Open to replay, in bytes.
const replayLimit = 16 << 20

// Close waits for running calls, makes everything durable, and unlocks the directory. Later calls
// return ErrClosed, and open iterators do at their next step. Close may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.background != nil {
		s.background.stop()
	}
	for s.running.Load() > 0 {
		<-s.idle
	}
	var errs []error
	if !s.opts.ReadOnly && s.poisoned() == nil && s.log.Bytes() > replayLimit {
		errs = append(errs, s.flushAll(context.Background()))
	}
	if s.log != nil {
		errs = append(errs, s.keepEnds(), s.trimLog(), s.log.Close())
	}
	for _, t := range s.tables {
		t.tab.Close()
	}
	errs = append(errs, s.blocks.Close())
	if !s.opts.ReadOnly && s.blocks.Poisoned() == nil && len(s.tables) > 0 {
		s.reserve.Keep(s.instance.ID)
	}
	s.reader.Close()
	errs = append(errs, s.locks.Release())
	s.pub.Close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("oribi: %s: close: %w", s.dir.Path, err)
	}
	return nil
}

// trimAbove is how much log Close leaves that need not be replayed, in bytes: reading that much
// takes the next Open less time than a new segment takes Close.
const trimAbove = 1 << 20

// trimLog begins a new segment and drops the others if the files contain everything in the log.
// Otherwise the next Open would read, and a writer rewrite, a segment that is not needed.
func (s *Store) trimLog() error {
	if s.poisoned() != nil || s.log.Bytes() <= trimAbove {
		return nil
	}
	err := s.blocks.Confirm()
	if err == nil && s.blocks.ConfirmedLogStart() >= s.log.Next() {
		if err = s.log.Roll(); err == nil {
			err = s.releaseLog()
		}
	}
	if isNoSpace(err) {
		return nil // trimming only saves time
	}
	return err
}

// flushAll flushes every table.
func (s *Store) flushAll(ctx context.Context) error {
	for _, t := range s.sortedTables() {
		if _, err := t.tab.Flush(ctx); err != nil && !errors.Is(err, fault.ErrNoTable) {
			return err
		}
	}
	return nil
}

// promise makes sure that later batches get timestamps above ts, also after Close and the next Open.
// Within this process the clock ensures it; after a kill, what logTimestamp has done.
func (s *Store) promise(ts mvcc.Timestamp) {
	for old := s.promised.Load(); uint64(ts) > old; old = s.promised.Load() {
		if s.promised.CompareAndSwap(old, uint64(ts)) {
			return
		}
	}
}

// keepEnds stores the highest promised timestamp and the last LSN, if the next Open would not find
// them otherwise. Without the last LSN, Open would take a log that was cut, or replaced by an older
// copy, for the log of a killed process.
func (s *Store) keepEnds() error {
	if s.poisoned() != nil {
		return nil
	}
	visible, promised := s.pub.Visible(), mvcc.Timestamp(s.promised.Load())
	promises := promised > max(visible, s.stored.ClockHigh)
	last := s.lastLSN.Load()
	if !promises && last <= s.stored.LogEnd {
		return nil
	}
	if err := s.log.Sync(last); err != nil {
		s.poison(err)
		return err
	}
	row := s.stored
	row.LogEnd = max(row.LogEnd, last)
	row.ClockHigh = max(row.ClockHigh, visible) // log_start may pass over the record of visible
	if promises {
		row.ClockHigh = promised
	}
	err := s.commitTables(blockmanager.Edit{LogStart: s.logNeeds(nil), Put: []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}}, row)
	if isNoSpace(err) && !promises {
		return nil // nothing is lost without it
	}
	return err
}
