package tablet

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/oribi-db/oribi/internal/must"
)

// Batches that share a stripe run one after the other, in the order in which they came; a batch that
// shares no stripe with any of them does not wait.
func TestRowLocksAreGrantedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l rowLocks
		var got []string
		lock := func(name string, s ...uint16) {
			go func() { l.lock(s); got = append(got, name) }()
			synctest.Wait()
		}
		lock("a", 1, 1)
		lock("b", 1, 2) // waits for a
		lock("c", 2)    // waits for b, although nobody holds 2
		lock("d", 3, 4095)
		go func() { l.lockAll(); got = append(got, "all") }()
		synctest.Wait()
		lock("e", 7) // waits for all
		want := func(names ...string) {
			t.Helper()
			synctest.Wait()
			must.Equal(t, len(got), len(names), "granted", got, names)
			for i := range got {
				must.Equal(t, got[i], names[i], "granted", got, names)
			}
		}
		want("a", "d")
		l.unlock([]uint16{1, 1})
		want("a", "d", "b")
		l.unlock([]uint16{1, 2})
		want("a", "d", "b", "c")
		l.unlock([]uint16{2})
		want("a", "d", "b", "c")
		l.unlock([]uint16{3, 4095})
		want("a", "d", "b", "c", "all")
		l.unlockAll()
		want("a", "d", "b", "c", "all", "e")
		l.unlock([]uint16{7})
		must.Equal(t, *l.held, (stripes{}), "held")
		must.Equal(t, len(l.waiting), 0, "waiting")
	})
}

// No two of many concurrent batches have a stripe at the same time.
func TestRowLocksExclude(t *testing.T) {
	var l rowLocks
	var holders [64]atomic.Int32 // of each stripe
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 2000 {
				var mine []uint16 // some of them twice
				for range 1 + r.IntN(5) {
					mine = append(mine, uint16(r.IntN(len(holders))))
				}
				all := i%100 == 0
				if all {
					l.lockAll()
				} else {
					l.lock(mine)
				}
				for s := range holders {
					if !all && !slices.Contains(mine, uint16(s)) {
						continue
					}
					if holders[s].Add(1) != 1 {
						t.Errorf("stripe %d has two holders", s)
					}
				}
				for s := range holders {
					if all || slices.Contains(mine, uint16(s)) {
						holders[s].Add(-1)
					}
				}
				if all {
					l.unlockAll()
				} else {
					l.unlock(mine)
				}
			}
		})
	}
	wait.Wait()
}
