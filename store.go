package oribi

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// Store is an open store: a directory of tables. It is safe for concurrent use.
type Store struct {
	opts  Options
	core  *store.Core
	locks *storedir.Locks // nil in a follower

	writer     *store.Writer // nil in a reader
	followers  *storedir.Followers
	reserve    *storedir.Reserve
	spare      atomic.Int64   // bytes that may be written before the free space is checked again
	marked     mvcc.Timestamp // mark of earlier writers in LOCK, above which the batches are
	background *store.Background
	throttle   func(ctx context.Context, bytes int64) error // of the writes of compactions; nil if they are not limited

	follower *store.Follower // nil in a writer
	reader   *storedir.Pin   // of a follower

	recovery Recovery
	counters *counters

	// running counts the calls in progress. Close sets closed, then waits until running is 0. A
	// call increments running first and then checks closed, so Close waits for every call that
	// began before it, and every later call returns ErrClosed.
	running atomic.Int64
	closed  atomic.Bool
	idle    chan struct{} // gets a value when running falls to 0 after closed was set
}

// enter begins a call; leave ends it.
func (s *Store) enter() error {
	s.running.Add(1)
	if s.closed.Load() {
		s.leave()
		return s.errorf(fault.ErrClosed)
	}
	return nil
}

func (s *Store) leave() {
	if s.running.Add(-1) == 0 && s.closed.Load() {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}

// errorf returns err as the error of a public call on the store.
func (s *Store) errorf(err error) error { return callErr("store "+s.core.Dir.Path, err) }

// enterWriting is enter for calls that write.
func (s *Store) enterWriting() error {
	if s.opts.ReadOnly {
		return s.errorf(fault.ErrReadOnly)
	}
	if err := s.enter(); err != nil {
		return err
	}
	if err := s.poisoned(); err != nil {
		s.leave()
		return s.errorf(err)
	}
	return nil
}

// Poisoned returns the error that made the store read-only, wrapped in ErrPoisoned, or nil if the
// store accepts writes.
func (s *Store) Poisoned() error {
	if err := s.poisoned(); err != nil {
		return s.errorf(err)
	}
	return nil
}

// poisoned is Poisoned without the place.
func (s *Store) poisoned() error {
	if s.writer != nil {
		return s.writer.Poisoned()
	}
	return s.core.Blocks.Poisoned()
}

// sortedTables returns all tables, ordered by name.
func (s *Store) sortedTables() []*Table {
	faces := s.core.Faces()
	out := make([]*Table, len(faces))
	for i, t := range faces {
		out[i] = t.(*Table)
	}
	return out
}

// tablets returns the tablets of tables.
func tablets(tables []*Table) []*tablet.Tablet {
	out := make([]*tablet.Tablet, len(tables))
	for i, t := range tables {
		out[i] = t.tab
	}
	return out
}

func isNoSpace(err error) bool { return errors.Is(err, fault.ErrNoSpace) }
