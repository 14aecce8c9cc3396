// Package memrowset stores the rows that were inserted since the last flush, in key order, with all
// their versions.
//
// A tree has one small item per row and changes only when a row is inserted. The item refers to the
// row's data, which is in memory without pointers:
//
//	tree item        header                                newest change      older change
//	┌────────┐       ┌──────────────────────────────┐      ┌──────────┐       ┌──────────┐
//	│ prefix │       │ inserted at ts 5             │      │ ts 9     │       │ ts 7     │
//	│ ref ───┼──────▶│ newest ──────────────────────┼─────▶│ older ───┼──────▶│ older: 0 │
//	└────────┘       │ key │ row image as inserted  │      │ delete   │       │ update   │
//	                 └──────────────────────────────┘      └──────────┘       └──────────┘
//
// One atomic store links a change into the chain. Readers therefore follow the links without a
// lock. A scan that began earlier may see either link, and its snapshot decides which changes it
// uses. Of every 16 consecutive updates the last has the full row image after it, and so has every
// replacement of a row, so reading the newest state of a row costs the same however many versions
// it has.
//
// Readers use only snapshots all of whose batches have been applied, so the result does not depend
// on when they read.
//
// Any number of goroutines may read and may change different rows at the same time. Two changes of
// the same row must not be concurrent; row locks ensure this. Insert panics if the key is live: the
// caller must have checked.
//
// Memory of rows is returned without copying and never written again: it is valid as long as it is
// referenced. Functions that build an image document how long it is valid.
//
// A Bloom filter over the keys, unless they are mostly inserted in order, makes an insert of a new
// key walk the tree once: the lookup before it mostly ends at the filter.
//
// Scans walk a copy-on-write snapshot of the tree. The first scan makes it, and all scans share it
// until the next insert. A scan every 10 ms makes random inserts 1.3 to 1.7 times slower; a snapshot
// for each insert would make them 3 to 10 times slower.
//
// Scans pass over runs of deleted rows; see gap.
//
// Source: tablet spec §9, §13.4. Simpler than Kudu: a B-tree with a lock instead of one with
// optimistic locking and version numbers; one set for all inserts, none for transactions; history
// is read from the newest version back, so reads far in the past visit all later changes.
package memrowset

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

const (
	treeRowBytes = 32 // memory of the tree per row: an item of 16 bytes in nodes that are half full to full
	treeGrowRows = 256
	insertRun    = 64 // rows that InsertMany adds while it holds the lock: about 10 µs
)

// MemRowSet is a set of rows in memory. Create one with New.
type MemRowSet struct {
	schema    *schema.Schema
	rowFormat *change.RowFormat
	grow      func(n int64)

	// mu guards tree and view, and changes of filter. It is never held while anything waits. Only
	// inserts change the tree: updates link a change to the row, in the arena, without mu. Scans
	// read view, a snapshot that shares nodes with tree, so a scan holds mu only to get it.
	mu     sync.RWMutex
	tree   *tree
	view   *tree     // nil when an insert made it stale
	filter keyFilter // of the keys in tree; most lookups of absent keys end here, without mu

	// least is at most keyenc.Head of the least key: after inserts in order, lookups of
	// earlier keys end here.
	least atomic.Uint64

	// alloc guards arena.Alloc. It is never held together with mu, so that writers can copy rows
	// into the arena while another inserts.
	alloc sync.Mutex
	arena *arena.Arena

	gaps  atomic.Bool   // walks set the gaps of nodes
	ended atomic.Uint64 // by two for each end of a gap

	changeLog atomic.Pointer[arena.Journal[logEntry]] // changes since Freeze; nil before

	// Counters, which are read without a lock: whether to flush is decided by them.
	filterBytes atomic.Int64

	rows     atomic.Int64 // in the tree, ghosts among them
	live     atomic.Int64
	ghosts   atomic.Int64
	firstLSN lsn.Atomic
	maxTS    atomic.Uint64
}

// New returns an empty set of rows of s. grow, which may be nil, is called with the bytes that the
// set allocates, and on Release with minus their sum. It is called with locks of the set held and
// must not call the set.
func New(s *schema.Schema, grow func(n int64)) *MemRowSet {
	if grow == nil {
		grow = func(int64) {}
	}
	m := &MemRowSet{schema: s, rowFormat: change.NewRowFormat(s), grow: grow, arena: arena.New(grow)}
	m.tree = newTree(m)
	m.least.Store(math.MaxUint64)
	return m
}

