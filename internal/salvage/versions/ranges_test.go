package versions

import (
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
)

// The deletes that Ranges adds end the rows of a key when all deletes of ranges that have the key do.
func TestRangesEndRowsAsAllTheirDeletesDo(t *testing.T) {
	rng := seedtest.Rand(t)
	for range 500 {
		var all []LoggedRange
		for at := range rng.IntN(30) {
			lower, upper := rng.IntN(20), rng.IntN(22)
			r := LoggedRange{Lower: fmt.Appendf(nil, "%02d", lower), Upper: fmt.Appendf(nil, "%02d", upper),
				TS: mvcc.Timestamp(100 + at), LSN: lsn.LSN(1 + at)}
			if upper >= 20 {
				r.Upper = nil
			}
			all = append(all, r)
		}
		ranges := NewRanges(slices.Clone(all))
		for k := range 20 {
			key := fmt.Appendf(nil, "%02d", k)
			var rows []*history
			for range rng.IntN(3) {
				rows = append(rows, &history{set: &rowset.Metadata{IncludedLSN: lsn.LSN(rng.IntN(32))}})
			}
			var ops []LoggedOp
			for at := range 31 {
				if rng.IntN(10) == 0 {
					ops = append(ops, LoggedOp{Kind: change.Insert, Key: key, LSN: lsn.LSN(at)})
				}
			}
			got := ranges.add(key, ops, rows)
			want := slices.Clone(ops)
			for _, r := range all {
				if string(r.Lower) <= string(key) && (r.Upper == nil || string(key) < string(r.Upper)) {
					want = append(want, LoggedOp{Kind: change.Delete, LSN: r.LSN})
				}
			}
			slices.SortStableFunc(want, func(a, b LoggedOp) int {
				if a.LSN != b.LSN {
					return int(a.LSN) - int(b.LSN)
				}
				return int(a.Kind) - int(b.Kind) // deletes first
			})
			must.Equal(t, endsOf(got, rows), endsOf(want, rows), "key", k)
			must.Equal(t, len(got) <= 2*len(ops)+len(rows), true, "number of operations")
		}
	}
}

// endsOf returns the LSNs of the operations that end the rows, and those that ops insert.
func endsOf(ops []LoggedOp, rows []*history) (ends []lsn.LSN) {
	type row struct{ included, end lsn.LSN }
	var all []row
	for _, r := range rows {
		all = append(all, row{included: r.set.IncludedLSN})
	}
	for _, op := range ops {
		if op.Kind == change.Insert {
			all = append(all, row{included: op.LSN})
			continue
		}
		for i := range all {
			if r := &all[i]; r.end == 0 && r.included < op.LSN {
				r.end = op.LSN
			}
		}
	}
	for _, r := range all {
		ends = append(ends, r.end)
	}
	return ends
}
