package delta

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// The births and the rest that MakeBirths returns are the same changes as the undos that it was
// given.
func TestMakeBirthsLosesNothing(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		var births []Birth
		var all, rest []change.Delta
		first := uint32(0)
		for range rapid.IntRange(1, 4).Draw(t, "windows") {
			undos, rows := drawUndos(t)
			given := slices.Clone(undos)
			var others []change.Delta
			births, others = MakeBirths(births, undos, nil, first)
			for _, d := range given {
				d.Row += first
				all = append(all, d)
			}
			for _, d := range others {
				d.Row += first
				rest = append(rest, d)
			}
			first += rows
		}
		must.Do(t, CheckBirths(births, int64(first)))
		for i, b := range births {
			if b.Rows < minBirth {
				t.Errorf("a birth of %d rows", b.Rows)
			}
			if i > 0 && births[i-1].end() == uint64(b.First) && births[i-1].TS == b.TS {
				t.Errorf("births %d and %d are one", i-1, i)
			}
			rest = b.AppendUndos(rest, 0, uint64(first))
		}
		// births are the oldest
		slices.SortStableFunc(rest, func(a, b change.Delta) int { return int(a.Row) - int(b.Row) })
		sameDeltas(t, "undo", rest, all)
	})
}

// drawUndos draws the undos of a window of rows: runs of rows with the same insert, and others.
func drawUndos(t *rapid.T) (undos []change.Delta, rows uint32) {
	update := listOf(change.Update, map[schema.ColumnID][]byte{})
	for range rapid.IntRange(1, 5).Draw(t, "runs") {
		n := rapid.SampledFrom([]uint32{1, 2, minBirth - 1, minBirth, minBirth + 1, 300}).Draw(t, "rows")
		ts := mvcc.Timestamp(rapid.IntRange(5, 6).Draw(t, "ts"))
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		for range n {
			if kind == 1 && rows%3 == 0 || kind == 2 {
				undos = append(undos, change.Delta{Row: rows, TS: ts + 2, List: update})
			}
			if kind != 2 {
				undos = append(undos, change.Delta{Row: rows, TS: ts, List: deleteList})
			}
			rows++
		}
		if kind == 3 {
			rows++ // a row without undos
		}
	}
	return undos, rows
}

func TestMakeBirthsIsBounded(t *testing.T) {
	var births []Birth
	left := 0
	for i := range uint32(MaxBirths + 3) {
		undos := Birth{Rows: minBirth, TS: mvcc.Timestamp(1 + i)}.AppendUndos(nil, 0, minBirth)
		var rest []change.Delta
		births, rest = MakeBirths(births, undos, nil, i*minBirth)
		left += len(rest)
	}
	must.Equal(t, len(births), MaxBirths, "births")
	must.Equal(t, left, 3*minBirth, "undos left")
}

func TestCheckBirths(t *testing.T) {
	for _, c := range []struct {
		births []Birth
		valid  bool
	}{
		{nil, true},
		{[]Birth{{0, 10, 1}}, true},
		{[]Birth{{0, 3, 1}, {5, 5, 1}}, true},
		{[]Birth{{0, 11, 1}}, false},
		{[]Birth{{3, 0, 1}}, false},
		{[]Birth{{0, 3, 1}, {2, 2, 1}}, false},
		{[]Birth{{5, 3, 1}, {0, 2, 1}}, false},
		{[]Birth{{1<<32 - 1, 1<<32 - 1, 1}}, false},
		{make([]Birth, MaxBirths+1), false},
	} {
		err := CheckBirths(c.births, 10)
		if (err == nil) != c.valid || err != nil && !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("%v: %v", c.births[:min(len(c.births), 3)], err)
		}
	}
}
