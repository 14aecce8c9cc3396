package oribi

import (
	"context"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
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
		s.background.Stop()
	}
	for s.running.Load() > 0 {
		<-s.idle
	}
	var errs []error
	if !s.opts.ReadOnly && s.poisoned() == nil && s.writer.Log.Bytes() > replayLimit {
		errs = append(errs, s.flushAll(context.Background()))
	}
	if s.writer != nil {
		errs = append(errs, s.writer.KeepEnds(), s.writer.TrimLog(), s.writer.Log.Close())
	}
	s.core.CloseTables()
	errs = append(errs, s.core.Blocks.Close())
	if !s.opts.ReadOnly && s.core.Blocks.Poisoned() == nil && len(s.core.Tablets()) > 0 {
		s.reserve.Keep(s.core.Instance.ID)
	}
	s.reader.Close()
	errs = append(errs, s.locks.Release())
	s.core.Close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("oribi: %s: close: %w", s.core.Dir.Path, err)
	}
	return nil
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
