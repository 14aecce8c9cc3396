package cfile

import (
	"bytes"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Whatever keys follow, VisitNear finds what VisitFloor finds. All keys in order take one read for each
// 256 KiB.
func TestVisitNearFindsWhatVisitFloorFinds(t *testing.T) {
	r := seedtest.Rand(t)
	keys, cells := randomKeyed(r, 2000)
	src := &tailed{Memory: keyedFileOf(t, cells, 400).src.(*block.Memory)}
	f := must.Get(Open(src, ReaderOptions{Indexes: cache.New(1 << 20)}))(t)
	type result struct {
		row   batch.Ordinal
		value string
		found bool
	}
	var u KeyRun
	for round := range 20 {
		var probes [][]byte
		for _, k := range keys {
			if round == 0 || r.IntN(1+round) == 0 {
				probes = append(probes, []byte(k))
			} else if r.IntN(1+10*round) == 0 {
				probes = append(probes, []byte(k+"?"))
			}
		}
		slices.SortFunc(probes, bytes.Compare)
		if round == 0 {
			for _, k := range probes { // the index is in memory from here on
				must.Do(t, f.VisitFloor(k, func(batch.Ordinal, []byte, []byte) error { return nil }))
			}
			src.reads = 0
		}
		for i, k := range probes {
			var want, got result
			into := func(to *result) func(batch.Ordinal, []byte, []byte) error {
				return func(row batch.Ordinal, _, value []byte) error {
					*to = result{row, string(value), true}
					return nil
				}
			}
			must.Do(t, f.VisitNear(&u, k, probes[i+1:], into(&got)))
			if round == 0 {
				continue
			}
			if err := f.VisitFloor(k, into(&want)); err != nil || got != want {
				t.Fatalf("%q: row %d, found %t, want row %d, found %t, %v", k, got.row, got.found, want.row,
					want.found, err)
			}
		}
		if most := int(f.size/maxRun) + 2; round == 0 && (src.reads > most || int64(len(u.bytes)) > maxRun) {
			t.Errorf("%d reads for a file of %d bytes, want at most %d", src.reads, f.size, most)
		}
	}
}
