package budget

import (
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestBudgetCountsByKindAndInAll(t *testing.T) {
	b := New(100)
	b.Reserve(MemRowSet, 60)
	b.Reserve(Cache, 70)
	b.Release(MemRowSet, 20)
	b.Grower(Delta)(5)
	if b.Used() != 115 || b.UsedBy(MemRowSet) != 40 || b.UsedBy(Cache) != 70 || b.UsedBy(Delta) != 5 {
		t.Errorf("used %d: %d, %d, %d", b.Used(), b.UsedBy(MemRowSet), b.UsedBy(Cache), b.UsedBy(Delta))
	}
	must.Equal(t, b.Over(), 15, "over")
	must.Equal(t, b.Limit(), 100)
	b.Grower(Cache)(-70)
	must.Equal(t, b.Over(), 0, "over")
	must.Equal(t, b.Used(), 45, "used")
}

func TestNoLimitIsNeverOver(t *testing.T) {
	for _, b := range []*Budget{nil, New(0), New(-1)} {
		b.Reserve(Metadata, 1<<40)
		must.Equal(t, b.Over(), 0, "over")
		must.Equal(t, b.Limit(), 0)
		b.Release(Metadata, 1<<40)
		must.Equal(t, b.Used(), 0, "left")
		must.Equal(t, b.UsedBy(Metadata), 0)
	}
}

func TestReleasingTwicePanics(t *testing.T) {
	b := New(10)
	b.Reserve(Cache, 1)
	b.Reserve(Delta, 5)
	b.Release(Cache, 1)
	defer func() {
		if recover() == nil {
			t.Error("no panic, though another kind has bytes left")
		}
	}()
	b.Release(Cache, 1)
}

func TestCountsAreExactUnderConcurrency(t *testing.T) {
	b := New(1)
	var wg sync.WaitGroup
	for k := range Kinds {
		for range 4 {
			wg.Go(func() {
				for range 1000 {
					b.Reserve(k, 3)
					b.Release(k, 2)
				}
			})
		}
	}
	wg.Wait()
	for k := range Kinds {
		must.Equal(t, b.UsedBy(k), 4000, k)
	}
	must.Equal(t, b.Used(), 4000*int64(Kinds), "used")
}
