package delta

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// A span contains a row if and only if one of its changes, undo or redo, in a file or in memory, is
// in it. It is empty only if the statistics of all stores exclude such changes.
func TestSpanFindsTheRowsChangedInIt(t *testing.T) {
	undos := appendFile(t, nil, []change.Delta{{Row: 1, TS: 10, List: setInt(11, 1)},
		{Row: 1, TS: 4, List: drop()}, {Row: 5000, TS: 6, List: drop()}}, true)
	redos := appendFile(t, nil, []change.Delta{{Row: 2, TS: 20, List: setInt(11, 1)},
		{Row: 2, TS: 25, List: setInt(11, 2)}, {Row: 3, TS: 22, List: drop()}}, false)
	mem := NewMemStore(nil, nil)
	for ts := mvcc.Timestamp(30); ts < 200; ts++ { // over several folds
		mem.Apply(7, ts, lsn.LSN(ts), setInt(11, int(ts)))
	}
	mem.Apply(4999, 50, 500, drop())
	at := map[int][]mvcc.Timestamp{1: {10, 4}, 5000: {6}, 2: {20, 25}, 3: {22}, 7: nil, 4999: {50}}
	for ts := mvcc.Timestamp(30); ts < 200; ts++ {
		at[7] = append(at[7], ts)
	}
	tr := &Tracker{Undo: undos, Redo: redos, Mem: mem}
	const rows = 6000
	for after := mvcc.Timestamp(0); after < 210; after += 1 + after/20 {
		for upTo := after; upTo < 210; upTo += 1 + (upTo-after)/10 {
			want, any := batch.MakeBitmap(rows), false
			for row, list := range at {
				for _, ts := range list {
					if ts > after && ts <= upTo {
						want.Set(row)
						any = true
					}
				}
			}
			checkEach(t, tr, at, after, upTo)
			s := tr.NewSpan(mvcc.AsOf(after), mvcc.AsOf(upTo))
			if any && s.Empty() {
				t.Fatalf("(%d, %d]: empty", after, upTo)
			}
			for from := 0; from < rows; from += batch.WindowRows {
				n := min(batch.WindowRows, rows-from)
				got := batch.MakeBitmap(n)
				must.Do(t, s.SetChanged(batch.Ordinal(from), n, got))
				for i := range n {
					must.Equal(t, got.Get(i), want.Get(from+i), after, upTo, "row", from+i, "marked")
				}
			}
		}
	}
	for _, span := range [][2]mvcc.Timestamp{{0, 3}, {10, 19}, {25, 29}, {199, 300}, {15, 15}} {
		if !tr.NewSpan(mvcc.AsOf(span[0]), mvcc.AsOf(span[1])).Empty() {
			t.Errorf("(%d, %d] is not empty", span[0], span[1])
		}
	}
}

// checkEach compares the changes that a span visits with the timestamps of the changes of each row.
func checkEach(t *testing.T, tr *Tracker, at map[int][]mvcc.Timestamp, after, upTo mvcc.Timestamp) {
	t.Helper()
	got := map[int][]mvcc.Timestamp{}
	s := tr.NewSpan(mvcc.AsOf(after), mvcc.AsOf(upTo))
	for _, from := range []batch.Ordinal{0, batch.WindowRows} {
		must.Do(t, s.Each(from, batch.WindowRows, func(row batch.Ordinal, ts mvcc.Timestamp) {
			got[int(row)] = append(got[int(row)], ts)
		}))
	}
	for row, list := range at {
		var want []mvcc.Timestamp
		for _, ts := range list {
			if ts > after && ts <= upTo {
				want = append(want, ts)
			}
		}
		slices.Sort(want)
		slices.Sort(got[row])
		must.Equal(t, got[row], want, after, upTo, "changes of row", row)
	}
}
