package oribi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// pinnedStore opens a store with a table, which it creates if need be.
func pinnedStore(t *testing.T, fsys vfs.FS) (*Store, *Table) {
	t.Helper()
	store := must.Get(Open("/store", &Options{FS: fsys, Manual: true, LogSegmentBytes: 4096}))(t)
	t.Cleanup(func() { store.Close() })
	if table, err := store.Table("t"); err == nil {
		return store, table
	}
	columns := must.Get(
		schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.String}}, 1))(t)
	table := must.Get(store.CreateTable("t", columns))(t)
	return store, table
}

// writeLog writes as many rows as fill a segment of the log of a pinnedStore.
func writeLog(t *testing.T, store *Store, table *Table) {
	t.Helper()
	b := store.NewBatch()
	b.Upsert(table, Row{"k": int64(1), "v": strings.Repeat("v", 5000)})
	must.Get(b.Commit(t.Context()))(t)
}

// markNow makes a writer mark its clock, and returns the mark in LOCK.
func markNow(t *testing.T, store *Store) mvcc.Timestamp {
	t.Helper()
	must.Do(t, store.core.Background.MarkClock(t.Context()))
	return markOf(t, store)
}

func markOf(t *testing.T, store *Store) mvcc.Timestamp {
	t.Helper()
	f := must.Get(store.opts.FS.Open(store.core.Dir.File(storedir.LockName), false))(t)
	defer f.Close()
	text := must.Get(io.ReadAll(io.NewSectionReader(f, 0, 256)))(t)
	var pid int
	var since string
	var mark uint64
	fmt.Sscanf(string(text), "pid %d since %s\nclock %d", &pid, &since, &mark) // without a mark, mark stays 0
	return mvcc.Timestamp(mark)
}

// follow opens a follower of a pinnedStore.
func follow(t *testing.T, fsys vfs.FS) *Store {
	t.Helper()
	s := must.Get(Open("/store", &Options{FS: fsys, Follow: true}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// A follower reads the mark before the log: a batch below the mark is in the log then. A batch and a
// mark come before each of its looks for a mark.
func TestFollowerReadsMarkBeforeLog(t *testing.T) {
	mem := vfs.NewMem()
	store, table := pinnedStore(t, mem)
	view := faultfs.New(mem)
	follower := follow(t, view)
	var batches []mvcc.Timestamp
	view.Watch(func(c faultfs.Call) error {
		if c.Op == faultfs.Open && strings.HasSuffix(c.Name, storedir.LockName) {
			writeLog(t, store, table)
			batches = append(batches, store.Visible())
			markNow(t, store)
		}
		return nil
	})
	must.Do(t, follower.Refresh(t.Context()))
	visible, reached := follower.Visible(), follower.core.Reached()
	if len(batches) == 0 || reached < batches[0] {
		t.Fatalf("%d looks for a mark; the follower answers up to %v", len(batches), reached)
	}
	for _, ts := range batches {
		if ts <= reached && ts > visible {
			t.Errorf("the follower answers up to %v, and does not see the batch of %v", reached, ts)
		}
	}
}

// A mark comes after the batches below it: until they are published, there is none.
func TestMarkWaitsForBatches(t *testing.T) {
	mem := vfs.NewMem()
	disk := faultfs.New(mem)
	store, table := pinnedStore(t, disk)
	follow(t, mem)
	before := markNow(t, store)
	synced, goOn := make(chan struct{}), make(chan struct{})
	var wrote atomic.Bool
	var once sync.Once
	disk.Watch(func(c faultfs.Call) error {
		switch {
		case !strings.HasSuffix(c.Name, ".wal"):
		case c.Op == faultfs.Write || c.Op == faultfs.Copy:
			wrote.Store(true)
		case c.Op == faultfs.Sync && wrote.Load():
			once.Do(func() { close(synced) })
			<-goOn
		}
		return nil
	})
	committed := make(chan error, 1)
	go func() {
		b := store.NewBatch()
		b.Upsert(table, Row{"k": int64(2), "v": "x"})
		_, err := b.Commit(t.Context())
		committed <- err
	}()
	<-synced
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must.Refuse(t, store.core.Background.MarkClock(ctx), "while a batch is not published")
	must.Equal(t, markOf(t, store), before, "while a batch is not published", "mark")
	close(goOn)
	must.Do(t, <-committed)
	if mark := markNow(t, store); mark <= store.Visible() {
		t.Errorf("mark %v, the batch has %v", mark, store.Visible())
	}
}

// A writer that has failed marks nothing: the record of its last batch may be in the log, and followers
// may still see it.
func TestPoisonedWriterMarksNothing(t *testing.T) {
	mem := vfs.NewMem()
	disk := faultfs.New(mem)
	store, table := pinnedStore(t, disk)
	follower := follow(t, mem)
	before := markNow(t, store)
	disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write, faultfs.Copy, faultfs.Sync}, Name: "*.wal",
		When: faultfs.After, Times: 1, Err: errors.New("failed")})
	b := store.NewBatch()
	b.Upsert(table, Row{"k": int64(2), "v": "x"})
	must.Refuse(t, must.Err(b.Commit(t.Context())), "the commit has not failed")
	must.Refuse(t, store.core.Background.MarkClock(t.Context()))
	must.Equal(t, markOf(t, store), before, "the mark")
	must.Do(t, follower.Refresh(t.Context()))
}

// A follower can answer as of a mark that it has read from then on, though LOCK has no mark any more.
func TestFollowerKeepsMark(t *testing.T) {
	mem := vfs.NewMem()
	store, _ := pinnedStore(t, mem)
	follower := follow(t, mem)
	mark := markNow(t, store)
	for range 2 {
		must.Do(t, follower.Refresh(t.Context()))
		must.Equal(t, follower.core.Reached(), mark, "the follower answers up to")
		must.Do(t, store.core.Locks.Mark(0))
	}
}

// A store without followers has no mark. A mark outlives the next writer, though it is without
// followers: the one after that may be the first to write.
func TestMarkIsKept(t *testing.T) {
	mem := vfs.NewMem()
	store, _ := pinnedStore(t, mem)
	must.Equal(t, markNow(t, store), 0, "the mark without followers")
	follower := follow(t, mem)
	mark := markNow(t, store)
	must.Do(t, errors.Join(follower.Close(), store.Close()))
	for range 2 {
		store, _ := pinnedStore(t, mem)
		if at := markOf(t, store); at != mark || mark == 0 {
			t.Errorf("the mark is %v, was %v", at, mark)
		}
		must.Do(t, store.Close())
	}
}
