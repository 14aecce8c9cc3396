package memrowset

import (
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// LiveIn returns the number of rows with keys in [lower, upper) whose newest change is not a delete; a
// nil bound is open. No writer may change them concurrently.
func (m *MemRowSet) LiveIn(lower, upper []byte) (n int64) {
	w := m.newWalker(mvcc.Everything, lower, upper, false)
	all := m.ghosts.Load() == 0
	if !all {
		w.look.learn(m)
	}
	for rows := w.next(leafItems); len(rows) > 0; rows = w.next(leafItems) {
		if all || w.leaf.death.load() == unchanged { // no row is looked at
			n += int64(len(rows))
			w.looked(nil, false)
			continue
		}
		for _, row := range rows {
			if live, _ := m.newestChange(row); live {
				n++
			}
		}
		w.looked(rows, true)
	}
	return n
}

// rangeDelete is a delete of a range.
type rangeDelete struct {
	m           *MemRowSet
	ts          mvcc.Timestamp
	shared      arena.Ref // the link of the rows without other changes
	first, last arena.Ref // the rows that it deletes
	n           int64
}

// DeleteRange deletes the rows that LiveIn counts, at ts by the log record lsn, and returns their
// number. Rows that have not been changed before share one link; see death. It passes over gaps, and sets
// those of the leaves that it leaves without a live row.
func (m *MemRowSet) DeleteRange(lower, upper []byte, ts mvcc.Timestamp, lsn lsn.LSN) int64 {
	w := m.newWalker(mvcc.Everything, lower, upper, false)
	w.look.learn(m)
	d := rangeDelete{m: m, ts: ts}
	for rows := w.next(leafItems); len(rows) > 0; rows = w.next(leafItems) {
		if l := w.leaf; len(rows) == l.n && l.death.load() == unchanged {
			l.death.become(unchanged, death(d.link()))
			d.deleted(rows[0], rows[len(rows)-1], len(rows))
			w.look.newest = ts
			continue
		}
		w.leaf.death.become(unchanged, changed)
		w.look.newest = max(w.look.newest, d.delete(rows))
	}
	if d.n == 0 {
		return 0
	}
	m.live.Add(-d.n)
	m.ghosts.Add(d.n)
	m.count(ts, lsn)
	if log := m.changeLog.Load(); log != nil {
		log.Add(logEntry{row: d.first, last: d.last, link: d.link(), lsn: lsn})
	}
	return d.n
}

// link returns the shared link.
func (d *rangeDelete) link() arena.Ref {
	if d.shared == 0 {
		d.shared = d.m.newLink(0, d.ts, change.Delete, nil, nil)
	}
	return d.shared
}

// deleted counts n rows, in order.
func (d *rangeDelete) deleted(first, last arena.Ref, n int) {
	if d.n == 0 {
		d.first = first
	}
	d.last = last
	d.n += int64(n)
}

// delete deletes some rows, unless they are deleted, and returns the newest timestamp at which one of them
// was deleted.
func (d *rangeDelete) delete(rows []arena.Ref) (ts mvcc.Timestamp) {
	// An atomic store waits for the memory of its row, and later loads wait for the store. So all
	// rows are loaded first: the CPU then waits for them together.
	m := d.m
	var newest [leafItems]arena.Ref
	for i, row := range rows {
		newest[i] = m.newest(row)
	}
	for i, row := range rows {
		switch at := newest[i]; {
		case at == 0:
			m.newestWord(row).Store(uint64(d.link()))
		case m.link(at).kind() == change.Delete:
			ts = max(ts, m.link(at).ts())
			continue
		default:
			m.addLink(row, at, d.ts, change.Delete, nil, nil)
		}
		ts = d.ts
		d.deleted(row, row, 1)
	}
	return ts
}
