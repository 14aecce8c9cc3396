package delta

import (
	"cmp"
	"slices"

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

const deathRunBytes = 16

func (r deathRun) end() uint64 { return uint64(r.first) + uint64(r.rows) }

// deathRuns are disjoint, in the order of their rows.
type deathRuns []deathRun

// from returns the runs with rows at or after row.
func (rs deathRuns) from(row uint64) deathRuns {
	i, _ := slices.BinarySearchFunc(rs, row, func(r deathRun, row uint64) int {
		if r.end() <= row {
			return -1
		}
		return 1
	})
	return rs[i:]
}

// link returns the link of a row, 0 if it is in no run.
func (rs deathRuns) link(row batch.Ordinal) arena.Ref {
	if rs = rs.from(uint64(row)); len(rs) > 0 && rs[0].first <= row {
		return rs[0].link
	}
	return 0
}

// each calls visit for the rows of the runs in [from, to) until it returns false.
func (rs deathRuns) each(from, to uint64, visit func(memRow) bool) bool {
	for _, r := range rs.from(from) {
		for row := max(from, uint64(r.first)); row < min(to, r.end()); row++ {
			if !visit(memRow{batch.Ordinal(row), r.link}) {
				return false
			}
		}
		if r.end() >= to {
			break
		}
	}
	return true
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
		for _, r := range m.runs.from(from) {
			if uint64(r.first) >= to {
				break
			}
			if before := uint64(r.first); from < before {
				runs = append(runs, deathRun{batch.Ordinal(from), uint32(before - from), link})
			}
			from = r.end()
		}
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
		rows += int64(r.rows)
	}
	if len(runs) > 0 {
		m.runs = append(m.runs, runs...)
		slices.SortFunc(m.runs, func(a, b deathRun) int { return cmp.Compare(a.first, b.first) })
		m.report(int64(len(runs)) * deathRunBytes)
	}
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
