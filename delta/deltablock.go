package delta

import (
	"iter"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// deltaBlock is a parsed data cblock of a File, as the cache stores it. It is immutable and shared
// by all readers.
//
// Reads of the past search many deltas for a few, so they are in little memory: in addition to its
// list, a delta takes one or two bytes if timestamps are repeated, else up to eight more. All
// integers and lists of a block are in one piece of memory, which has no pointers.
//
// The deltas of a row are adjacent. Entry k is the k-th row with deltas: it has row ID rows.at(k)
// and the deltas [first.at(k), first.at(k+1)). Row IDs ascend.
//
// Delta i has the list lists[starts.at(i):starts.at(i+1)]. Most lists set the same columns as other
// lists. shapes[shape.at(i)] is the shape of the list, which makes reading it unnecessary. The
// delta's timestamp is keys.at(i), or times[keys.at(i)] if times is not empty; times ascend.
type deltaBlock struct {
	entries, deltas int

	rows, first         packed // by entry; first has one more
	starts, keys, shape packed // by delta; starts has one more
	times               []mvcc.Timestamp
	lists               []byte // in the memory of the packed lists

	low, high  uint32         // the first and the last row
	oldest     mvcc.Timestamp // of all deltas
	newest     mvcc.Timestamp
	ascending  bool // no timestamp is lower than the previous one in its row
	descending bool // no timestamp is higher than the previous one in its row

	depths depths

	shapes     []shape
	columns    []schema.ColumnID // of all lists, ascending
	nonUpdates []uint32          // the entries with a delete or a reinsert, ascending

	// checked is the schema against which all lists have been checked, or nil if they were not
	// checked.
	checked atomic.Pointer[schema.Schema]
}

// shape is the kind and the columns of a change list. Lists with the same kind and columns share
// it.
type shape struct {
	kind change.Kind
	ids  []schema.ColumnID // in the order of the list
	set  batch.Bitmap      // bit i: ids has the block's columns[i]; nil in a block of too many shapes
	all  bool              // ids has all of the block's columns
}

// Sizes in memory, in bytes.
const (
	blockBytes = 680 // of a deltaBlock without what it points to
	shapeBytes = 72  // of a shape without its columns
	depthBytes = 24  // of a depth
)

// check returns an error unless the lists fit s. Errors: ErrCorrupt.
func (b *deltaBlock) check(s *schema.Schema) error {
	if b.checked.Load() == s {
		return nil
	}
	for i := range b.deltas {
		if err := b.list(i).Check(s); err != nil {
			return err
		}
	}
	b.checked.Store(s)
	return nil
}

func (b *deltaBlock) row(k int) uint32 { return uint32(b.rows.at(k)) }

// of returns the deltas [i, j) of entry k.
func (b *deltaBlock) of(k int) (i, j int) { return int(b.first.at(k)), int(b.first.at(k + 1)) }

func (b *deltaBlock) list(i int) change.List {
	end := b.starts.at(i + 1)
	return change.List(b.lists[b.starts.at(i):end:end])
}

func (b *deltaBlock) ts(i int) mvcc.Timestamp {
	key := b.keys.at(i)
	if len(b.times) > 0 {
		return b.times[key]
	}
	return mvcc.Timestamp(key)
}

// entriesOf iterates over the deltas of entries [k, end).
func (b *deltaBlock) entriesOf(k, end int) iter.Seq[change.Delta] {
	return func(yield func(change.Delta) bool) {
		for ; k < end; k++ {
			row := b.row(k)
			for i, j := b.of(k); i < j; i++ {
				if !yield(change.Delta{Row: row, TS: b.ts(i), List: b.list(i)}) {
					return
				}
			}
		}
	}
}

// appendEntries appends the deltas of entries [k, end) that snap sees.
func (b *deltaBlock) appendEntries(dst []change.Delta, k, end int, snap mvcc.Snapshot) []change.Delta {
	i := int(b.first.at(k))
	start := b.starts.at(i)
	dst = slices.Grow(dst, int(b.first.at(end))-i)
	for ; k < end; k++ {
		row := b.row(k)
		for j := int(b.first.at(k + 1)); i < j; i++ {
			next := b.starts.at(i + 1)
			if ts := b.ts(i); snap.Sees(ts) {
				dst = append(dst, change.Delta{Row: row, TS: ts, List: change.List(b.lists[start:next:next])})
			}
			start = next
		}
	}
	return dst
}

// atOrAfter returns the first entry at or after entry from whose row is at or after row.
func (b *deltaBlock) atOrAfter(from int, row uint64) int {
	switch {
	case uint64(b.high) < row:
		return b.entries
	case from >= b.entries || b.rows.at(from) >= row:
		return from
	}
	lo, hi := from, b.entries-1 // lo is before the result, hi is not
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) >> 1); b.rows.at(mid) < row {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// keyBound returns the number below which the keys of those timestamps are that snap sees.
func (b *deltaBlock) keyBound(snap mvcc.Snapshot) uint64 {
	if len(b.times) == 0 {
		return uint64(snap)
	}
	return uint64(sort.Search(len(b.times), func(i int) bool { return !snap.Sees(b.times[i]) }))
}

// appliedEnd returns the end of the deltas that apply among an entry's deltas [i, j). They come
// first: redos apply if their keys are below bound, undos if their keys are not. It tries guess
// first.
func (b *deltaBlock) appliedEnd(i, j, guess int, bound uint64, undo bool) int {
	guess = min(guess, j)
	if guess > i {
		if (b.keys.at(guess-1) < bound) != undo {
			i = guess
		} else {
			j = guess - 1
		}
	}
	if guess == i && guess < j {
		if (b.keys.at(guess) < bound) != undo {
			i = guess + 1
		} else {
			j = guess
		}
	}
	for i < j { // those before i apply, those from j on do not
		if mid := int(uint(i+j) >> 1); (b.keys.at(mid) < bound) != undo {
			i = mid + 1
		} else {
			j = mid
		}
	}
	return j
}

// covers reports whether seen is known to contain all columns of the shape.
func (s *shape) covers(seen batch.Bitmap) bool {
	if s.set == nil {
		return false
	}
	for i, w := range s.set {
		if w&^seen[i] != 0 {
			return false
		}
	}
	return true
}

// index returns the last index of the column in the shape; −1 if it has none.
func (s *shape) index(id schema.ColumnID) int {
	for i, at := range slices.Backward(s.ids) {
		if at == id {
			return i
		}
	}
	return -1
}
