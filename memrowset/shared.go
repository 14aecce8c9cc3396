package memrowset

import (
	"sync"

	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/mvcc"
)

// Shared is the rows of a range of keys, which several iterators divide among themselves: each row
// is returned by one of them. It is safe for concurrent use.
//
// An iterator takes as many rows as one call of its Next returns, in key order, so the rows are
// divided evenly whatever their keys are and however long each takes. Only that step holds a lock:
// it walks the tree, which takes a small part of the time that the rows need afterwards.
type Shared struct {
	mu     sync.Mutex // guards walker
	walker walker
}

// Share returns the rows with keys in [lower, upper) in snap, under the conditions of NewIterator.
func (m *MemRowSet) Share(snap mvcc.Snapshot, lower, upper []byte) *Shared {
	return &Shared{walker: m.newWalker(snap, lower, upper, false)}
}

// NewIterator returns one of the iterators that divide the rows. Next is the only method of it that
// may be called.
func (s *Shared) NewIterator() *Iterator {
	return &Iterator{walker: walker{m: s.walker.m, snap: s.walker.snap}, from: s}
}

// take appends up to max rows to dst.
func (s *Shared) take(dst []arena.Ref, max int) []arena.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(dst) < max {
		some := s.walker.next(max - len(dst))
		if len(some) == 0 {
			break
		}
		dst = append(dst, some...)
	}
	return dst
}
