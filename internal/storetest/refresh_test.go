package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// A snapshot of a follower keeps its state, even what nobody has read yet: blocks that the writer
// has dropped, and tables.
func TestSnapshotOfFollowerKeepsItsState(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 500, oribi.Options{})
	gone := numbersTable(t, store, "gone")
	fillNumbers(t, store, gone, 0, 100)
	must.Do(t, gone.Flush(t.Context()))
	follower := openFollower(t, mem)
	sn := must.Get(follower.Snapshot(t.Context()))(t)
	tables := follower.Tables()
	must.Do(t, store.DropTable("gone"))
	for range 3 {
		rewrite(t, store, table, 500)
		must.Do(t, follower.Refresh(t.Context()))
	}
	want := map[string]int{"numbers": 500, "gone": 100}
	for _, table := range tables {
		n := 0
		for row, err := range table.Scan(t.Context(), oribi.At(sn)).Rows() {
			must.Do(t, err, "table", table.Name())
			if row["v"] != int64(-n) {
				t.Fatalf("table %s: row %d is %v", table.Name(), n, row)
			}
			n++
		}
		must.Equal(t, n, want[table.Name()], "table", table.Name(), "rows")
	}
	kept := deadBytes(t, store)
	must.Do(t, sn.Close())
	must.Do(t, follower.Refresh(t.Context()))
	createAndDrop(t, store)
	if now := deadBytes(t, store); kept == 0 || now >= kept {
		t.Errorf("%d dead bytes with the snapshot, %d without", kept, now)
	}
}

// Wait returns for a batch that is copied into a window, for a batch that is written, and for new
// metadata.
func TestWaitReturnsForNewBatches(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 20, oribi.Options{})
	follower := openFollower(t, mem)
	none, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	must.Fail(t, follower.Wait(none), context.DeadlineExceeded, "without news")
	cancel()
	k := 20
	for i, change := range []func() error{
		func() error { fillNumbers(t, store, table, k, k+1); k++; return nil },
		func() error { fillNumbers(t, store, table, k, k+1); k++; return nil },
		func() error { return table.Flush(t.Context()) },
		func() error { _, err := store.CreateTable("x", table.Schema()); return err },
		func() error { return store.DropTable("x") },
	} {
		must.Do(t, change())
		within(t, minute, func() {
			if err := follower.Wait(t.Context()); err != nil {
				t.Errorf("change %d: %v", i, err)
			}
		})
		must.Do(t, follower.Refresh(t.Context()))
		must.Equal(t, countNumbers(t, follower), int64(k), "change", i, "rows")
	}
}

// A subscription in a follower yields what the writer commits, in order, also across flushes.
func TestSubscriptionInFollower(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	store, table := followedStore(t, mem, 10, oribi.Options{})
	follower := openFollower(t, mem)
	const rows = 40
	from := follower.Visible()
	next := 10
	done := make(chan error, 1)
	go func() {
		for k := 10; k < rows; k++ {
			b := store.NewBatch()
			b.Insert(table, oribi.Row{"k": k, "v": -k})
			_, err := b.Commit(context.Background(), oribi.NoSync)
			if err == nil && k%7 == 0 {
				err = table.Flush(context.Background())
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	within(t, minute, func() {
		for b, err := range follower.Subscribe(t.Context(), from, mvcc.Max) {
			if err != nil {
				t.Error(err)
				return
			}
			if len(b.Changes) != 1 || b.More {
				t.Errorf("%d changes", len(b.Changes))
			}
			if next++; next == rows {
				return
			}
		}
	})
	must.Do(t, <-done)
}

// Refresh of other stores does nothing.
func TestRefreshOfWriter(t *testing.T) {
	store, table := followedStore(t, vfs.NewMem(), 10, oribi.Options{})
	must.Do(t, store.Refresh(t.Context()))
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for k := 10; err == nil; k++ { // Wait may begin after the first ones
			b := store.NewBatch()
			b.Insert(table, oribi.Row{"k": k, "v": -k})
			_, err = b.Commit(context.Background())
			select {
			case <-stop:
				stopped <- err
				return
			default:
			}
		}
		stopped <- err
	}()
	must.Do(t, store.Wait(t.Context()))
	close(stop)
	must.Do(t, <-stopped)
}

// A writer that is killed between the intent of a commit and the commit leaves an anchor that
// announces an epoch which never comes. A refresh reads all metadata for it once, not each time. It
// sees what the next writer does.
func TestRefreshAfterKillBetweenIntentAndCommit(t *testing.T) {
	needFollowers(t)
	mem := vfs.NewMem()
	disk, view := faultfs.New(mem), faultfs.New(mem)
	store, table := followedStore(t, disk, 20, oribi.Options{})
	loads := 0
	view.Watch(func(c faultfs.Call) error {
		if strings.Contains(c.Name, "/meta/") && (c.Op == faultfs.Open || c.Op == faultfs.Read) {
			loads++
		}
		return nil
	})
	follower := openFollower(t, view)
	refresh := func() (reads int) {
		t.Helper()
		loads = 0
		must.Do(t, follower.Refresh(t.Context()))
		return loads
	}
	fillNumbers(t, store, table, 20, 30)
	must.Do(t, table.Flush(t.Context()))
	if n := refresh(); n > 0 {
		t.Errorf("%d reads of the metadata, though the journal has the changes", n)
	}
	fillNumbers(t, store, table, 30, 40)
	disk.Watch(func(c faultfs.Call) error {
		if c.Changes() && strings.Contains(c.Name, "/meta/") {
			return errors.New("killed")
		}
		return nil
	})
	must.Refuse(t, table.Flush(t.Context()), "the flush has not failed")
	if n := refresh(); n == 0 {
		t.Error("nobody has looked whether the commit has come")
	}
	for range 3 {
		if n := refresh(); n > 0 {
			t.Errorf("%d reads of the metadata, which has not changed", n)
		}
	}
	must.Equal(t, countNumbers(t, follower), 40, "rows")
	store.Close()
	store = must.Get(oribi.Open("/store", &oribi.Options{FS: mem, Manual: true}))(t)
	defer store.Close()
	table = must.Get(store.Table("numbers"))(t)
	fillNumbers(t, store, table, 40, 50)
	for range 2 {
		refresh()
		must.Equal(t, countNumbers(t, follower), 50, "rows")
		must.Do(t, table.Flush(t.Context()))
	}
}