// Schema returns the schema of the rows.
func (m *MemRowSet) Schema() *schema.Schema { return m.schema }

// RowFormat returns the format of the row images that Insert takes and reads return.
func (m *MemRowSet) RowFormat() *change.RowFormat { return m.rowFormat }

// Insert adds a row, inserted at ts by the log record lsn. It copies key and row, which is an image
// in RowFormat. The key must be absent or a ghost, which then gets a REINSERT; Insert panics if the
// key is live.
func (m *MemRowSet) Insert(key []byte, ts mvcc.Timestamp, lsn lsn.LSN, row []byte) {
	m.checkOpen()
	if m.ghosts.Load() > 0 {
		// A ghost of this key was counted before the row's lock was released after its delete.
		if ref := m.find(key, true); ref != 0 {
			m.reinsert(ref, key, ts, row)
			m.count(ts, lsn)
			return
		}
	}
	ref := m.writeHeader(key, ts, row)
	m.mu.Lock()
	added := m.insert(ref, key)
	m.view = nil
	grown := m.addToFilter(key)
	m.mu.Unlock()
	if !added {
		panic(fmt.Sprintf("memrowset: insert of live key %x", key))
	}
	m.added(1, grown)
	m.count(ts, lsn)
}

// InsertMany calls Insert for rows[i] and keys[i] for all i, all at ts and lsn: one write batch.
// The keys are distinct and in any order; ascending keys are fastest. It takes locks and allocates
// memory once for many rows.
func (m *MemRowSet) InsertMany(keys [][]byte, ts mvcc.Timestamp, lsn lsn.LSN, rows [][]byte) {
	m.checkOpen()
	if m.ghosts.Load() > 0 {
		for i, key := range keys {
			m.Insert(key, ts, lsn, rows[i])
		}
		return
	}
	var refs [insertRun]arena.Ref
	for len(keys) > 0 {
		n := min(insertRun, len(keys))
		m.writeHeaders(refs[:n], keys, ts, rows)
		grown := int64(0)
		m.mu.Lock()
		for i, ref := range refs[:n] {
			if !m.insert(ref, keys[i]) {
				m.mu.Unlock()
				panic(fmt.Sprintf("memrowset: insert of live key %x", keys[i]))
			}
			grown += m.addToFilter(keys[i])
		}
		m.view = nil
		m.mu.Unlock()
		m.added(n, grown)
		keys, rows = keys[n:], rows[n:]
		m.count(ts, lsn)
	}
}

// insert inserts a row into the tree, unless it has the key. The caller holds mu.
func (m *MemRowSet) insert(ref arena.Ref, key []byte) (added bool) {
	p := newProbe(key)
	if p.prefix < m.least.Load() {
		m.least.Store(p.prefix)
	}
	return m.tree.insert(ref, p)
}

// addToFilter adds the key of a row that has just come into the tree, or all keys if the filter begins
// with it, and returns the bytes by which the filter has grown. The caller holds mu.
func (m *MemRowSet) addToFilter(key []byte) (grown int64) {
	switch {
	case m.filter.exists():
		return m.filter.add(hashKey(key))
	case m.filter.worthwhile(m.tree.len):
		var f keyFilter // readers must not see it before it is complete
		m.tree.root.each(func(ref arena.Ref) { grown += f.add(hashKey(m.header(ref).key())) })
		m.filter.free = f.free
		m.filter.parts.Store(f.parts.Load())
	}
	return grown
}

// added counts n new rows and reports the tree's memory to grow, for many rows at a time, and the
// bytes by which the filter has grown.
func (m *MemRowSet) added(n int, filter int64) {
	if filter > 0 {
		m.filterBytes.Add(filter)
		m.grow(filter)
	}
	m.live.Add(int64(n))
	rows := m.rows.Add(int64(n))
	if steps := rows/treeGrowRows - (rows-int64(n))/treeGrowRows; steps > 0 {
		m.grow(steps * treeGrowRows * treeRowBytes)
	}
}

func (m *MemRowSet) reinsert(ref arena.Ref, key []byte, ts mvcc.Timestamp, row []byte) {
	newest := m.newest(ref)
	if newest == 0 || m.link(newest).kind() != change.Delete {
		panic(fmt.Sprintf("memrowset: insert of live key %x", key))
	}
	m.addLink(ref, newest, ts, change.Reinsert, nil, row)
	m.endGaps(key)
	m.ghosts.Add(-1)
	m.live.Add(1)
}

