package delta

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// setInt returns an update of one int32 column.
func setInt(id schema.ColumnID, value int) change.List {
	cell := []byte{byte(value), byte(value >> 8), byte(value >> 16), byte(value >> 24)}
	return change.AppendColumn(change.AppendUpdateHeader(nil, change.Update), id, cell)
}

func drop() change.List { return change.AppendDelete(nil) }

func intOf(cell []byte) int {
	return int(cell[0]) | int(cell[1])<<8 | int(cell[2])<<16 | int(cell[3])<<24
}

func TestMemStoreCountsItsChanges(t *testing.T) {
	var grown int64
	m := NewMemStore(nil, func(n int64) { grown += n })
	if m.FirstLSN() != 0 || m.Len() != 0 || m.Bytes() != 0 || m.Deleted() != 0 ||
		m.MaxTimestamp() != mvcc.Min || m.relevant(mvcc.Everything) {
		t.Error("an empty store holds something")
	}
	m.Apply(7, 20, 3, setInt(11, 1))
	m.Apply(2, 10, 2, setInt(11, 2)) // another row: writers apply in any order
	m.Apply(7, 30, 5, drop())
	must.Equal(t, fmt.Sprint(m.FirstLSN(), m.Len(), m.Deleted(), uint64(m.MaxTimestamp())), "2 3 1 30",
		"first LSN, changes, deleted, newest")
	if m.relevant(10) || !m.relevant(11) {
		t.Error("the oldest change is at 10: it matters to 11 and not to 10")
	}
	if grown <= 0 || grown != m.Bytes() {
		t.Errorf("grown by %d bytes, holds %d", grown, m.Bytes())
	}
	m.Release()
	m.Release()
	must.Equal(t, grown, 0, "bytes left after Release")
}

func TestMemStoreCopiesLists(t *testing.T) {
	m := NewMemStore(nil, nil)
	list := setInt(11, 5)
	m.Apply(1, 10, 1, list)
	clear(list)
	var r RowState
	m.rowBack(1, mvcc.Everything, &r)
	if cell, ok := r.Cell(11); !ok || intOf(cell) != 5 {
		t.Errorf("cell %x, %v", cell, ok)
	}
}

// TestHotRowReadsAtEverySnapshot changes one row so often that it is folded many times over.
func TestHotRowReadsAtEverySnapshot(t *testing.T) {
	const changes = 1000
	m := NewMemStore(nil, nil)
	for i := range changes {
		// Column 11 always, the others sometimes; two changes share each timestamp.
		list := setInt(11, i)
		if i%10 == 0 {
			list = change.AppendColumn(list, schema.ColumnID(100+i/100), []byte{byte(i / 10)})
		}
		m.Apply(3, mvcc.Timestamp(10+i/2), lsn.LSN(i+1), list)
	}
	m.Apply(3, 10+changes/2, changes+1, drop())

	var r RowState
	for snap := mvcc.Snapshot(9); snap < 10+changes/2+3; snap++ {
		r.Reset()
		m.rowBack(3, snap, &r)
		seen := min(changes, max(0, 2*(int(snap)-10))) // changes with a timestamp below snap
		must.Equal(t, r.Deleted, snap > 10+changes/2, "snap", snap, "deleted")
		cell, ok := r.Cell(11)
		if ok != (seen > 0) || ok && intOf(cell) != seen-1 {
			t.Fatalf("snap %d: column 11 is %x, %v; %d changes seen", snap, cell, ok, seen)
		}
		for k := range changes / 100 {
			// The last change to the column is the last multiple of 10 in its hundred that was
			// seen.
			last := min(seen-1, 100*k+99) / 10 * 10
			want := seen > 100*k
			cell, ok := r.Cell(schema.ColumnID(100 + k))
			if ok != want || ok && cell[0] != byte(last/10) {
				t.Fatalf("snap %d: column %d is %x, %v; want %v, %d", snap, 100+k, cell, ok, want, byte(last/10))
			}
		}
	}
}

