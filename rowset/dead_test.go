package rowset

import (
	"encoding/binary"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/scan"
	"github.com/oribi-db/oribi/schema"
)

// countedRows returns a rowset of n rows with the keys 0 to n−1, inserted at 5.
func countedRows(t *testing.T, n int) *DiskRowSet {
	s := mustSchema([]schema.Column{{ID: 1, Name: "k", Type: schema.Int64}}, 1)
	d := newDisk()
	w := NewRollingWriter(d, s, func() uint64 { return 1 }, 1<<30)
	in := &change.Rows{Batch: batch.New(s.Columns, 0)}
	for i := range n {
		in.Batch.Columns[0].AppendCell(binary.LittleEndian.AppendUint64(nil, uint64(i)))
		in.Keys = append(in.Keys, binary.BigEndian.AppendUint64(nil, uint64(i)^1<<63))
		in.Undo = append(in.Undo, change.Delta{Row: uint32(i), TS: 5, List: change.AppendDelete(nil)})
	}
	in.Batch.Len = n
	must.Do(t, w.Append(in))
	out := must.Get(w.Finish())(t)
	set := must.Get(Open(s, out[0], Options{Blocks: d}))(t)
	t.Cleanup(set.Unref)
	return set
}

func deleteRow(set *DiskRowSet, row int, ts mvcc.Timestamp) {
	set.Apply(batch.Ordinal(row), ts, lsn.LSN(ts), change.AppendDelete(nil))
}

// rowsOf returns the keys of the first batches of a scan, at least limit of them.
func rowsOf(t *testing.T, set *DiskRowSet, snap mvcc.Snapshot, descending bool, limit int) (keys []uint64) {
	it := must.Get(newIterator(set, scan.Options{Schema: set.Schema, Columns: []int{0}, Snapshot: snap,
		Descending: descending, Limit: int64(limit)}))(t)
	for len(keys) < limit && it.Next() {
		b := it.Batch()
		for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
			keys = append(keys, binary.LittleEndian.Uint64(b.Columns[0].Cell(i)))
		}
	}
	must.Do(t, it.Close())
	return keys
}

// A scan passes over the dead rows that an earlier one has found, in whole blocks, also between live
// rows and up to the end; a scan of the time before the deletes does not.
func TestScansPassOverDeadRows(t *testing.T) {
	const n = 3*batch.WindowRows + 100
	live := map[int]bool{0: true, 5000: true, n - 1: true}
	set := countedRows(t, n)
	for i := range n {
		if !live[i] {
			deleteRow(set, i, mvcc.Timestamp(10+i))
		}
	}
	for _, descending := range []bool{false, true} {
		rowsOf(t, set, mvcc.Everything, descending, n)
	}
	known := *set.dead.Load()
	for _, c := range []struct{ from, to batch.Ordinal }{
		{0, 0}, {64, 4992}, {5056, n / 64 * 64}, {n, n},
	} {
		if got := known.after(c.from, n, mvcc.Everything); got != c.to {
			t.Errorf("the dead rows from %d on end at %d, want %d", c.from, got, c.to)
		}
		if got := known.before(0, c.to, mvcc.Everything); got != c.from {
			t.Errorf("the dead rows before %d begin at %d, want %d", c.to, got, c.from)
		}
	}
	for at, want := range map[mvcc.Snapshot]int{10: n, 2000: n - 1989, mvcc.Everything: len(live)} {
		for _, descending := range []bool{false, true} {
			if keys := rowsOf(t, set, at, descending, n); len(keys) != want {
				t.Errorf("%d rows at %d, want %d", len(keys), at, want)
			}
		}
	}
	deleteRow(set, 0, n+10)
	deleteRow(set, n-1, n+11)
	for _, descending := range []bool{false, true} {
		rowsOf(t, set, mvcc.Everything, descending, 1)
		keys := rowsOf(t, set, mvcc.Everything, descending, 1)
		it := must.Get(newIterator(set, scan.Options{Schema: set.Schema, Snapshot: mvcc.Everything, Descending: descending}))(t)
		if left := it.passDead(); len(keys) == 0 || keys[0] != 5000 || !left || it.next != 4992 && it.end != 5056 {
			t.Errorf("descending %t: row %d, rows from %d to %d are left", descending, keys, it.next, it.end)
		}
		must.Do(t, it.Close())
	}
}

// The counts of the deletes show that all rows are dead, from the last delete on.
func TestRowSetIsDeadAsOfItsLastDelete(t *testing.T) {
	set := countedRows(t, 3)
	for i, row := range []int{1, 0, 2} {
		if set.Dead(mvcc.Everything) {
			t.Errorf("dead after %d deletes", i)
		}
		deleteRow(set, row, mvcc.Timestamp(20-10*i+row*30))
	}
	for range 2 { // also when it is remembered
		for snap, want := range map[mvcc.Snapshot]bool{mvcc.Everything: true, mvcc.AsOf(60): true, mvcc.Before(60): false, 1: false} {
			if set.Dead(snap) != want {
				t.Errorf("dead at %d: %t", snap, !want)
			}
		}
	}
}

// Blocks that are added in any order, by runs of any length, are passed over in both directions as the
// bits of a bitmap are.
func TestDeadRowsAgreeWithABitmap(t *testing.T) {
	r := seedtest.Rand(t)
	const n = 5*batch.WindowRows + 1000
	set := countedRows(t, n)
	it := must.Get(newIterator(set, scan.Options{Schema: set.Schema, Snapshot: mvcc.Everything}))(t)
	defer it.Close()
	var dead [(n + deadBlockRows - 1) / deadBlockRows]bool
	for range 200 {
		from := r.IntN(n)
		to := min(n, from+r.IntN(1+r.IntN(6000)))
		if r.IntN(4) == 0 {
			to = min(n, from+r.IntN(200))
		}
		set.addDead(batch.Ordinal(from), batch.Ordinal(to), 7)
		for i := range dead {
			dead[i] = dead[i] || from <= i*deadBlockRows && min(n, (i+1)*deadBlockRows) <= to
		}
		known := set.dead.Load()
		if known == nil {
			continue
		}
		from, end := r.IntN(n), r.IntN(n+1)
		from, end = min(from, end), max(from, end)
		after, before := from, end
		for after < end && dead[after/deadBlockRows] {
			after++
		}
		for before > from && dead[(before-1)/deadBlockRows] {
			before--
		}
		for snap, seen := range map[mvcc.Snapshot]bool{8: true, 7: false} {
			wantAfter, wantBefore := after, before
			if !seen {
				wantAfter, wantBefore = from, end
			}
			if got := known.after(batch.Ordinal(from), batch.Ordinal(end), snap); int(got) != wantAfter {
				t.Fatalf("after %d, up to %d at %d: %d, want %d", from, end, snap, got, wantAfter)
			}
			if got := known.before(batch.Ordinal(from), batch.Ordinal(end), snap); int(got) != wantBefore {
				t.Fatalf("before %d, down to %d at %d: %d, want %d", end, from, snap, got, wantBefore)
			}
		}
	}
}
