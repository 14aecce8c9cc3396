package storeinfo

import (
	"math"
	"time"

	"github.com/oribi-db/oribi/internal/metrics"
)

// Histogram counts durations in buckets. A bucket is at most an eighth as wide as its upper bound.
type Histogram struct {
	Count int64
	Sum   time.Duration

	counts []int64 // by bucket; nil: all 0
}

// NewHistogram returns a histogram of durations whose sum is given, from the numbers of durations
// in its buckets.
func NewHistogram(counts []int64, sum time.Duration) Histogram {
	out := Histogram{Sum: sum, counts: counts}
	for _, n := range counts {
		out.Count += n
	}
	return out
}

// Buckets calls yield for each bucket that is not empty, in ascending order, until yield returns
// false. The bucket counts durations up to upper, inclusive, and above that of the bucket before.
// The upper bound of the last bucket, above 137 s, is math.MaxInt64. Its type is
// iter.Seq2[time.Duration, int64].
func (h Histogram) Buckets(yield func(upper time.Duration, count int64) bool) {
	for i, n := range h.counts {
		if n > 0 && !yield(metrics.Bound(i), n) {
			return
		}
	}
}

// Quantile returns a duration that at least the share q of all durations do not exceed: the upper
// bound of a bucket. q is from 0 to 1. It returns 0 if there are none.
func (h Histogram) Quantile(q float64) time.Duration {
	need := int64(math.Ceil(min(max(q, 0), 1) * float64(h.Count)))
	for i, n := range h.counts {
		if need -= n; need <= 0 && n > 0 {
			return metrics.Bound(i)
		}
	}
	return 0
}

func (h Histogram) write(t *metrics.Text, labels ...string) {
	counts := h.counts
	if counts == nil {
		counts = make([]int64, metrics.Buckets)
	}
	t.Histogram(counts, h.Sum, labels...)
}
