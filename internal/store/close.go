package store

import (
	"context"
	"errors"
	"time"

	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/lsn"
)

const (
	// replayLimit is how much of the log, in bytes, Close leaves without a flush: Open replays it in
	// about half a second.
	replayLimit = 16 << 20
	replayed    = 32 << 20 // bytes of log that a second replays, of small rows in any order

	// A table that is flushed alone takes some 15 ms, for its files and a metadata commit. In a joint
	// flush a small one takes 0.3 ms. The rest is for the rowset, which each Open opens from then on, in
	// some 20 µs, until it is merged.
	flushTime = 15 * time.Millisecond
	jointTime = time.Millisecond
	// leastFlush is the memory, in bytes, whose replay takes as long as the flush of a table alone.
	leastFlush = int64(replayed * flushTime / time.Second)
)

// Close waits for running calls, makes everything durable, and unlocks the directory. Later calls
// return ErrClosed. Close may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.Transactions.Shut()
	s.Exclusive.Shut()
	if s.Background != nil {
		s.Background.stop()
	}
	for s.running.Load() > 0 {
		<-s.idle
	}
	var errs []error
	if w := s.Writer; w != nil {
		if w.Poisoned() == nil && w.Log.Bytes() > replayLimit {
			errs = append(errs, s.flush(context.Background()))
		}
		errs = append(errs, w.KeepEnds(), w.TrimLog(), w.Log.Close())
	}
	s.closeTables()
	errs = append(errs, s.Blocks.Close())
	if s.Writer != nil && s.Blocks.Poisoned() == nil && len(s.Tablets()) > 0 {
		s.reserve.Keep(s.Instance.ID)
	}
	s.reader.Close()
	s.pacer.stop()
	errs = append(errs, s.Locks.Release())
	s.Publisher.Close()
	return errors.Join(errs...)
}

// flush flushes the tables whose replay would take longer than their flush. It flushes the smaller ones
// too if they would keep more than replayLimit of the log, and its replay would take longer than their
// joint flush: the next Open replays as much of the log as the first of them needs.
func (s *Store) flush(ctx context.Context) error {
	w := s.Writer
	var chosen, small []*tablet.Tablet
	first := lsn.Max // of the small ones
	for _, t := range s.Tablets() {
		at := t.FirstLSN()
		rows, changes := t.MemBytes()
		switch {
		case at == lsn.Max:
		case rows+changes >= leastFlush:
			chosen = append(chosen, t)
		default:
			small, first = append(small, t), min(first, at)
		}
	}
	kept := w.Log.BytesFrom(first)
	replay := time.Duration(kept) * time.Second / replayed
	if kept > replayLimit && time.Duration(len(small))*jointTime <= replay {
		chosen = append(chosen, small...)
	}
	_, err := w.FlushAll(ctx, chosen)
	return err
}
