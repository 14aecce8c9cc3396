package delta

import (
	"fmt"
	"slices"
	"sync"

	"github.com/google/btree"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// MemStore contains the changes of one rowset that are not in a file yet: updates, replacements and
// deletes, forward in time. A deleted row is never reinserted in its rowset, so a delete is the last
// change of its row.
//
// Readers and writers may run concurrently, provided that changes of one row are applied one after
// another in the order of their timestamps; the row lock ensures this. A store is discarded as a
// whole after it was written to a file.
//
// Source: tablet spec §7.1. Simpler than Kudu: one tree entry per row instead of one per change,
// and no sequence numbers to distinguish the changes of one batch. The cost: every change of a row
// is reached through its entry.
type MemStore struct {
	id     uint32            // see Window.Settled
	format *change.RowFormat // of the images in replacements
	grow   func(n int64)

	// changes has the links, which never change once a row refers to them. So a reader holds mu only
	// to find the row, and follows its links without it, however many there are.
	changes *arena.Arena

	mu        sync.RWMutex
	changeLog *arena.Journal[logEntry] // of changes applied since StartChangeLog; nil if it was not called
	rows      *btree.BTreeG[memRow]
	dead      *btree.BTreeG[memRow] // the entries of deleted rows, for readers that need no other change
	runs      deathRuns             // of rows without an entry in the tree
	runRows   int64
	runBytes  int64
	firstLSN  lsn.LSN
	count     int
	stats     Stats // Columns and Deletes do not count replacements
	replaced  bool  // some change is a replacement, which sets all columns that are not in the key
}

// memRow is the entry of one row: the newest link of its changes. It has no pointer, so the garbage
// collector does not visit a large tree.
type memRow struct {
	row    batch.Ordinal
	newest arena.Ref
}

const memTreeDegree = 32

func newMemTree() *btree.BTreeG[memRow] {
	return btree.NewG(memTreeDegree, func(a, b memRow) bool { return a.row < b.row })
}

// NewMemStore returns an empty store. format is the row format of the images in replacements. If it
// is nil, no change is a replacement. grow is called with the bytes allocated for changes, and on
// Release with minus their sum; nil disables it.
func NewMemStore(format *change.RowFormat, grow func(n int64)) *MemStore {
	return &MemStore{
		id:      memStores.Add(1),
		format:  format,
		changes: arena.New(grow),
		grow:    grow,
		rows:    newMemTree(),
		stats:   emptyStats(),
	}
}

// Apply adds one change and copies list. It cannot fail. It panics on a reinsert, on a change after
// a delete of its row, and on one older than the row's newest, which are bugs of the caller.
func (m *MemStore) Apply(row batch.Ordinal, ts mvcc.Timestamp, lsn lsn.LSN, list change.List) {
	kind := list.Kind()
	if kind != change.Update && kind != change.Delete && (kind != change.Replace || m.format == nil) {
		panic(fmt.Sprintf("delta: %v of row %d given to a mem store", kind, row))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied(logEntry{row: row, link: m.apply(row, ts, list), lsn: lsn})
}

// applied notes that a change was applied.
func (m *MemStore) applied(e logEntry) {
	if m.changeLog != nil {
		m.changeLog.Add(e)
	}
	if m.firstLSN == 0 || e.lsn < m.firstLSN {
		m.firstLSN = e.lsn // writers of different rows apply in any order
	}
}

// apply adds one change and returns its link. The caller holds mu.
func (m *MemStore) apply(row batch.Ordinal, ts mvcc.Timestamp, list change.List) arena.Ref {
	// One walk of the tree: the link is made as the first of its row, and most are.
	newest := m.addLink(0, ts, list)
	if old, found := m.rows.ReplaceOrInsert(memRow{row, newest}); found {
		l := linkAt(m.changes, old.newest)
		if ts < l.ts() || l.list().Kind() == change.Delete {
			panic(fmt.Sprintf("delta: %v of row %d at %d after its %v at %d",
				list.Kind(), row, uint64(ts), l.list().Kind(), uint64(l.ts())))
		}
		if newest = m.chain(newest, old.newest, ts, list); linkAt(m.changes, newest).folded() {
			m.rows.ReplaceOrInsert(memRow{row, newest})
		}
	} else if m.runs.link(row) != 0 {
		panic(fmt.Sprintf("delta: %v of row %d at %d after its delete", list.Kind(), row, uint64(ts)))
	}
	m.count++
	if list.Kind() == change.Replace {
		m.replaced, m.stats.Min, m.stats.Max = true, min(m.stats.Min, ts), max(m.stats.Max, ts)
	} else {
		m.stats.add(ts, list)
	}
	if list.Kind() == change.Delete {
		if m.dead == nil {
			m.dead = newMemTree()
		}
		m.dead.ReplaceOrInsert(memRow{row, newest})
	}
	return newest
}

// FirstLSN returns the lowest LSN of all changes, or 0 if the store is empty. The log is needed
// from there.
func (m *MemStore) FirstLSN() lsn.LSN {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.firstLSN
}

// Len returns the number of changes.
func (m *MemStore) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.count
}

// Empty reports whether the store has no change. A nil store is empty.
func (m *MemStore) Empty() bool { return m == nil || m.Len() == 0 }

// Bytes returns the memory of the changes, without the tree over the rows.
func (m *MemStore) Bytes() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changes.Size() + m.runBytes
}

// Deleted returns the number of rows whose newest change is a delete.
func (m *MemStore) Deleted() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.stats.Deletes
}