// TestDeleteOfAFoldedRowIsSeen places the delete at each change near a fold.
func TestDeleteOfAFoldedRowIsSeen(t *testing.T) {
	for updates := foldEvery - 3; updates <= foldEvery+2; updates++ {
		m := NewMemStore(nil, nil)
		for i := range updates {
			m.Apply(1, mvcc.Timestamp(i+1), lsn.LSN(i+1), setInt(11, i))
		}
		m.Apply(1, 500, 500, drop())
		var before, after RowState
		m.rowBack(1, 500, &before)
		m.rowBack(1, 501, &after)
		cell, _ := after.Cell(11)
		if before.Deleted || !after.Deleted || intOf(cell) != updates-1 || !m.deletedRow(1) {
			t.Errorf("after %d updates: deleted %v before, %v after; cell %x", updates, before.Deleted,
				after.Deleted, cell)
		}
	}
}

// TestHotRowIsReadFromFewChangeLists checks that the number of lists that are read for a hot row,
// newest or old, does not grow with its changes.
func TestHotRowIsReadFromFewChangeLists(t *testing.T) {
	m := NewMemStore(nil, nil)
	const changes = 64 * 500
	for i := range changes {
		m.Apply(0, mvcc.Timestamp(i+1), lsn.LSN(i+1), setInt(11, i))
	}
	for _, snap := range []mvcc.Snapshot{mvcc.Everything, changes / 2, 64, 65, 66, 2} {
		ref := newestBefore(m.changes, m.newest(0), snap)
		lists := appendState(nil, m.changes, ref)
		if len(lists) > foldEvery {
			t.Errorf("snap %d: %d lists make the state, want at most %d", snap, len(lists), foldEvery)
		}
		must.Equal(t, linkAt(m.changes, ref).ts(), min(snap, changes+1).Newest(), "snap", snap, "change")
	}
}

func TestEachVisitsChangesInFileOrder(t *testing.T) {
	m := NewMemStore(nil, nil)
	const rows = 3*batch.WindowRows + 5 // more than are copied under one lock
	lsn := lsn.LSN(0)
	for pass := range 2 {
		for i := range rows {
			lsn++
			row := batch.Ordinal((i * 7919) % rows * 3)
			m.Apply(row, mvcc.Timestamp(10+pass/2), lsn, setInt(11, pass))
		}
	}
	m.Apply(maxRow, 99, lsn, drop()) // the highest row ID
	var last change.Delta
	n := 0
	err := m.Each(mvcc.Everything, func(d change.Delta) error {
		if n > 0 && (d.Row < last.Row || d.Row == last.Row && intOf(last.List[3:]) != 0) {
			t.Fatalf("row %d %x after row %d %x", d.Row, d.List, last.Row, last.List)
		}
		last = d
		n++
		return nil
	})
	must.Do(t, err)
	must.Equal(t, n, 2*rows+1, "changes")
	must.Equal(t, n, m.Len())
	stop := errors.New("enough")
	must.Fail(t, m.Each(mvcc.Everything, func(change.Delta) error { return stop }), stop, "of yield")
}

