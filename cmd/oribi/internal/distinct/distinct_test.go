package distinct

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestEstimatesIgnoreRepetitions(t *testing.T) {
	for _, n := range []int{0, 1, 2, 10, 100, 1000, 10_000, 100_000, 1_000_000} {
		var e Estimator
		for range 2 {
			for i := range n {
				e.Add(binary.LittleEndian.AppendUint64(nil, uint64(i)))
			}
		}
		if got := e.Count(); math.Abs(float64(got-int64(n))) > 0.05*float64(n) {
			t.Errorf("%d values: estimated %d", n, got)
		}
	}
}
