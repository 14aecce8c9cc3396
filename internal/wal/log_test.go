package wal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

func TestReplayReturnsRecordsInOrder(t *testing.T) {
	for _, sizes := range [][]int{
		{0}, {1, 0, 7, 8, 9}, {64}, {65, 128, 129, 1000}, {3000, 1, 3000}, {10, 20, 30, 300, 600, 60, 6, 300, 300},
	} {
		t.Run(fmt.Sprint("sizes=", sizes), func(t *testing.T) {
			o := small(emptyMem(t))
			l := create(t, o)
			want := records{}
			for i, n := range sizes {
				p := text(i, n)
				at := must.Get(l.AppendParts([]byte(p[:n/3]), nil, []byte(p[n/3:]), nil))(t)
				must.Equal(t, at, lsn.LSN(i+1), "LSN")
				must.Equal(t, l.Next(), at+1, "next")
				want[at] = p
			}
			must.Do(t, l.Close())
			l, got := open(t, o, 0)
			must.Equal(t, fmt.Sprint(got), fmt.Sprint(want), "other records come back")
			must.Equal(t, l.Durable(), lsn.LSN(len(sizes)), "durable LSN after repair")
			if f := verify(t, o, 1); f != nil {
				t.Error(f)
			}
			var bytes int64
			segs := must.Get(list(&o))(t)
			for _, s := range segs {
				info := must.Get(o.FS.Stat(o.path(s.name)))(t)
				bytes += info.Size()
			}
			must.Equal(t, l.Bytes(), bytes, "bytes")
		})
	}
}

func TestSegmentsAreClosedAtTheirSize(t *testing.T) {
	m := emptyMem(t)
	o := small(m)
	l := create(t, o)
	for i := range 100 {
		appendAll(t, l, text(i, i))
	}
	appendAll(t, l, text(0, 5000)) // longer than a segment
	appendAll(t, l, "x")
	must.Do(t, l.Close())
	segs := must.Get(survey(&o))(t)
	for i, s := range segs {
		if s.size > o.SegmentBytes && i != len(segs)-2 {
			t.Errorf("segment %d of %d has %d bytes", s.number, len(segs), s.size)
		}
	}
	if len(segs) < 15 {
		t.Errorf("%d segments", len(segs))
	}
}

func TestCreateNeedsEmptyDirectory(t *testing.T) {
	o := small(emptyMem(t))
	must.Do(t, Create(o, 5))
	wantIs(t, "second Create", Create(o, 5), fs.ErrExist)
	must.Refuse(t, Create(small(emptyMem(t)), 0), "LSN 0 as the first")
	l, _ := open(t, o, 5)
	must.Equal(t, must.Get(l.Append(nil))(t), 5, "the first LSN")
	for _, bad := range []Options{{}, {FS: o.FS, FrameBytes: maxFrameBytes + 1}, {FS: o.FS, SegmentBytes: -1}} {
		must.Refuse(t, Create(bad, 1), "options", bad, "are taken")
	}
}

func TestRecordOfTooManyFramesIsRefused(t *testing.T) {
	o := small(emptyMem(t))
	o.FrameBytes = 1
	o.SegmentBytes = 1 << 30
	l := create(t, o)
	_, err := l.Append(make([]byte, maxParts+1))
	wantIs(t, "Append", err, fault.ErrBatchTooLarge)
	_, err = l.Append(make([]byte, maxParts))
	must.Do(t, err)
	must.Do(t, l.Close())
	if _, got := open(t, o, 1); len(got[1]) != maxParts {
		t.Errorf("%d bytes come back", len(got[1]))
	}
}

