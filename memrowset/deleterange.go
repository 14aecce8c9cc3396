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
	all := m.ghosts.Load() == 0 // no row is looked at
	if !all {
		w.look.learn(m)
	}
	for rows := w.next(leafItems); len(rows) > 0; rows = w.next(leafItems) {
		if all {
			n += int64(len(rows))
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

// DeleteRange deletes the rows that LiveIn counts, at ts by the log record lsn, and returns their
// number. Rows that have not been changed before share one link. It passes over gaps, and sets those of
// the leaves that it leaves without a live row.
func (m *MemRowSet) DeleteRange(lower, upper []byte, ts mvcc.Timestamp, lsn lsn.LSN) (n int64) {
	w := m.newWalker(mvcc.Everything, lower, upper, false)
	w.look.learn(m)
	var first, last, shared arena.Ref
	for rows := w.next(leafItems); len(rows) > 0; rows = w.next(leafItems) {
		// An atomic store waits for the memory of its row, and later loads wait for the store. So all
		// rows of a leaf are loaded first: the CPU then waits for them together.
		var newest [leafItems]arena.Ref
		for i, row := range rows {
			newest[i] = m.newest(row)
		}
		for i, row := range rows {
			switch at := newest[i]; {
			case at != 0 && m.link(at).kind() == change.Delete:
				w.look.newest = max(w.look.newest, m.link(at).ts())
				continue
			case at != 0:
				m.addLink(row, at, ts, change.Delete, nil, nil)
			case shared == 0:
				m.addLink(row, 0, ts, change.Delete, nil, nil)
				shared = m.newest(row)
			default:
				m.newestWord(row).Store(uint64(shared))
			}
			w.look.newest = max(w.look.newest, ts)
			if last = row; n == 0 {
				first = row
			}
			n++
		}
	}
	if n == 0 {
		return 0
	}
	m.live.Add(-n)
	m.ghosts.Add(n)
	m.count(ts, lsn)
	if log := m.changeLog.Load(); log != nil {
		log.Add(logEntry{row: first, last: last, link: m.newest(first), lsn: lsn})
	}
	return n
}
