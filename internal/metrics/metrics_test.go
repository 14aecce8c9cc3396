package metrics

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Each bucket ends at its bound, and its bounds are at most an eighth apart.
func TestBucketsHaveTheirBounds(t *testing.T) {
	for i := range Buckets - 1 {
		bound := Bound(i)
		must.Equal(t, bucket(bound), i, "bound", bound, "of bucket", i)
		must.Equal(t, bucket(bound+1), i+1, "bound", bound, "of bucket", i)
		if i > 0 && (bound-Bound(i-1))*8 > bound {
			t.Errorf("bucket %d: (%d, %d]", i, Bound(i-1), bound)
		}
	}
	if Bound(Buckets-2) != Longest || Bound(Buckets-1) != math.MaxInt64 || bucket(math.MaxInt64) != Buckets-1 ||
		bucket(0) != 0 {
		t.Errorf("bounds %v, %v", Bound(Buckets-2), Bound(Buckets-1))
	}
}

func randomDuration(r *rand.Rand) time.Duration { return time.Duration(r.Uint64() >> (1 + r.IntN(63))) }

func TestConcurrentRecordsAreAllCounted(t *testing.T) {
	const goroutines, each = 8, 2000
	seed := seedtest.Seed(t)
	h, c := NewHistogram(), new(Counter)
	want := make([]int64, Buckets)
	var wantSum time.Duration
	for g := range goroutines {
		r := rand.New(rand.NewPCG(seed, uint64(g)))
		for range each {
			d := randomDuration(r)
			wantSum += d
			for i := range want { // not the arithmetic of bucket
				if d <= Bound(i) {
					want[i]++
					break
				}
			}
		}
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			for i := range each {
				h.Record(randomDuration(r))
				c.Add(int64(i))
			}
		})
	}
	wg.Wait()
	counts, sum := h.Load()
	for i := range counts {
		must.Equal(t, counts[i], want[i], "bucket", i)
	}
	must.Equal(t, sum, wantSum, "sum")
	must.Equal(t, c.Load(), goroutines*each*(each-1)/2)
	h.Record(-1)
	if after, s := h.Load(); after[0] != counts[0]+1 || s != sum {
		t.Error("a negative duration does not count as 0")
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	h, c := NewHistogram(), new(Counter)
	must.Equal(t, testing.AllocsPerRun(100, func() { h.Record(time.Millisecond); c.Add(1) }), 0, "allocations")
}

func TestTextFormat(t *testing.T) {
	var x Text
	x.Family("a_total", "counter", "Line\nof \\ text.")
	x.Int(7)
	x.Int(-1, "table", "q\"\\\n\xff", "kind", "flush")
	x.Family("b", "gauge", "B.")
	x.Float(math.Inf(1))
	x.Float(math.NaN())
	x.Float(0.1)
	x.Seconds(1500 * time.Millisecond)
	h := NewHistogram()
	h.Record(64)
	h.Record(65)
	h.Record(Longest + 1)
	x.Family("h_seconds", "histogram", "H.")
	counts, sum := h.Load()
	x.Histogram(counts, sum, "sync", "true")
	want := []string{
		"# HELP a_total Line\\nof \\\\ text.", "# TYPE a_total counter", "a_total 7",
		`a_total{table="q\"\\\n` + "\uFFFD" + `",kind="flush"} -1`,
		"# HELP b B.", "# TYPE b gauge", "b +Inf", "b NaN", "b 0.1", "b 1.5",
		"# HELP h_seconds H.", "# TYPE h_seconds histogram",
		`h_seconds_bucket{sync="true",le="6.4e-08"} 1`, `h_seconds_bucket{sync="true",le="1.28e-07"} 2`,
	}
	got := strings.Split(string(x.Bytes()), "\n")
	if len(got) < len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		must.Equal(t, got[i], want[i], "line", i)
	}
	end := strings.Join(got[len(got)-5:], "\n")
	must.Equal(t, end, `h_seconds_bucket{sync="true",le="137.438953472"} 2
h_seconds_bucket{sync="true",le="+Inf"} 3
h_seconds_sum{sync="true"} 137.438953602
h_seconds_count{sync="true"} 3
`)
}

func BenchmarkHistogram(b *testing.B) {
	h := NewHistogram()
	b.RunParallel(func(pb *testing.PB) {
		for d := time.Duration(1); pb.Next(); d++ {
			h.Record(1000 + d&1023)
		}
	})
}

func BenchmarkCounter(b *testing.B) {
	c := new(Counter)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Add(1)
		}
	})
}
