package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// Writers that need more memory than there is wait for a flush. Each wait has an event when it
// begins and one when it ends, and the listener may read the table that is being written.
func TestStallsHaveEventsAndAreCounted(t *testing.T) {
	ctx := context.Background()
	var (
		table   *oribi.Table
		mu      sync.Mutex
		begun   = map[uint64]oribi.Event{}
		ended   []oribi.Event
		flushes int
	)
	store := must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, MemoryLimit: 16 << 20, Listener: func(e oribi.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == compaction.Stall {
				if _, err := table.Get(ctx, 0); err != nil {
					t.Errorf("get in a listener: %v", err)
				}
			}
			switch {
			case e.Kind == compaction.Flush && !e.Begin:
				flushes++
			case e.Kind == compaction.Stall && e.Begin:
				begun[e.Job] = e
			case e.Kind == compaction.Stall:
				ended = append(ended, e)
			}
		}}))(t)
	defer store.Close()
	table = tableOf(t, store, "t", "k*:int64 v:binary")
	value := make([]byte, 60<<10)
	for k := range 300 { // 18 MB; writers wait at 8
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "v": value})
		must.Get(b.Commit(ctx, oribi.NoSync))(t)
	}
	if flushes == 0 || len(ended) < flushes || len(begun) != len(ended) {
		t.Fatalf("%d flushes, %d waits began, %d ended", flushes, len(begun), len(ended))
	}
	m := metricsOf(t, store)
	sum := oribi.StallMetrics{Count: int64(len(ended))}
	for _, e := range ended {
		b, ok := begun[e.Job]
		if !ok || b.Table != "t" || e.Table != "t" || b.Why == "" || e.Why != b.Why ||
			e.Duration != e.Time.Sub(b.Time) || e.Duration <= 0 {
			t.Errorf("%+v\nbegan as %+v", e, b)
		}
		sum.Duration += e.Duration
	}
	must.Equal(t, m.Stalls, sum)
}
