package store

import (
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/mvcc"
)

// Store is an open store: what writers and readers have in common, the parts of either, and the
// calls in progress. It is safe for concurrent use.
type Store struct {
	*Core
	Writer     *Writer         // nil in a reader
	Follower   *Follower       // nil in a writer, and in a reader that stays in one state
	Background *Background     // nil in a reader
	Locks      *storedir.Locks // nil in a follower

	followers *storedir.Followers
	reserve   *storedir.Reserve
	marked    mvcc.Timestamp // mark of earlier writers in LOCK, above which the batches are
	reader    *storedir.Pin  // of a follower

	pacer *pacer

	spare atomic.Int64 // bytes that may be written before the free space is checked again

	// running counts the calls in progress. Close sets closed, then waits until running is 0. A
	// call increments running first and then checks closed, so Close waits for every call that
	// began before it, and every later call returns ErrClosed.
	running atomic.Int64
	closed  atomic.Bool
	idle    chan struct{} // gets a value when running falls to 0 after closed was set
}

// Follows reports whether the store is a reader that moves to newer states.
func (s *Store) Follows() bool { return s.Follower != nil }

// Frozen reports whether the store stays in one state.
func (s *Store) Frozen() bool { return s.Writer == nil && s.Follower == nil }

// Closed reports whether Close was called.
func (s *Store) Closed() bool { return s.closed.Load() }

// Enter begins a call; Leave ends it. Errors: ErrClosed.
func (s *Store) Enter() error {
	s.running.Add(1)
	s.pacer.wake()
	if s.closed.Load() {
		s.Leave()
		return s.errorf(fault.ErrClosed)
	}
	return nil
}

// Leave ends a call.
func (s *Store) Leave() {
	if s.running.Add(-1) == 0 && s.closed.Load() {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}

// EnterWriting is Enter for calls that write. Errors: ErrReadOnly; ErrPoisoned; ErrClosed.
func (s *Store) EnterWriting() error {
	if s.Writer == nil {
		return s.errorf(fault.ErrReadOnly)
	}
	if err := s.Enter(); err != nil {
		return err
	}
	if err := s.Poisoned(); err != nil {
		s.Leave()
		return s.errorf(err)
	}
	return nil
}

// Poisoned returns the error that ended all writing, or nil.
func (s *Store) Poisoned() error {
	if s.Writer != nil {
		return s.Writer.Poisoned()
	}
	return s.Blocks.Poisoned()
}

// errorf returns err as the error of a public call on the store.
func (s *Store) errorf(err error) error { return fault.Call("store "+s.Dir.Path, err) }
