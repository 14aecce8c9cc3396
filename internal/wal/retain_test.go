package wal

import (
	"errors"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

// Plan: one goroutine appends and syncs, another releases everything that is durable. Meanwhile the
// log is retained and read from some record to a durable one; the result is exactly those records.
// Once it is not retained any more, Release removes segments again.
func TestRangeOfARetainedLog(t *testing.T) {
	t.Run("fs=memory", func(t *testing.T) { testRange(t, small(emptyMem(t))) })
	t.Run("fs=os", func(t *testing.T) { // with mapped windows
		testRange(t, Options{FS: vfs.OS, Dir: t.TempDir(), Instance: exampleInstance, SegmentBytes: 4000,
			FrameBytes: 200})
	})
}

func testRange(t *testing.T, o Options) {
	l := create(t, o)
	const count = 2000
	var wg sync.WaitGroup
	done := make(chan bool)
	wg.Go(func() {
		defer close(done)
		for i := range count {
			write := l.Append
			if i%2 == 0 {
				write = l.AppendLater
			}
			lsn := must.Get(write([]byte(text(i+1, 90))))(t)
			if i%7 == 0 {
				must.Do(t, l.Sync(lsn))
			}
		}
	})
	ranges := 0
	for running := true; running; ranges++ {
		select {
		case <-done:
			running = false
		default:
		}
		release := l.Retain()
		from := l.Durable() / 2
		if ranges > 0 {
			from = l.firstLSN()
		}
		upTo := l.Durable()
		must.Do(t, l.Release(upTo)) // does nothing
		next := max(from, 1)
		must.Do(t, Range(o, from, upTo, func(lsn lsn.LSN, payload []byte) error {
			must.Equal(t, lsn, next, "LSN")
			must.Equal(t, string(payload), text(int(lsn), 90))
			next++
			return nil
		}))
		must.Equal(t, next, max(from, 1, upTo+1), "next LSN")
		release()
		release()
		must.Do(t, l.Release(upTo))
	}
	wg.Wait()
	must.Do(t, l.Sync(count))
	must.Do(t, l.Release(count))
	if l.firstLSN() < count-100 {
		t.Errorf("the log begins with LSN %d after a Release up to %d", l.firstLSN(), count)
	}
	none := func(lsn.LSN, []byte) error { return errors.New("called") }
	must.Do(t, Range(o, count+1, count, none))
	wantIs(t, "beyond the end", Range(o, count, count+1, func(lsn.LSN, []byte) error { return nil }), fault.ErrCorrupt)
	must.Do(t, l.Close())
	t.Logf("%d ranges", ranges)
}

// firstLSN returns the LSN after the last one of the released segments. It looks again, as Range
// does, when the log has cut off the zeros of a segment that Walk was reading.
func (l *Log) firstLSN() lsn.LSN {
	first := lsn.LSN(0)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	for looks := 0; first == 0 && looks < maxLooks; looks++ {
		must(Walk(l.o, func(e *Entry) error {
			if e.Kind == EntrySegment && first == 0 {
				first = e.LSN
			}
			return nil
		}))
	}
	return first
}
