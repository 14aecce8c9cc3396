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
	// A flush of a table takes some 15 ms, for its files and a metadata commit. A second replays some
	// 32 MiB of log.
	flushTime = 15 * time.Millisecond
	replayed  = 32 << 20
	// leastFlush is the memory, in bytes, whose replay takes as long as a flush.
	leastFlush = int64(replayed * flushTime / time.Second)
)

// Close waits for running calls, makes everything durable, and unlocks the directory. Later calls
// return ErrClosed. Close may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.Background != nil {
		s.Background.stop()
	}
	for s.running.Load() > 0 {
		<-s.idle
	}
	var errs []error
	if w := s.Writer; w != nil {
		if w.Poisoned() == nil && w.Log.Bytes() > replayLimit {
			errs = append(errs, s.flush(context.Background(), w.Log.Bytes()))
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

// flush flushes the tables whose replay would take longer than their flush, and the smaller ones too
// if that takes no longer than the replay of the whole log, which they would keep.
func (s *Store) flush(ctx context.Context, log int64) error {
	var large, small []*tablet.Tablet
	for _, t := range s.Tablets() {
		rows, deltas := t.MemBytes()
		switch {
		case t.FirstLSN() == lsn.Max:
		case rows+deltas < leastFlush:
			small = append(small, t)
		default:
			large = append(large, t)
		}
	}
	if time.Duration(len(small))*flushTime <= time.Duration(log)*time.Second/replayed {
		large = append(large, small...)
	}
	_, err := s.Writer.FlushAll(ctx, large)
	return err
}
