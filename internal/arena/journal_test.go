package arena

import (
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// Records are read from any position, across chunks; grow is called on every allocation and on
// Release.
func TestJournalKeepsRecordOrder(t *testing.T) {
	for _, n := range []int{0, 1, journalChunk - 1, journalChunk, journalChunk + 1, 3*journalChunk + 7} {
		var grown int64
		j := NewJournal[int](8, func(n int64) { grown += n })
		var want []int
		for i := range n {
			j.Add(i)
			want = append(want, i)
		}
		for _, from := range []int{0, 1, n / 2, max(0, n-1), n} {
			var got []int
			for i := from; ; {
				some := j.Next(i)
				if len(some) == 0 {
					break
				}
				got = append(got, some...)
				i += len(some)
			}
			if from <= n && !slices.Equal(got, want[min(from, n):]) {
				t.Errorf("%d records, from %d: got %v", n, from, got)
			}
		}
		must.Equal(t, grown, int64(n+journalChunk-1)/journalChunk*journalChunk*8,
			n, "records: bytes reported")
		j.Release()
		j.Release()
		must.Equal(t, grown, 0, n, "records: bytes not released")
	}
}

// Records of each goroutine keep their order with concurrent adds and a concurrent reader; for the
// race detector.
func TestJournalIsSafeForConcurrentUse(t *testing.T) {
	j := NewJournal[[2]int](16, nil)
	const each = 2000
	var adders sync.WaitGroup
	for g := range 3 {
		adders.Go(func() {
			for i := range each {
				j.Add([2]int{g, i})
			}
		})
	}
	var next [3]int
	for at := 0; at < 3*each; {
		some := j.Next(at)
		for _, rec := range some {
			must.Equal(t, rec[1], next[rec[0]], "record", rec, "number", next[rec[0]], "of that goroutine")
			next[rec[0]]++
		}
		at += len(some)
	}
	adders.Wait()
}
