package tablet

import (
	"bytes"
	"runtime"
	"slices"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bloom"
	"github.com/oribi-db/oribi/internal/parallel"
	"github.com/oribi-db/oribi/memrowset"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// position is where the live version of a key is.
type position struct {
	live bool
	mem  *memrowset.MemRowSet // nil: it is in set
	set  *rowset.DiskRowSet
	row  batch.Ordinal

	expires mvcc.Timestamp // as of when the row is expired; set if the table's rows expire
}

// find returns the position of the live version of a key: in the MemRowSets, else in the rowsets
// whose bounds contain it.
func (st *tabletState) find(p bloom.Probe) (position, error) {
	for _, m := range st.mems {
		if m.Live(p.Key) {
			return position{live: true, mem: m}, nil
		}
	}
	var buf [8]*rowset.DiskRowSet
	for _, d := range st.tree.Candidates(buf[:0], p.Key) {
		row, found, err := d.Find(p)
		if err == nil && found {
			found, err = d.Live(row)
		}
		if err != nil {
			return position{}, err
		}
		if found {
			return position{live: true, set: d, row: row}, nil
		}
	}
	return position{}, nil
}

// endsBefore reports whether all keys of the table come before key.
func (st *tabletState) endsBefore(key []byte) bool {
	return bytes.Compare(st.tree.Last(), key) < 0 && st.memEndsBefore(key)
}

// ascending reports whether keys ascend strictly, so that no two operations have the same key.
func ascending(ops []Op) bool {
	for i := 1; i < len(ops); i++ {
		if bytes.Compare(ops[i-1].Key, ops[i].Key) >= 0 {
			return false
		}
	}
	return true
}

// keyed is an operation with the first bytes of its key, as a number that sorts in the same order:
// most comparisons need no more.
type keyed struct {
	head uint64
	op   int32
}

// findAll finds the position of each key, in the order of the keys: neighbors share filters, key
// index cblocks and branches of trees, each a cache miss in random order. It sets w.order and
// w.before. If a key has several operations, its position is the position before the first.
func (w *Write) findAll() ([]position, error) {
	w.sort()
	w.before = slices.Grow(w.before, len(w.ops))[:len(w.ops)]
	positions := make([]position, len(w.ops))
	return positions, eachGroup(len(w.order), func(from, to int) error { return w.findGroup(positions, from, to) })
}

// eachGroup calls find for groups of n keys, in several goroutines if there are many.
func eachGroup(n int, find func(from, to int) error) error {
	workers := 1
	if n >= sharedKeys {
		workers = runtime.GOMAXPROCS(0)
	}
	return parallel.Each((n+groupKeys-1)/groupKeys, workers, func(_, g int) error {
		return find(g*groupKeys, min((g+1)*groupKeys, n))
	})
}

const (
	groupKeys  = 64            // that a goroutine finds at a time
	sharedKeys = 4 * groupKeys // finding fewer takes less time than waking a processor
)

// findGroup finds the positions of the operations [from, to) in key order.
func (w *Write) findGroup(positions []position, from, to int) (err error) {
	for k := from; k < to; k++ {
		i := w.order[k].op
		if k > 0 {
			if j := w.order[k-1].op; bytes.Equal(w.ops[j].Key, w.ops[i].Key) {
				w.before[i] = j
				continue
			}
		}
		w.before[i] = -1
		if positions[i], err = w.find(w.probes[i]); err != nil {
			return err
		}
	}
	return nil
}

// nth returns the index of the k-th operation in key order.
func (w *Write) nth(k int) int {
	if len(w.order) == 0 {
		return k
	}
	return int(w.order[k].op)
}
