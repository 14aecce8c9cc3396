package budget

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// Operations of random sizes, some above the limit, all end, and exceed the limit only alone.
func TestGateBoundsConcurrentOperations(t *testing.T) {
	const limit = 100
	r, g := seedtest.Rand(t), NewGate(limit)
	sizes := make([][]int64, 16)
	for i := range sizes {
		for range 200 {
			sizes[i] = append(sizes[i], 1+r.Int64N(60)+r.Int64N(2)*r.Int64N(2)*r.Int64N(2)*80)
		}
	}
	var held, running atomic.Int64
	var wg sync.WaitGroup
	for _, mine := range sizes {
		wg.Go(func() {
			for _, n := range mine {
				g.Acquire(n)
				if sum, others := held.Add(n), running.Add(1); sum > limit && others > 1 {
					t.Errorf("%d bytes of %d operations", sum, others)
				}
				running.Add(-1)
				held.Add(-n)
				g.Release(n)
			}
		})
	}
	wg.Wait()
	must.Equal(t, g.Used(), 0, "bytes at the end")
}

// Small operations do not overtake a large operation that came before them. Bytes that are added
// count.
func TestGateKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(10)
		g.Acquire(4)
		g.Add(2)
		var order []int64
		var mu sync.Mutex
		for _, n := range []int64{9, 2, 1} {
			go func() {
				g.Acquire(n)
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
				g.Release(n)
			}()
			synctest.Wait()
		}
		must.Equal(t, len(order), 0, order, "did not wait")
		g.Release(6)
		synctest.Wait()
		must.Equal(t, len(order), 3, "order", order)
		must.Equal(t, order[0], 9, "order", order)
	})
	var none *Gate
	none.Acquire(1)
	none.Add(1)
	none.Release(2)
	must.Equal(t, none.Used(), 0, "a nil gate counts")
}