// Mutate adds an update, a replacement or a delete to a row, at ts by the log record lsn, and
// copies list. The image of a replacement must have the key cells of the row. If the key is absent
// or a ghost, it returns false and does nothing.
func (m *MemRowSet) Mutate(key []byte, ts mvcc.Timestamp, lsn lsn.LSN, list change.List) bool {
	ref := m.find(key, true)
	if ref == 0 {
		return false
	}
	newest := m.newest(ref)
	if newest != 0 && m.link(newest).kind() == change.Delete {
		return false
	}
	switch kind := list.Kind(); kind {
	case change.Delete:
		m.addLink(ref, newest, ts, kind, nil, nil)
		m.live.Add(-1)
		m.ghosts.Add(1)
	case change.Update:
		m.update(ref, newest, ts, list)
	case change.Replace:
		m.addLink(ref, newest, ts, kind, list[:1], list.Image())
	default:
		panic(fmt.Sprintf("memrowset: mutation %x of key %x", list, key))
	}
	m.count(ts, lsn)
	if log := m.changeLog.Load(); log != nil {
		log.Add(logEntry{row: ref, link: m.newest(ref), lsn: lsn})
	}
	return true
}

// count updates the lowest LSN and the highest timestamp. Changes of different rows arrive in any
// order.
func (m *MemRowSet) count(ts mvcc.Timestamp, lsn lsn.LSN) {
	for {
		first := m.firstLSN.Load()
		if first != 0 && first <= lsn || m.firstLSN.CompareAndSwap(first, lsn) {
			break
		}
	}
	for {
		highest := m.maxTS.Load()
		if highest >= uint64(ts) || m.maxTS.CompareAndSwap(highest, uint64(ts)) {
			return
		}
	}
}

// Live reports whether the newest state of the key is a row.
func (m *MemRowSet) Live(key []byte) bool {
	ref := m.find(key, false)
	if ref == 0 {
		return false
	}
	live, _ := m.newestChange(ref)
	return live
}

// NewestRow returns the newest image of the key's row with all changes applied. If the key is
// absent or a ghost, live is false and row is nil. The image is read-only.
func (m *MemRowSet) NewestRow(key []byte) (row []byte, live bool) {
	return m.Get(key, mvcc.Everything, nil)
}

// Get returns the image of the key's row in snap. If no row with the key exists in snap, live is
// false and row is nil. If changes must be applied, the image is built in dst, whose content is
// overwritten; otherwise it is the set's memory, which is read-only.
func (m *MemRowSet) Get(key []byte, snap mvcc.Snapshot, dst []byte) (row []byte, live bool) {
	ref := m.find(key, false)
	if ref == 0 {
		return nil, false
	}
	row, _, live = m.rowAt(m.header(ref), snap, dst[:0])
	return row, live
}

// Has reports whether there is a row with the key in snap.
func (m *MemRowSet) Has(key []byte, snap mvcc.Snapshot) bool {
	ref := m.find(key, false)
	if ref == 0 || !snap.Sees(m.header(ref).ts()) {
		return false
	}
	at := m.newestIn(ref, snap)
	return at == 0 || m.link(at).kind() != change.Delete
}

// Len returns the number of rows, including ghosts.
func (m *MemRowSet) Len() int { return int(m.rows.Load()) }

// LiveRows returns the number of rows whose newest change is not a DELETE.
func (m *MemRowSet) LiveRows() int64 { return m.live.Load() }

// Bytes returns the memory of the set: the sum of the calls of grow, without the change log.
func (m *MemRowSet) Bytes() int64 {
	return m.arena.Size() + m.filterBytes.Load() + m.rows.Load()/treeGrowRows*(treeGrowRows*treeRowBytes)
}

// FirstLSN returns the lowest LSN of all changes, or 0 if the set is empty.
func (m *MemRowSet) FirstLSN() lsn.LSN { return m.firstLSN.Load() }

// MaxTimestamp returns the highest timestamp of all changes, or 0 if the set is empty.
func (m *MemRowSet) MaxTimestamp() mvcc.Timestamp { return mvcc.Timestamp(m.maxTS.Load()) }

// Release reports to grow that the memory is freed. No changes may follow; readers may continue,
// since their memory stays valid. It may be called once.
func (m *MemRowSet) Release() {
	if log := m.changeLog.Load(); log != nil {
		log.Release()
	}
	m.grow(m.arena.Size() - m.Bytes())
	m.arena.Release()
}