func TestMemStoreRefusesImpossibleChanges(t *testing.T) {
	for name, misuse := range map[string]func(*MemStore){
		"reinsert":        func(m *MemStore) { m.Apply(9, 50, 9, change.AppendUpdateHeader(nil, change.Reinsert)) },
		"empty list":      func(m *MemStore) { m.Apply(9, 50, 9, nil) },
		"falling in time": func(m *MemStore) { m.Apply(1, 9, 9, setInt(11, 0)) },
		"deleted row":     func(m *MemStore) { m.Apply(2, 50, 9, setInt(11, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemStore(nil, nil)
			m.Apply(1, 10, 1, setInt(11, 0))
			m.Apply(2, 10, 1, drop())
			defer func() {
				if msg, _ := recover().(string); !strings.HasPrefix(msg, "delta: ") {
					t.Errorf("recovered %q", msg)
				}
				must.Equal(t, m.Len(), 2, "changes")
			}()
			misuse(m)
		})
	}
}

// TestWritersAndReadersAtOnce runs writers of different rows concurrently with readers. Whatever a
// reader sees of a row must be a prefix of its changes.
func TestWritersAndReadersAtOnce(t *testing.T) {
	const writers, rowsEach, changes = 4, 20, 200
	m := NewMemStore(nil, nil)
	var writing, reading sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range changes {
				for k := range rowsEach {
					row := batch.Ordinal(k*writers + w)
					m.Apply(row, mvcc.Timestamp(i+1), lsn.LSN(i+1), setInt(11, i))
				}
			}
		})
	}
	done := make(chan struct{})
	check := func(r *RowState, row int, snap mvcc.Snapshot) {
		if cell, ok := r.Cell(11); ok && intOf(cell) >= int(snap)-1 {
			t.Errorf("row %d at %d: value %d", row, snap, intOf(cell))
		}
	}
	for reader := range 2 {
		reading.Go(func() {
			tracker := &Tracker{Mem: m}
			var r RowState
			for snap := mvcc.Snapshot(1); ; snap = snap%changes + 1 {
				select {
				case <-done:
					return
				default:
				}
				if reader == 0 {
					for row := range writers * rowsEach {
						if err := tracker.RowAt(batch.Ordinal(row), snap, &r); err != nil {
							t.Error(err)
						}
						check(&r, row, snap)
					}
					continue
				}
				_, redo, err := tracker.Collect(0, writers*rowsEach, snap)
				if err != nil {
					t.Error(err)
				}
				for i, d := range redo {
					first := i == 0 || redo[i-1].Row != d.Row
					if first && d.TS != 1 || !first && d.TS != redo[i-1].TS+1 {
						t.Errorf("row %d: change at %d out of place", d.Row, d.TS)
					}
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	must.Equal(t, m.Len(), writers*rowsEach*changes, "changes")
}

// Changes applied after StartChangeLog are returned from any position on, in order, each with its
// LSN; earlier ones are not. The change log is counted as memory of the store.
func TestChangeLogHasTheChangesSinceItsStart(t *testing.T) {
	var grown int64
	m := NewMemStore(nil, func(n int64) { grown += n })
	m.Apply(7, 5, 1, setInt(11, 1))
	before := grown
	m.StartChangeLog()
	const n = 1000
	for i := range n {
		m.Apply(batch.Ordinal(i%10), mvcc.Timestamp(10+i), lsn.LSN(2+i), setInt(11, i))
	}
	m.Apply(7, 2000, 3000, drop())
	for _, from := range []int{0, 1, 700, n, n + 1} {
		want := from
		next, err := m.LoggedChanges(from, func(c LoggedChange) error {
			i := want
			want++
			if i == n {
				if c.Row != 7 || c.TS != 2000 || c.LSN != 3000 || c.List.Kind() != change.Delete {
					t.Errorf("the last change is %+v", c)
				}
				return nil
			}
			if cell, _ := c.List.Find(11); c.Row != batch.Ordinal(i%10) || c.TS != mvcc.Timestamp(10+i) ||
				c.LSN != lsn.LSN(2+i) || intOf(cell) != i {
				t.Errorf("change %d is %+v", i, c)
			}
			return nil
		})
		if err != nil || next != n+1 || want != n+1 {
			t.Errorf("from %d: next %d, %v", from, next, err)
		}
	}
	stop := errors.New("enough")
	if next, err := m.LoggedChanges(3, func(c LoggedChange) error {
		if c.LSN == 2+5 {
			return stop
		}
		return nil
	}); next != 5 || err != stop {
		t.Errorf("stopped at %d, %v", next, err)
	}
	if grown < before+n*logEntryBytes {
		t.Errorf("%d bytes reported for %d logged changes", grown-before, n)
	}
	m.Release()
	must.Equal(t, grown, 0, "bytes not released")
}

// Each returns the changes in its snapshot, although later changes are applied concurrently.
func TestEachIgnoresLaterChanges(t *testing.T) {
	m := NewMemStore(nil, nil)
	m.Apply(1, 5, 1, setInt(11, 1))
	m.Apply(2, 6, 2, setInt(11, 2))
	m.Apply(1, 7, 3, setInt(11, 3))
	m.Apply(2, 7, 3, drop())
	m.Apply(3, 8, 4, setInt(11, 4))
	for snap, want := range map[mvcc.Snapshot]string{5: "", 6: "1@5", 7: "1@5 2@6", 8: "1@5 1@7 2@6 2@7",
		mvcc.Everything: "1@5 1@7 2@6 2@7 3@8"} {
		var got []string
		must.Do(t, m.Each(snap, func(d change.Delta) error {
			got = append(got, fmt.Sprintf("%d@%d", d.Row, uint64(d.TS)))
			return nil
		}))
		must.Equal(t, strings.Join(got, " "), want, "snap", uint64(snap), got, want)
	}
}

// TestReplacementsNearFolds replaces a row at each change near a fold, and compares every snapshot
// with the same store that got updates of all columns.
func TestReplacementsNearFolds(t *testing.T) {
	cells := func(i int) map[schema.ColumnID][]byte {
		return map[schema.ColumnID][]byte{11: {byte(i), byte(i >> 8), 0, 0}, 12: []byte(fmt.Sprint(i)), 13: nil,
			300: {byte(i)}, 9<<7 | 5: {7: byte(i)}}
	}
	for at := foldEvery - 2; at <= foldEvery+1; at++ {
		lists, images := NewMemStore(nil, nil), NewMemStore(testFormat, nil)
		const changes = 3*foldEvery + 5
		for i := 1; i <= changes; i++ {
			list := setInt(11, 1000+i)
			if i == 5 || i == at || i == at+foldEvery+1 {
				list = listOf(change.Update, cells(i))
			}
			lists.Apply(3, mvcc.Timestamp(i), lsn.LSN(i), list)
			images.Apply(3, mvcc.Timestamp(i), lsn.LSN(i), replacement(list))
		}
		for snap := mvcc.Snapshot(1); snap <= changes+1; snap++ {
			var want, got RowState
			lists.rowBack(3, snap, &want)
			images.rowBack(3, snap, &got)
			for _, c := range testSchema.Columns[1:] {
				a, aok := want.Cell(c.ID)
				b, bok := got.Cell(c.ID)
				if aok != bok || !sameCell(a, b) {
					t.Fatalf("replaced at %d, snapshot %d: column %d is %x %v, want %x %v", at, snap,
						c.ID, b, bok, a, aok)
				}
			}
		}
		must.Equal(t, eachOf(t, images), eachOf(t, lists), "replaced at", at, "changes for a file")
		if ref := images.newest(3); len(appendState(nil, images.changes, ref)) > foldEvery {
			t.Errorf("replaced at %d: %d lists", at, len(appendState(nil, images.changes, ref)))
		}
	}
}

func eachOf(t *testing.T, m *MemStore) (text string) {
	t.Helper()
	must.Do(t, m.Each(mvcc.Everything, func(d change.Delta) error {
		text += fmt.Sprintf("%d %d %s\n", d.Row, uint64(d.TS), d.List)
		return nil
	}))
	return text
}

func TestReplacementEndsTheWayBack(t *testing.T) {
	m := NewMemStore(testFormat, nil)
	for i := range 50 {
		m.Apply(1, mvcc.Timestamp(i+1), lsn.LSN(i+1), setInt(11, i))
	}
	image := testFormat.AppendRow(nil, [][]byte{{7: 0}, {7, 0, 0, 0}, nil, nil, nil, nil})
	m.Apply(1, 100, 100, change.AppendReplace(nil, image))
	m.Apply(1, 101, 101, setInt(300, 1))
	must.Equal(t, len(appendState(nil, m.changes, m.newest(1))), 2, "lists make the state")
	var r RowState
	m.rowBack(1, mvcc.Everything, &r)
	must.Equal(t, r.complete(&Stats{Columns: make([]ColumnUpdates, 9)}), true, "older stores are still read")
}

// A row with many changes, three of them at each timestamp, is found as of every snapshot.
func TestSkipsFindEveryChange(t *testing.T) {
	const changes = 30_000
	m := NewMemStore(testFormat, nil)
	for i := range changes {
		m.Apply(1, mvcc.Timestamp(20+i/3), 1, setInt(11, i))
	}
	newest := m.newest(1)
	for ts := mvcc.Timestamp(19); ts < 20+changes/3+1; ts += 7 {
		snap := mvcc.AsOf(ts)
		want := newest // by a walk over all links
		for want != 0 && !snap.Sees(linkAt(m.changes, want).ts()) {
			want = linkAt(m.changes, want).prev()
		}
		must.Equal(t, newestBefore(m.changes, newest, snap), want, "as of", ts, "link")
	}
}
