package oribi

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// A mark is read only if it is whole: another process may be writing it.
func TestMarkIsReadWhole(t *testing.T) {
	const ts = mvcc.Timestamp(7353474760878567423)
	text := appendMark([]byte("pid 4711 since 2026-11-28T02:00:00Z\n"), ts)
	if got := decodeMark(text); got != ts {
		t.Errorf("%q is %d, want %d", text, got, ts)
	}
	for n := range text {
		if got := decodeMark(text[:n]); got != 0 {
			t.Errorf("%q is %d", text[:n], got)
		}
		torn := append([]byte{}, text...)
		if torn[n] ^= 1; decodeMark(torn) != 0 && n > 36 { // the first line may be any
			t.Errorf("%q is %d", torn, decodeMark(torn))
		}
	}
	if got := appendMark(nil, 0); len(got) != 0 {
		t.Errorf("no mark is %q", got)
	}
}

// markNow makes a writer mark its clock, and returns the mark in LOCK.
func markNow(t *testing.T, store *Store) mvcc.Timestamp {
	t.Helper()
	if err := store.markClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return markOf(t, store)
}

func markOf(t *testing.T, store *Store) mvcc.Timestamp {
	t.Helper()
	b, err := readFile(store.opts.FS, store.path(lockName), lockMax)
	if err != nil {
		t.Fatal(err)
	}
	return decodeMark(b)
}

// follow opens a follower of a pinnedStore.
func follow(t *testing.T, fsys vfs.FS) *Store {
	t.Helper()
	s, err := Open("/store", &Options{FS: fsys, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
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
		if c.Op == faultfs.Open && strings.HasSuffix(c.Name, lockName) {
			writeLog(t, store, table)
			batches = append(batches, store.Visible())
			markNow(t, store)
		}
		return nil
	})
	if err := follower.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	visible, reached := follower.Visible(), follower.reached()
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
	if err := store.markClock(ctx); err == nil || markOf(t, store) != before {
		t.Errorf("while a batch is not published: mark %v, %v; was %v", markOf(t, store), err, before)
	}
	close(goOn)
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
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
	disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Write, faultfs.Copy, faultfs.Sync}, Name: "*.wal", When: faultfs.After, Times: 1, Err: errors.New("failed")})
	b := store.NewBatch()
	b.Upsert(table, Row{"k": int64(2), "v": "x"})
	if _, err := b.Commit(t.Context()); err == nil {
		t.Fatal("the commit has not failed")
	}
	if err := store.markClock(t.Context()); err == nil || markOf(t, store) != before {
		t.Errorf("the mark is %v, was %v: %v", markOf(t, store), before, err)
	}
	if err := follower.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
}

// What a follower could answer it can answer from then on, though LOCK has no mark any more. A LOCK
// that is being written is read again.
func TestFollowerKeepsMark(t *testing.T) {
	mem := vfs.NewMem()
	store, _ := pinnedStore(t, mem)
	view := faultfs.New(mem)
	follower := follow(t, view)
	mark := markNow(t, store)
	failures := markTries - 1
	view.Watch(func(c faultfs.Call) error {
		if c.Op == faultfs.Open && strings.HasSuffix(c.Name, lockName) && failures > 0 {
			failures--
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	for range 2 {
		if err := follower.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at := follower.reached(); at != mark {
			t.Errorf("the follower answers up to %v, want %v", at, mark)
		}
		if err := store.locks.lock.Write(store.locks.owner); err != nil {
			t.Fatal(err)
		}
	}
}

// A store without followers has no mark. A mark outlives the next writer, though it is without
// followers: the one after that may be the first to write.
func TestMarkIsKept(t *testing.T) {
	mem := vfs.NewMem()
	store, _ := pinnedStore(t, mem)
	if mark := markNow(t, store); mark != 0 {
		t.Errorf("without followers the mark is %v", mark)
	}
	follower := follow(t, mem)
	mark := markNow(t, store)
	if err := errors.Join(follower.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		store, _ := pinnedStore(t, mem)
		if at := markOf(t, store); at != mark || mark == 0 {
			t.Errorf("the mark is %v, was %v", at, mark)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
