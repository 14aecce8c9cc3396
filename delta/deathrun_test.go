package delta

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// A store whose rows were deleted in runs has the same content as a store that got a delete of each row.
func TestRunsOfDeletesAreDeletesOfTheirRows(t *testing.T) {
	rng := seedtest.Rand(t)
	const rows = 300
	for range 200 {
		grown := int64(0)
		runs, single := NewMemStore(testFormat, func(n int64) { grown += n }), NewMemStore(testFormat, nil)
		runs.StartChangeLog()
		logged := NewMemStore(testFormat, nil) // from the change log
		var dead [rows]bool
		ts := mvcc.Timestamp(1)
		for range 1 + rng.IntN(40) {
			ts += mvcc.Timestamp(1 + rng.IntN(2))
			first := rng.IntN(rows)
			if rng.IntN(2) == 0 {
				if !dead[first] {
					list := setInt(11, int(ts))
					runs.Apply(batch.Ordinal(first), ts, lsn.LSN(ts), list)
					single.Apply(batch.Ordinal(first), ts, lsn.LSN(ts), list)
				}
				continue
			}
			n := 1 + rng.IntN(rows-first)
			want := int64(0)
			for row := first; row < first+n; row++ {
				if !dead[row] {
					single.Apply(batch.Ordinal(row), ts, lsn.LSN(ts), drop())
					dead[row] = true
					want++
				}
			}
			must.Equal(t, runs.DeleteRun(batch.Ordinal(first), uint32(n), ts, lsn.LSN(ts)), want, "rows deleted")
		}
		must.Get(runs.LoggedChanges(0, func(c LoggedChange) error {
			if c.Rows > 0 {
				logged.DeleteRun(c.Row, c.Rows, c.TS, c.LSN)
			} else {
				logged.Apply(c.Row, c.TS, c.LSN, c.List)
			}
			return nil
		}))(t)
		must.Equal(t, eachOf(t, runs), eachOf(t, single), "changes")
		must.Equal(t, eachOf(t, logged), eachOf(t, single), "changes from the change log")
		must.Equal(t, fmt.Sprint(runs.Len(), runs.Deleted(), runs.FirstLSN(), runs.MaxTimestamp(), runs.stats),
			fmt.Sprint(single.Len(), single.Deleted(), single.FirstLSN(), single.MaxTimestamp(), single.stats), "counts")
		for range 20 {
			snap, row := mvcc.Snapshot(rng.IntN(int(ts)+2)), batch.Ordinal(rng.IntN(rows))
			from, to := row, uint64(row)+uint64(rng.IntN(100))
			var got, want RowState
			runs.rowBack(row, snap, &got)
			single.rowBack(row, snap, &want)
			must.Equal(t, got.Deleted, want.Deleted, "row", row, "at", uint64(snap))
			must.Equal(t, runs.deletedRow(row), dead[row], "row", row)
			for _, onlyDead := range []bool{false, true} {
				must.Equal(t, runs.changesIn(from, to, onlyDead), single.changesIn(from, to, onlyDead), "changes in", from, to)
				must.Equal(t, fmt.Sprint(rowsOf(runs, from, to, onlyDead)), fmt.Sprint(rowsOf(single, from, to, onlyDead)),
					"rows in", from, to)
			}
		}
		runs.Release()
		must.Equal(t, grown, 0, "bytes not released")
	}
}

func rowsOf(m *MemStore, from batch.Ordinal, to uint64, onlyDead bool) (rows []batch.Ordinal) {
	for _, r := range m.appendRows(nil, from, to, onlyDead) {
		rows = append(rows, r.row)
	}
	return rows
}

func TestChangesOfRowsInRunsAreRefused(t *testing.T) {
	m := NewMemStore(nil, nil)
	m.DeleteRun(5, 10, 7, 1)
	defer func() {
		must.Equal(t, fmt.Sprint(recover()), "delta: update of row 14 at 8 after its delete", "panic")
	}()
	m.Apply(14, 8, 2, setInt(11, 1))
}
