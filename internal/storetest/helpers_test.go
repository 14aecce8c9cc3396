package storetest

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

const minute = time.Minute

// fakeWall is a wall clock that moves only when a test moves it, and the disk of a store that uses
// it.
type fakeWall struct {
	mu  sync.Mutex
	now time.Time
	mem *vfs.Mem
}

func newFakeWall() *fakeWall {
	return &fakeWall{now: time.Date(2024, 2, 29, 23, 59, 0, 0, time.UTC), mem: vfs.NewMem()}
}

func (w *fakeWall) time() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *fakeWall) move(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// floorStore opens a store that keeps history for an hour, and its table of key k and value v.
func floorStore(t *testing.T, w *fakeWall) (*oribi.Store, *oribi.Table) {
	t.Helper()
	store := must.Get(oribi.Open("/floor",
		&oribi.Options{FS: w.mem, Clock: mvcc.NewHybridClock(w.time), History: time.Hour,
			Manual: true, RowSetBytes: 1 << 12}))(t)
	return store, numbersTable(t, store, "floor")
}

// numbersTable opens or creates a table of two int64 columns, key k and value v.
func numbersTable(t *testing.T, store *oribi.Store, name string) *oribi.Table {
	t.Helper()
	if table, err := store.Table(name); err == nil {
		return table
	}
	return tableOf(t, store, name, "k*:int64 v:int64")
}

// within fails the test, with the stacks of all goroutines, if fn does not return in time. The
// limit is far above the time that fn needs.
func within(t *testing.T, d time.Duration, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(d):
		stacks := make([]byte, 1<<20)
		t.Fatalf("timeout:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}
