package oribi

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
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
	if !s.opts.ReadOnly && s.poisoned() == nil && s.commits.Log.Bytes() > replayLimit {
		errs = append(errs, s.flushAll(context.Background()))
	}
	if s.commits != nil {
		errs = append(errs, s.keepEnds(), s.trimLog(), s.commits.Log.Close())
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
	s.timeline.Close()
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
	if s.poisoned() != nil || s.commits.Log.Bytes() <= trimAbove {
		return nil
	}
	err := s.blocks.Confirm()
	if err == nil && s.blocks.ConfirmedLogStart() >= s.commits.Log.Next() {
		if err = s.commits.Log.Roll(); err == nil {
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

// keepEnds stores the highest promised timestamp and the last LSN, if the next Open would not find
// them otherwise. Without the last LSN, Open would take a log that was cut, or replaced by an older
// copy, for the log of a killed process.
func (s *Store) keepEnds() error {
	if s.poisoned() != nil {
		return nil
	}
	visible, promised := s.timeline.Visible(), s.commits.Promised()
	promises := promised > max(visible, s.stored.ClockHigh)
	last := s.timeline.LastLSN()
	if !promises && last <= s.stored.LogEnd {
		return nil
	}
	if err := s.commits.Log.Sync(last); err != nil {
		s.commits.Poison(err)
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
