package delta

import (
	"sort"
	"sync/atomic"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/mvcc"
)

// filter is the set of changes that a reader of a file needs, by their timestamps.
type filter struct {
	kind filterKind
	from mvcc.Snapshot // for between
	to   mvcc.Snapshot
	// onlyRows says that only deletes and reinserts are needed, and no cells: the reader may skip
	// cblocks of updates.
	onlyRows bool
}

type filterKind int8

const (
	all     filterKind = iota
	redos              // those that to sees; the file contains redos
	undos              // those that to does not see; the file contains undos
	between            // those that to sees and from does not
)

// excludes reports whether the filter has none of the changes of a file or cblock whose timestamps
// are in [oldest, newest].
func (f filter) excludes(oldest, newest mvcc.Timestamp) bool {
	switch f.kind {
	case redos:
		return !f.to.Sees(oldest)
	case undos:
		return f.to.Sees(newest)
	case between:
		return !f.to.Sees(oldest) || f.from.Sees(newest)
	}
	return false
}

// check returns an error if the changes of a row in b are not in the order of redos or undos, on
// which reads of either depend. Errors: ErrCorrupt.
func (f filter) check(b *deltaBlock) error {
	switch {
	case f.kind == redos && !b.ascending:
		return fault.Corruptf("redos of a row are not in the order of their timestamps")
	case f.kind == undos && !b.descending:
		return fault.Corruptf("undos of a row are not in the reverse order of their timestamps")
	}
	return nil
}

// cblockBounds are the timestamps and rows of one data cblock. They are known once the cblock has
// been parsed, and remain so when the cache drops it: cblocks whose changes a reader does not need
// are then not parsed again. The statistics in the file are only of all its cblocks together.
//
// The bounds of a file take 32 bytes for each cblock, as much as its entry in the index, and stay
// in memory like the index.
type cblockBounds struct {
	oldest, newest atomic.Uint64
	rows           atomic.Uint64 // the last row, and the first one in the high bits
	updates        atomic.Bool   // all changes are updates
	known          atomic.Bool   // set after the others; all writers set the same values
}

// note stores the bounds of b, if they are not known.
func (c *cblockBounds) note(b *deltaBlock) {
	if c.known.Load() {
		return
	}
	c.oldest.Store(uint64(b.oldest))
	c.newest.Store(uint64(b.newest))
	c.rows.Store(uint64(b.low)<<32 | uint64(b.high))
	c.updates.Store(len(b.nonUpdates) == 0)
	c.known.Store(true)
}

// excluded reports whether the cblock is known to have no change of the filter. In that case, low
// and high are its first and last row.
func (c *cblockBounds) excluded(f filter) (low, high uint32, ok bool) {
	if f.kind == all || !c.known.Load() || !(f.onlyRows && c.updates.Load()) &&
		!f.excludes(mvcc.Timestamp(c.oldest.Load()), mvcc.Timestamp(c.newest.Load())) {
		return 0, 0, false
	}
	rows := c.rows.Load()
	return uint32(rows >> 32), uint32(rows), true
}

// knownUnchanged reports whether it is known that none of the cblocks has changes of rows [from, to)
// that the filter does not exclude.
func (c *cursor) knownUnchanged(from, to uint32) bool {
	all := c.file.bounds.Load()
	if all == nil {
		return false
	}
	bounds := *all
	// The rows of cblocks ascend; a cblock with unknown rows may be anywhere.
	first := sort.Search(len(bounds), func(i int) bool {
		return !bounds[i].known.Load() || uint32(bounds[i].rows.Load()) >= from
	})
	for i := first; i < len(bounds); i++ {
		b := &bounds[i]
		if !b.known.Load() {
			return false
		}
		if low := uint32(b.rows.Load() >> 32); low >= to {
			return true
		}
		if _, _, ok := b.excluded(c.filter); !ok {
			return false
		}
	}
	return true
}

// boundsOf returns the bounds of all n data cblocks of the file.
func (f *File) boundsOf(n int) []cblockBounds {
	if b := f.bounds.Load(); b != nil {
		return *b
	}
	b := make([]cblockBounds, n)
	if !f.bounds.CompareAndSwap(nil, &b) {
		return *f.bounds.Load()
	}
	return b
}