func TestReleaseUnlinksOnlyOldSegments(t *testing.T) {
	m := emptyMem(t)
	o := small(m)
	l := create(t, o)
	for i := range 60 {
		appendAll(t, l, text(i, 50))
	}
	must.Do(t, l.Release(1))
	must.Do(t, l.Release(0))
	before := l.Bytes()
	must.Do(t, l.Release(30))
	if l.Bytes() >= before {
		t.Errorf("%d bytes, before it %d", l.Bytes(), before)
	}
	_, got, err := replay(o, 30)
	must.Do(t, err)
	must.Equal(t, len(got), 31, "records from LSN 30 on")
	_, _, err = replay(o, 1)
	wantIs(t, "replay from 1", err, fault.ErrCorrupt)
	must.Do(t, l.Release(1<<60))
	must.Do(t, l.Sync(60)) // until now the segment before the newest may not be sealed
	must.Do(t, l.Release(1<<60))
	segs, err := list(&o)
	must.Do(t, err)
	must.Equal(t, len(segs), 1, "segments left, want the newest")
	appendAll(t, l, "x")
	must.Do(t, l.Close())
	if l, _ := open(t, o, 61); l.Next() != 62 {
		t.Errorf("LSNs go on with %d", l.Next())
	}
}

func TestCallsAfterCloseReturnErrClosed(t *testing.T) {
	m := emptyMem(t)
	l := create(t, small(m))
	appendAll(t, l, "x")
	must.Do(t, l.Close())
	must.Do(t, l.Close())
	_, err := l.Append(nil)
	wantIs(t, "Append", err, fault.ErrClosed)
	wantIs(t, "Sync", l.Sync(1), fault.ErrClosed)
	wantIs(t, "Release", l.Release(1), fault.ErrClosed)
	if _, got, err := replay(small(m.Crash()), 1); err != nil || got[1] != "x" {
		t.Errorf("Close did not sync: %v, %v", got, err)
	}
}

func TestFailedWriteOrSyncPoisonsForGood(t *testing.T) {
	for _, op := range []string{"write", "sync", "create", "syncdir"} {
		t.Run("op="+op, func(t *testing.T) {
			h := faultfs.New(emptyMem(t))
			l := create(t, small(h))
			appendAll(t, l, text(0, 400))
			must.Do(t, l.Sync(1))
			hook(h, func(got, name string) error {
				if got == op {
					return syscall.EIO
				}
				return nil
			})
			_, err := l.Append([]byte(text(1, 400))) // needs a new segment
			if strings.HasPrefix(op, "sync") {
				must.Do(t, err)
				err = l.Sync(2) // seals the first
			}
			wantIs(t, "Append or Sync", err, fault.ErrPoisoned)
			wantIs(t, "Append or Sync", err, syscall.EIO)
			hook(h, func(got, name string) error {
				t.Errorf("%s of %s on a poisoned log", got, name)
				return nil
			})
			_, err = l.Append(nil)
			for what, err := range map[string]error{
				"Append": err, "Sync": l.Sync(1), "Release": l.Release(9), "Poisoned": l.Poisoned(),
				"Close": l.Close(), "Close again": l.Close(),
			} {
				wantIs(t, what, err, fault.ErrPoisoned)
				wantIs(t, what, err, syscall.EIO)
			}
		})
	}
}

func TestFailedSyncFailsAllWaiters(t *testing.T) {
	h := faultfs.New(emptyMem(t))
	l := create(t, small(h))
	appendAll(t, l, "a", "b")
	started, goOn := make(chan bool), make(chan bool)
	hook(h, func(op, name string) error {
		if op == "sync" {
			close(started) // a second sync would panic here
			<-goOn
			return syscall.EIO
		}
		return nil
	})
	errs := make(chan error, 2)
	go func() { errs <- l.Sync(1) }()
	<-started
	go func() { errs <- l.Sync(2) }()
	appendAll(t, l, "c") // goes on during the sync
	close(goOn)
	for range 2 {
		wantIs(t, "Sync", <-errs, fault.ErrPoisoned)
	}
	must.Equal(t, l.Durable(), 0, "LSN counts as durable")
}

