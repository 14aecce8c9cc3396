package store

import (
	"context"
	"errors"

	"github.com/oribi-db/oribi/internal/fault"
)

// replayLimit is how much of the log Close leaves for the next Open to replay, in bytes.
const replayLimit = 16 << 20

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
			errs = append(errs, s.flushAll(context.Background()))
		}
		errs = append(errs, w.KeepEnds(), w.TrimLog(), w.Log.Close())
	}
	s.closeTables()
	errs = append(errs, s.Blocks.Close())
	if s.Writer != nil && s.Blocks.Poisoned() == nil && len(s.Tablets()) > 0 {
		s.reserve.Keep(s.Instance.ID)
	}
	s.reader.Close()
	errs = append(errs, s.Locks.Release())
	s.Publisher.Close()
	return errors.Join(errs...)
}

// flushAll flushes every table.
func (s *Store) flushAll(ctx context.Context) error {
	for _, t := range s.Tablets() {
		if _, err := t.Flush(ctx); err != nil && !errors.Is(err, fault.ErrNoTable) {
			return err
		}
	}
	return nil
}
