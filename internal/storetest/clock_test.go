package storetest

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// With a wall clock past the last timestamp, in the year 2112, commits fail and change nothing.
// They succeed again once the clock is right: no lock is left held.
func TestWallClockPastTheLastTimestamp(t *testing.T) {
	w := newFakeWall()
	store, table := floorStore(t, w)
	defer store.Close()
	fillNumbers(t, store, table, 0, 10)
	right := w.time()
	w.move(time.Date(2113, 1, 1, 0, 0, 0, 0, time.UTC).Sub(right))
	ctx := t.Context()
	commit := func(k int) error {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": k, "v": -k})
		_, err := b.Commit(ctx)
		return err
	}
	within(t, time.Minute, func() {
		for range 2 { // the second would wait for locks that the first left
			if err := commit(10); err == nil {
				t.Error("a batch was committed")
			}
		}
		if _, err := store.NewBatch().Commit(ctx); err == nil {
			t.Error("an empty batch was committed")
		}
		if sn, err := store.Snapshot(ctx); err != nil { // needs no timestamp of its own
			t.Errorf("snapshot: %v", err)
		} else {
			sn.Close()
		}
		if err := table.Flush(ctx); err != nil {
			t.Errorf("flush: %v", err)
		}
		if n, err := table.Count(ctx); err != nil || n != 10 {
			t.Errorf("%d rows, %v; want 10", n, err)
		}
	})
	w.move(right.Sub(w.time()))
	must.Do(t, commit(10))
	if n, err := table.Count(ctx); err != nil || n != 11 {
		t.Errorf("after the clock was corrected: %d rows, %v; want 11", n, err)
	}
}
