package arena

import (
	"slices"
	"sync"
	"testing"
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
		if chunks := int64(n+journalChunk-1) / journalChunk; grown != chunks*journalChunk*8 {
			t.Errorf("%d records: grow was called with %d bytes", n, grown)
		}
		j.Release()
		j.Release()
		if grown != 0 {
			t.Errorf("%d records: %d bytes were not released", n, grown)
		}
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
			if rec[1] != next[rec[0]] {
				t.Fatalf("record %v, want number %d of that goroutine", rec, next[rec[0]])
			}
			next[rec[0]]++
		}
		at += len(some)
	}
	adders.Wait()
}
