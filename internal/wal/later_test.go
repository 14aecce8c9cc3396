package wal

import (
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// Records that are synced together reach the kernel in one write; until then a kill loses them.
func TestRecordsOfOneSyncAreOneWrite(t *testing.T) {
	m := emptyMem(t)
	h := faultfs.New(m)
	l, payloads := aheadLog(t, h)
	for _, spare := l.Spare(); spare < 400; _, spare = l.Spare() {
		payloads = append(payloads, "")
		appendAll(t, l, "")
		must.Do(t, l.Sync(l.Next()-1))
	}
	n := len(payloads)
	writes := 0
	hook(h, func(op, _ string) error {
		if op == "write" {
			writes++
		}
		return nil
	})
	later := func(serial int) {
		t.Helper()
		payloads = append(payloads, text(serial, 10))
		must.Equal(t, must.Get(l.AppendLater([]byte(payloads[len(payloads)-1])))(t), lsn.LSN(len(payloads)), "LSN")
	}
	later(100)
	later(101)
	must.Equal(t, writes, 0, "writes before the sync")
	checkPrefix(t, "killed before the sync", m.Clone(), payloads, n)
	must.Do(t, l.Sync(lsn.LSN(n+1)))
	must.Equal(t, writes, 1, "writes")
	must.Equal(t, l.Durable(), lsn.LSN(n+2), "LSN")
	checkPrefix(t, "cut off after the sync", m.Crash(), payloads, n+2)

	// What need not wait takes along what was held back before it.
	later(102)
	payloads = append(payloads, "now")
	appendAll(t, l, "now")
	checkPrefix(t, "killed after an Append", m.Clone(), payloads, n+4)
	later(103)
	must.Do(t, l.Close())
	checkPrefix(t, "closed", m.Crash(), payloads, n+5)
}

// Frames after the zeros may not fit on the disk: they are written at once, so that it can be
// refused.
func TestRecordsAfterZerosAreWrittenAtOnce(t *testing.T) {
	m := emptyMem(t)
	h := faultfs.New(m)
	l := create(t, small(h))
	must.Get(l.AppendLater([]byte("a")))(t)
	checkPrefix(t, "killed", m.Clone(), []string{"a"}, 1)
	hook(h, func(op, _ string) error {
		if op == "write" {
			return fmt.Errorf("test: %w", fault.ErrNoSpace)
		}
		return nil
	})
	_, err := l.AppendLater([]byte("b"))
	wantIs(t, "AppendLater on a full disk", err, fault.ErrNoSpace)
	if l.Poisoned() != nil || l.Next() != 2 {
		t.Errorf("%v, next LSN %d", l.Poisoned(), l.Next())
	}
}

// Acknowledged records that cannot be written poison the log, whichever call tries to write them.
func TestFailedWriteOfBufferedRecordsPoisons(t *testing.T) {
	for name, do := range map[string]func(l *Log) error{
		"sync":   func(l *Log) error { return l.Sync(11) },
		"append": func(l *Log) error { _, err := l.Append([]byte("x")); return err },
		"roll":   func(l *Log) error { return l.Roll() },
		"close":  func(l *Log) error { return l.Close() },
	} {
		for _, cause := range []error{syscall.EIO, fault.ErrNoSpace} {
			h := faultfs.New(emptyMem(t))
			l, _ := aheadLog(t, h)
			must.Get(l.AppendLater([]byte("a")))(t)
			hook(h, func(op, _ string) error {
				if op == "write" {
					return cause
				}
				return nil
			})
			err := do(l)
			wantIs(t, name, err, fault.ErrPoisoned)
			if name != "close" {
				wantIs(t, name+", then Sync", l.Sync(11), fault.ErrPoisoned)
			}
			must.Equal(t, l.Durable(), 10, name, "LSN counts as durable")
		}
	}
}

// Durable is called for each step, before a call of Sync returns.
func TestDurableIsCalledBeforeSyncReturns(t *testing.T) {
	var mu sync.Mutex
	durable := lsn.LSN(0)
	o := small(emptyMem(t))
	o.ahead = soonAhead
	o.Durable = func(upTo lsn.LSN) {
		mu.Lock()
		defer mu.Unlock()
		if upTo < durable {
			t.Errorf("Durable is called with LSN %d after %d", upTo, durable)
		}
		durable = upTo
	}
	l := create(t, o)
	var section sync.Mutex
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				section.Lock()
				lsn, err := l.AppendLater([]byte(text(w*100+i, 20)))
				section.Unlock()
				must.Do(t, err)
				must.Do(t, l.Sync(lsn))
				mu.Lock()
				if durable < lsn {
					t.Errorf("Sync(%d) returned, Durable was called with %d", lsn, durable)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	must.Do(t, l.Close())
	if _, got, err := replay(o, 1); err != nil || len(got) != 400 {
		t.Errorf("%d records, %v", len(got), err)
	}
}
