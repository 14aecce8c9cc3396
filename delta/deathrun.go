package delta

import (
	"github.com/google/btree"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/arena"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// deathRun is consecutive rows that were deleted together and have no other change in the store. They
// share one link, which is all that readers see of a run:
//
//	tree   3 ─▶ update        7 ─▶ delete ─▶ update
//	runs           [4, 7) ─▶ delete    [8, 900) ─▶ the same
type deathRun struct {
	first batch.Ordinal
	rows  uint32
	link  arena.Ref // a delete, the first change of the row
}

const deathRunBytes = 32 // in nodes of a tree that are half full to full

func (r deathRun) end() uint64 { return uint64(r.first) + uint64(r.rows) }

// deathRuns are disjoint runs, in a tree; nil for none.
type deathRuns struct{ tree *btree.BTreeG[deathRun] }

func (rs *deathRuns) add(r deathRun) {
	if rs.tree == nil {
		rs.tree = btree.NewG(memTreeDegree, func(a, b deathRun) bool { return a.first < b.first })
	}
	rs.tree.ReplaceOrInsert(r)
}

// from calls visit for the runs with rows at or after row, in their order, until it returns false.
func (rs *deathRuns) from(row uint64, visit func(deathRun) bool) {
	if rs.tree == nil || row > maxRow {
		return
	}
	begin := deathRun{first: batch.Ordinal(row)}
	rs.tree.DescendLessOrEqual(begin, func(r deathRun) bool {
		if r.end() > row {
			begin = r
		}
		return false
	})
	rs.tree.AscendGreaterOrEqual(begin, visit)
}

// link returns the link of a row, 0 if it is in no run.
func (rs *deathRuns) link(row batch.Ordinal) (link arena.Ref) {
	rs.from(uint64(row), func(r deathRun) bool {
		if r.first <= row {
			link = r.link
		}
		return false
	})
	return link
}

// each calls visit for the rows of the runs in [from, to) until it returns false, and reports whether it
// never did.
func (rs *deathRuns) each(from, to uint64, visit func(memRow) bool) bool {
	more := true
	rs.from(from, func(r deathRun) bool {
		for row := max(from, uint64(r.first)); more && row < min(to, r.end()); row++ {
			more = visit(memRow{batch.Ordinal(row), r.link})
		}
		return more && r.end() < to
	})
	return more
}

// DeleteRun deletes the rows [first, first+n) that are not deleted in the store, all at ts, and returns
// their number. They must exist in the files of the rowset. It takes time and memory for each row that
// has a change in the store, and for each run of other rows.
func (m *MemStore) DeleteRun(first batch.Ordinal, n uint32, ts mvcc.Timestamp, lsn lsn.LSN) (deleted int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var changed []memRow
	at, end := uint64(first), uint64(first)+uint64(n)
	m.rows.AscendGreaterOrEqual(memRow{row: first}, func(r memRow) bool {
		if uint64(r.row) >= end {
			return false
		}
		changed = append(changed, r)
		return true
	})
	link := m.addLink(0, ts, deleteList)
	var runs []deathRun
	add := func(from, to uint64) {
		m.runs.from(from, func(r deathRun) bool {
			if uint64(r.first) >= to {
				return false
			}
			if before := uint64(r.first); from < before {
				runs = append(runs, deathRun{batch.Ordinal(from), uint32(before - from), link})
			}
			from = r.end()
			return true
		})
		if from < to {
			runs = append(runs, deathRun{batch.Ordinal(from), uint32(to - from), link})
		}
	}
	for _, r := range changed {
		add(at, uint64(r.row))
		if at = uint64(r.row) + 1; !isDelete(m.changes, r.newest) {
			m.apply(r.row, ts, deleteList)
			deleted++
		}
	}
	add(at, end)
	rows := int64(0)
	for _, r := range runs {
		m.runs.add(r)
		rows += int64(r.rows)
	}
	m.report(int64(len(runs)) * deathRunBytes)
	m.runRows, m.stats.Deletes, m.count = m.runRows+rows, m.stats.Deletes+rows, m.count+int(rows)
	if deleted += rows; deleted == 0 {
		return 0
	}
	m.stats.Min, m.stats.Max = min(m.stats.Min, ts), max(m.stats.Max, ts)
	m.applied(logEntry{row: first, rows: n, link: link, lsn: lsn})
	return deleted
}

// report reports memory of the runs to grow.
func (m *MemStore) report(n int64) {
	if m.runBytes += n; m.grow != nil {
		m.grow(n)
	}
}
