package memrowset

import (
	"sync"

	"github.com/oribi-db/oribi/mvcc"
)

// Shared is the rows of a range of keys, which several iterators divide among themselves: each row
// is returned by one of them. It is safe for concurrent use.
//
// An iterator takes as many rows as one call of its Next returns, in key order, so the rows are
// divided evenly whatever their keys are and however long each takes. Only that step holds a lock:
// it walks the tree, which takes a small part of the time that the rows need afterwards.
type Shared struct {
	snap mvcc.Snapshot

	mu     sync.Mutex // guards walker
	walker walker
}

// Share returns the rows with keys in [lower, upper) in snap, under the conditions of NewIterator.
func (m *MemRowSet) Share(snap mvcc.Snapshot, lower, upper []byte) *Shared {
	return &Shared{snap: snap, walker: m.newWalker(lower, upper, false)}
}

// NewIterator returns one of the iterators that divide the rows. Next is the only method of it that
// may be called.
func (s *Shared) NewIterator() *Iterator {
	return &Iterator{walker: walker{m: s.walker.m}, snap: s.snap, from: s}
}

// take appends up to max items to dst.
func (s *Shared) take(dst []item, max int) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(dst, s.walker.next(max)...)
}
