package oribi

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/oribi-db/oribi/internal/conflict"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// window collects the changes of all write batches between two timestamps, from stores that are in
// the order of keys. If they do not fit, it forgets the latest, and ends before them:
//
//	changes   ·· · ··· ·· · │ · ·· ···· · ·
//	fit                     │
//	        from           upTo            visible
//
// So as many passes over the stores are necessary as windows, each of at least half the limit.
type window struct {
	limit   int64          // bytes
	upTo    mvcc.Timestamp // inclusive
	changes []conflict.Change
	bytes   int64
}

// changeSize is the memory of a conflict.Change without its key.
const changeSize = 48

// add adds a change; a nil key stands for any keys of the table.
func (w *window) add(ts mvcc.Timestamp, table uint32, key []byte) {
	w.changes = append(w.changes, conflict.Change{Timestamp: ts, Table: table, Key: key, Unknown: key == nil})
	w.bytes += changeSize + int64(len(key))
	if w.bytes > w.limit {
		w.shrink()
	}
}

// sort sorts the changes by timestamp and table, unknown ones first, and removes repetitions.
func (w *window) sort() {
	slices.SortFunc(w.changes, func(a, b conflict.Change) int {
		return cmp.Or(cmp.Compare(a.Timestamp, b.Timestamp), cmp.Compare(a.Table, b.Table), bytes.Compare(a.Key, b.Key))
	})
	w.changes = slices.CompactFunc(w.changes, func(a, b conflict.Change) bool {
		return a.Timestamp == b.Timestamp && a.Table == b.Table && (a.Unknown || bytes.Equal(a.Key, b.Key))
	})
}

// shrink forgets the changes of the latest batches until those that are left take at most half of
// the limit. If the first batch alone takes more, its keys are forgotten.
func (w *window) shrink() {
	w.sort()
	bytes, n := int64(0), 0
	for n < len(w.changes) {
		size, end := int64(0), n // of the next batch
		for ; end < len(w.changes) && w.changes[end].Timestamp == w.changes[n].Timestamp; end++ {
			size += changeSize + int64(len(w.changes[end].Key))
		}
		if bytes+size > w.limit/2 {
			if n > 0 {
				break
			}
			w.changes, w.upTo = anyOf(w.changes[:end]), w.changes[0].Timestamp
			w.bytes = int64(len(w.changes)) * changeSize
			return
		}
		bytes, n = bytes+size, end
	}
	if n < len(w.changes) {
		w.upTo = w.changes[n-1].Timestamp
	}
	clear(w.changes[n:])
	w.changes, w.bytes = w.changes[:n], bytes
}

// anyOf replaces the changes of one batch by unknown changes of its tables.
func anyOf(changes []conflict.Change) []conflict.Change {
	tables := slices.CompactFunc(changes, func(a, b conflict.Change) bool { return a.Table == b.Table })
	for i := range tables {
		tables[i].Key, tables[i].Unknown = nil, true
	}
	return slices.Clone(tables)
}

// fill collects the changes after done in w.
func (s *subscription) fill(w *window) error {
	for _, t := range s.tables {
		err := s.fillFrom(w, t)
		if err != nil && !errors.Is(err, fault.ErrNoTable) { // dropped
			return err
		}
	}
	w.sort()
	return nil
}

func (s *subscription) fillFrom(w *window, t *Table) error {
	v, err := t.tab.View(tablet.Snapshot{At: mvcc.AsOf(s.done)})
	if err != nil {
		return err
	}
	defer v.Release()
	seen := 0
	return v.Changes(mvcc.AsOf(w.upTo), func(ts mvcc.Timestamp, key func() ([]byte, error)) error {
		if seen++; seen%ctxEvery == 0 {
			if err := s.store.interrupted(s.ctx); err != nil {
				return err
			}
		}
		if ts > w.upTo {
			return nil // it was forgotten
		}
		k, err := key()
		if err == nil {
			w.add(ts, t.tab.Number, k)
		}
		return err
	})
}
