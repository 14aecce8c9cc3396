package oribi

import (
	"context"
	"errors"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// Store is an open store: a directory of tables. It is safe for concurrent use.
type Store struct {
	dir      storedir.Dir
	opts     Options
	instance *storedir.Instance
	locks    *storedir.Locks // nil in a follower
	blocks   *blockmanager.Manager
	timeline *store.Timeline
	commits  *store.Commits // of a writer
	cache    *cache.Cache
	reads    *budget.Gate // memory of blocks that are being read
	recovery Recovery
	logTail  atomic.Pointer[wal.Tail] // as replay, or Refresh, found it

	// unsettled says that replay found the announcement of a change outside the log that has not
	// come.
	unsettled bool
	reader    *storedir.Pin       // of a follower
	followers *storedir.Followers // of a writer
	following following           // of a follower

	// marked is a writer's mark of earlier writers in LOCK: its batches are above it.
	marked mvcc.Timestamp

	// running counts the calls in progress. Close sets closed, then waits until running is 0. A
	// call increments running first and then checks closed, so Close waits for every call that
	// began before it, and every later call returns ErrClosed.
	running atomic.Int64
	closed  atomic.Bool
	idle    chan struct{} // gets a value when running falls to 0 after closed was set

	// metaMu serializes metadata commits, from the computation of log_start on.
	metaMu sync.Mutex
	stored meta.Store // under metaMu

	tablesMu sync.RWMutex
	tables   map[string]*Table

	lastJob    atomic.Uint64 // number of the newest job or stall
	counters   *counters
	pins       *store.Pins
	budget     *budget.Budget
	spare      atomic.Int64 // bytes that may be written before the free space is checked again
	background *background
	maxLog     int64                                        // maxLogBytes; less in a test
	reserve    *storedir.Reserve                            // of a writer
	salvage    *salvager                                    // that has opened the damaged store; nil: none has
	throttle   func(ctx context.Context, bytes int64) error // of what compactions write; nil: no limit
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
func (s *Store) errorf(err error) error { return callErr("store "+s.dir.Path, err) }

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
	if s.commits != nil {
		return s.commits.Poisoned()
	}
	return s.blocks.Poisoned()
}

// durable is called by the log when it is durable up to an LSN.
func (s *Store) durable(upTo lsn.LSN) { s.timeline.Durable(upTo) }

func (s *Store) sortedTables() []*Table {
	s.tablesMu.RLock()
	defer s.tablesMu.RUnlock()
	out := make([]*Table, 0, len(s.tables))
	for _, t := range s.tables {
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].tab.Name() < out[j].tab.Name() })
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
