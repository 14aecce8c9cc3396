package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// A read by a unique index next to refreshes, of a follower whose writer keeps no history, returns a row with
// the values that it asks for, or none.
func TestFollowerReadsByIndexNextToRefreshes(t *testing.T) {
	needFollowers(t)
	ctx := context.Background()
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	clock := mvcc.NewHybridClock(func() time.Time { return time.UnixMicro(now.Load()) })
	mem := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true, Clock: clock, History: time.Second}))(t)
	defer store.Close()
	table := tableOf(t, store, "people", peopleColumns, oribi.Unique("by_email", "email"))
	b := store.NewBatch()
	put := func(i int) {
		for k := range 8 {
			b.DeleteIgnore(table, oribi.Row{"k": k}) // frees its email
		}
		for k := range 8 {
			b.Upsert(table, oribi.Row{"k": k, "email": fmt.Sprint((i+k)%8, "@"), "place": "", "v": i})
		}
		now.Add(int64(time.Hour / time.Microsecond))
		must.Get(b.Commit(ctx, oribi.NoSync))(t)
		b.Reset()
		must.Do(t, store.FlushTables(ctx))
		must.Do(t, table.Compact(ctx))
	}
	put(0)
	follower := openFollower(t, mem)
	read := must.Get(follower.Table("people"))(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop.Store(true)
		for i := range 60 {
			put(i + 1)
			must.Do(t, follower.Refresh(ctx))
		}
	})
	for g := range 3 {
		wg.Go(func() {
			for i := g; !stop.Load(); i++ {
				email := fmt.Sprint(i%8, "@")
				row, err := read.GetBy(ctx, "by_email", email)
				switch {
				case errors.Is(err, oribi.ErrTooOld): // refreshed again and again
				case err != nil:
					t.Errorf("%s: %v", email, err)
					stop.Store(true)
				case row["email"] != email:
					t.Errorf("%s: %v", email, row)
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
}