// MaxTimestamp returns the newest timestamp of all changes, or mvcc.Min if the store is empty.
func (m *MemStore) MaxTimestamp() mvcc.Timestamp {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.stats.Max
}

// Release reports to grow that the memory is freed. Nothing may be applied afterwards; running
// readers may continue. Release may be called twice.
func (m *MemStore) Release() {
	m.StopChangeLog()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes.Release()
	m.report(-m.runBytes)
}

// relevant reports whether a reader at snap sees any change.
func (m *MemStore) relevant(snap mvcc.Snapshot) bool {
	any, _ := m.concerns(snap, nil)
	return any
}

// concerns reports whether a reader of columns, as Stats.set has them, at snap needs any change, and
// whether it needs the changes of cells too, not only the deletes.
func (m *MemStore) concerns(snap mvcc.Snapshot, columns []schema.ColumnID) (any, cells bool) {
	if m == nil {
		return false, false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !snap.Sees(m.stats.Min) {
		return false, false
	}
	cells = m.stats.set(columns) || m.replaced && len(columns) > 0
	return cells || m.stats.Deletes > 0, cells
}

// newest returns the newest link of a row, 0 if it has none.
func (m *MemStore) newest(row batch.Ordinal) arena.Ref {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.newestLocked(row)
}

func (m *MemStore) newestLocked(row batch.Ordinal) arena.Ref {
	if r, found := m.rows.Get(memRow{row: row}); found {
		return r.newest
	}
	return m.runs.link(row)
}

// isDelete reports whether the change of a link is a delete.
func isDelete(store *arena.Arena, link arena.Ref) bool {
	return linkAt(store, link).list().Kind() == change.Delete
}

// deletedRow reports whether the newest change of a row is a delete. Most stores have no deletes
// and skip the lookup.
func (m *MemStore) deletedRow(row batch.Ordinal) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.stats.Deletes == 0 {
		return false
	}
	newest := m.newestLocked(row)
	return newest != 0 && isDelete(m.changes, newest)
}

// rowBack applies the changes of a row that are older than snap, newest first.
func (m *MemStore) rowBack(row batch.Ordinal, snap mvcc.Snapshot, r *RowState) {
	ref := newestBefore(m.changes, m.newest(row), snap)
	if ref == 0 {
		return
	}
	var few [8]change.List // most rows have fewer changes
	for _, list := range slices.Backward(appendState(few[:0], m.changes, ref)) {
		if list.Kind() == change.Replace {
			r.replaceBack(m.format, list.Image())
			return
		}
		r.applyBack(list)
	}
}

// appendRows appends the entries of the changed rows in [from, to), or only the entries of deleted rows.
// Only this takes the lock; reading the links of the entries does not.
func (m *MemStore) appendRows(dst []memRow, from batch.Ordinal, to uint64, onlyDead bool) []memRow {
	m.ascend(from, to, onlyDead, func(r memRow) bool {
		dst = append(dst, r)
		return true
	})
	return dst
}

// changesIn reports whether a row in [from, to) has changed, or, with onlyDead, was deleted.
func (m *MemStore) changesIn(from batch.Ordinal, to uint64, onlyDead bool) (found bool) {
	m.ascend(from, to, onlyDead, func(memRow) bool {
		found = true
		return false
	})
	return found
}

// ascend calls visit, with the lock held, for the entries in [from, to), or only for those of deleted
// rows, until it returns false.
func (m *MemStore) ascend(from batch.Ordinal, to uint64, onlyDead bool, visit func(memRow) bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	tree := m.rows
	if onlyDead {
		tree = m.dead
	}
	at, more := uint64(from), true // rows before at were visited
	if tree != nil {
		tree.AscendGreaterOrEqual(memRow{row: from}, func(r memRow) bool {
			if uint64(r.row) >= to {
				return false
			}
			more = m.runs.each(at, uint64(r.row), visit) && visit(r)
			at = uint64(r.row)
			return more
		})
	}
	if more {
		m.runs.each(at, to, visit)
	}
}

// Each calls yield for every change in a snapshot, by row, the changes of a row oldest first, which
// is the order of a redo file. A replacement is an update of all non-key columns. It stops at the
// first error and returns it. Lists are read-only, and valid until yield returns.
//
// All changes in the snapshot must have been applied. Later changes may be applied concurrently.
func (m *MemStore) Each(snap mvcc.Snapshot, yield func(change.Delta) error) error {
	var rows []memRow
	var changes []change.Delta
	var buf []byte
	for from, more := uint64(0), true; more; {
		rows, more = m.appendSome(rows[:0], from, batch.WindowRows)
		for _, r := range rows {
			changes, buf = m.appendChanges(changes[:0], buf[:0], r.row, newestBefore(m.changes, r.newest, snap))
			for _, d := range changes {
				if err := yield(d); err != nil {
					return err
				}
			}
		}
		if more {
			from = uint64(rows[len(rows)-1].row) + 1
		}
	}
	return nil
}

// appendSome appends the entries of the next rows at or after from, at most limit of them; more
// reports whether it stopped at the limit.
func (m *MemStore) appendSome(dst []memRow, from uint64, limit int) (rows []memRow, more bool) {
	if from > maxRow {
		return dst, false
	}
	m.ascend(batch.Ordinal(from), maxRow+1, false, func(r memRow) bool {
		dst = append(dst, r)
		more = len(dst) == limit
		return !more
	})
	return dst, more
}
