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
	m.eachLive(lower, upper, func(arena.Ref) { n++ })
	return n
}

// DeleteRange deletes the rows that LiveIn counts, at ts by the log record lsn, and returns their
// number. Rows that have not been changed before share one link.
func (m *MemRowSet) DeleteRange(lower, upper []byte, ts mvcc.Timestamp, lsn lsn.LSN) (n int64) {
	var first, last, shared arena.Ref
	m.eachLive(lower, upper, func(row arena.Ref) {
		switch newest := m.newest(row); {
		case newest != 0:
			m.addLink(row, newest, ts, change.Delete, nil, nil)
		case shared == 0:
			m.addLink(row, 0, ts, change.Delete, nil, nil)
			shared = m.newest(row)
		default:
			m.newestWord(row).Store(uint64(shared))
		}
		if last = row; n == 0 {
			first = row
		}
		n++
	})
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

// eachLive calls use with the rows with keys in [lower, upper) whose newest change is not a delete, in
// the order of their keys. It passes over gaps, and sets those that use leaves. No writer may change
// the rows concurrently.
func (m *MemRowSet) eachLive(lower, upper []byte, use func(row arena.Ref)) {
	w := m.newWalker(mvcc.Everything, lower, upper, false)
	w.look.learn(m)
	for rows := w.next(leafItems); len(rows) > 0; rows = w.next(leafItems) {
		for _, row := range rows {
			if live, _ := m.newestChange(row); live {
				use(row)
			}
		}
		w.looked(rows, true)
	}
}