func TestOneSyncServesAllWaiters(t *testing.T) {
	h := faultfs.New(emptyMem(t))
	o := small(h)
	o.SegmentBytes = 1 << 20
	l := create(t, o)
	appendAll(t, l, "a")
	var syncs atomic.Int32
	started, goOn := make(chan bool), make(chan bool)
	hook(h, func(op, name string) error {
		if op == "sync" && syncs.Add(1) == 1 {
			close(started)
			<-goOn
		}
		return nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { must.Do(t, l.Sync(1)) })
	<-started
	for i := range 20 {
		lsn, err := l.Append([]byte{byte(i)}) // is not held up by the sync
		must.Do(t, err)
		wg.Go(func() { must.Do(t, l.Sync(lsn)) })
	}
	must.Equal(t, l.Durable(), 0, "LSN counts as durable while the first sync runs")
	close(goOn)
	wg.Wait()
	if n := syncs.Load(); n != 2 { // the second leader finds all appended
		t.Errorf("%d syncs for 21 records", n)
	}
	must.Equal(t, l.Durable(), 21, "LSN is durable")
	must.Refuse(t, l.Sync(22), "a record that does not exist was synced")
}

func TestSyncedRecordsSurvivePowerCutWithConcurrentWriters(t *testing.T) {
	m := emptyMem(t)
	l := create(t, small(m))
	var (
		section sync.Mutex
		wg      sync.WaitGroup
		want    sync.Map
	)
	n := seedtest.Rounds(60, 20)
	for w := range 8 {
		wg.Go(func() {
			for i := range n {
				p := text(w*1000+i, i*3)
				section.Lock()
				lsn, err := l.Append([]byte(p))
				section.Unlock()
				must.Do(t, err)
				if (w+i)%3 == 0 {
					continue
				}
				want.Store(lsn, p)
				must.Do(t, l.Sync(lsn))
				if l.Durable() < lsn {
					t.Errorf("Durable is %d after Sync(%d)", l.Durable(), lsn)
				}
				if i%10 == 0 {
					_, got, err := replay(small(m.Crash()), 1)
					if err != nil || got[lsn] != p {
						t.Errorf("LSN %d is lost: %v", lsn, err)
					}
				}
			}
		})
	}
	wg.Wait()
	must.Do(t, l.Close())
	_, got := must.Get2(replay(small(m.Crash()), 1))(t)
	must.Equal(t, len(got), 8*n, "records")
	want.Range(func(at, p any) bool {
		if got[at.(lsn.LSN)] != p {
			t.Errorf("LSN %d differs", at)
		}
		return true
	})
}

func TestReleaseDuringAppendAndSync(t *testing.T) {
	m := emptyMem(t)
	l := create(t, small(m))
	var wg sync.WaitGroup
	done := make(chan bool)
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				must.Do(t, l.Release(l.Durable()))
				l.Bytes()
			}
		}
	})
	for i := range 500 {
		lsn := must.Get(l.Append([]byte(text(i, 90))))(t)
		if i%7 == 0 {
			must.Do(t, l.Sync(lsn))
		}
	}
	close(done)
	wg.Wait()
	must.Do(t, l.Release(500))
	must.Do(t, l.Close())
	tail, got := must.Get2(replay(small(m), 500))(t)
	must.Equal(t, len(got), 1, "records")
	must.Equal(t, tail.Last(), 500, "last LSN")
}

func TestFullDiskChangesNothing(t *testing.T) {
	// Each step of an Append that needs a new segment fails in turn.
	for _, step := range []struct {
		op, name string
		nth      int // of that op on that file, from 1
	}{
		{"write", segmentName(1), 1}, // footer
		{"create", segmentName(2), 1},
		{"write", segmentName(2), 1}, // header
		{"write", segmentName(2), 2}, // first frame
		{"write", segmentName(2), 3}, // second frame
	} {
		t.Run(fmt.Sprintf("%s=%s/nth=%d", step.op, step.name, step.nth), func(t *testing.T) {
			m := emptyMem(t)
			h := faultfs.New(m)
			o := small(h)
			l := create(t, o)
			first, next := text(0, 400), text(1, 120)
			appendAll(t, l, first)
			count := 0
			hook(h, func(op, name string) error {
				if op == step.op && name == step.name {
					if count++; count == step.nth {
						return fmt.Errorf("test: %w", fault.ErrNoSpace)
					}
				}
				return nil
			})
			_, err := l.Append([]byte(next))
			wantIs(t, "Append on a full disk", err, fault.ErrNoSpace)
			must.Do(t, l.Poisoned())
			must.Equal(t, l.Next(), 2, "the next LSN")
			tail, got, err := replay(small(m.Clone()), 1)
			if err != nil || len(got) != 1 || tail.Report().TornBytes != 0 {
				t.Errorf("left on disk: %d records, %v", len(got), err)
			}
			lsn, err := l.Append([]byte(next))
			must.Do(t, err)
			must.Equal(t, lsn, 2, "the second try: LSN")
			must.Do(t, l.Close())
			_, got, err = replay(o, 1)
			must.Do(t, err)
			if got[1] != first || got[2] != next || len(got) != 2 {
				t.Error("other records come back")
			}
			if f := verify(t, o, 1); f != nil {
				t.Error(f)
			}
		})
	}
}

func TestFailedUndoOnFullDiskPoisons(t *testing.T) {
	h := faultfs.New(emptyMem(t))
	l := create(t, small(h))
	hook(h, func(op, name string) error {
		switch op {
		case "write":
			return fault.ErrNoSpace
		case "truncate":
			return fmt.Errorf("test: %w", fault.ErrNoSpace)
		}
		return nil
	})
	_, err := l.Append([]byte("x"))
	wantIs(t, "Append", err, fault.ErrPoisoned)
	if errors.Is(err, fault.ErrNoSpace) {
		t.Errorf("looks as if it may be tried again: %v", err)
	}
}

func TestSmallAppendIsOneWriteWithoutAllocation(t *testing.T) {
	writes := 0
	h := faultfs.New(nullFS{emptyMem(t)})
	o := small(h)
	o.SegmentBytes = 1 << 30
	o.FrameBytes = 1 << 20
	must.Do(t, Create(o, 1))
	tail, _ := must.Get2(replay(o, 1))(t)
	l := must.Get(tail.Repair(nil))(t)
	hook(h, func(op, name string) error {
		if op == "write" {
			writes++
		}
		return nil
	})
	payload := bytes.Repeat([]byte("abcde"), 20)
	must.Equal(t, testing.AllocsPerRun(100, func() { l.Append(payload) }), 0, "allocations")
	must.Equal(t, writes, int(l.Next()-1), "writes")
}

// nullFS writes nothing after the first 80 bytes of a file, so that only the log's own work is
// measured.
type nullFS struct{ vfs.FS }

func (n nullFS) Create(name string) (vfs.File, error) { return n.null(n.FS.Create(name)) }
func (n nullFS) Open(name string, write bool) (vfs.File, error) {
	return n.null(n.FS.Open(name, write))
}
func (nullFS) null(f vfs.File, err error) (vfs.File, error) { return nullFile{f}, err }

type nullFile struct{ vfs.File }

func (f nullFile) WriteAt(b []byte, off int64) (int, error) {
	if off == 0 {
		return f.File.WriteAt(b, off)
	}
	return len(b), nil
}

func TestListSortsByNumber(t *testing.T) {
	m := emptyMem(t)
	for _, n := range []string{"000000000010.wal", "000000000009.wal", "999999999999.wal", "junk",
		"000000000001.torn"} {
		writeFile(t, m, testDir+"/"+n, nil)
	}
	o := small(m)
	segs := must.Get(list(&o))(t)
	var got []uint64
	for _, s := range segs {
		got = append(got, s.number)
	}
	must.Equal(t, got, []uint64{9, 10, 999999999999})
}
