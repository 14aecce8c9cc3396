package wal

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// After Roll and Release nothing is left to read, and LSNs go on where they were, also after a
// power cut.
func TestRollLetsReleaseTakeAllRecords(t *testing.T) {
	m := emptyMem(t)
	o := small(m)
	l := create(t, o)
	must.Do(t, l.Roll()) // nothing to seal: the segment stays
	appendAll(t, l, "a", "b", "c")
	must.Do(t, l.Roll())
	must.Equal(t, l.Durable(), 3, "LSN is durable")
	must.Do(t, l.Release(4))
	names, err := m.List(testDir)
	must.Do(t, err)
	if len(names) != 1 || names[0] != segmentName(2) || l.Bytes() != headerLen {
		t.Errorf("left: %q of %d bytes", names, l.Bytes())
	}
	must.Do(t, l.Roll()) // nor now
	must.Do(t, l.Close())
	o.FS = m.Crash()
	l, got := open(t, o, 4)
	must.Equal(t, len(got), 0, "records", got)
	must.Equal(t, l.Next(), 4, "records", got, "next LSN")
	appendAll(t, l, "d")
	must.Do(t, l.Close())
	if _, got, err = replay(o, 4); err != nil || len(got) != 1 || got[4] != "d" {
		t.Errorf("records %v, %v", got, err)
	}
}

// An Append that begins a segment syncs nothing; the next Sync seals the full one, then makes the newest
// durable. Whatever a crash at any of these operations leaves, all records that were synced are
// present, after a kill all, and the log goes on.
func TestFullSegmentIsSealedByNextSync(t *testing.T) {
	payloads := []string{text(0, 30), text(1, 100), text(2, 0), text(3, 50), text(4, 20)}
	want := []string{"create 2", "write 2", "write 2", "write 2", "sync 1", "write 1", "sync 1", "syncdir", "sync 2"}
	for step := range len(want) + 1 {
		for seed := range int64(40) {
			m := emptyMem(t)
			h := faultfs.New(m)
			l := create(t, small(h))
			appendAll(t, l, payloads[0])
			must.Do(t, l.Sync(1))
			appendAll(t, l, payloads[1:3]...)
			var ops []string
			var left []*vfs.Mem
			crash := func() { left = []*vfs.Mem{m.Clone(), m.Crash(), torn(t, rand.New(rand.NewSource(seed)), m)} }
			reserve := true
			hook(h, func(op, name string) error {
				if reserve { // the place of the footer
					reserve = false
					return nil
				}
				if op != "syncdir" {
					op = fmt.Sprintf("%s %c", op, name[len(name)-5])
				}
				if ops = append(ops, op); len(ops) <= step {
					return nil
				}
				if left == nil {
					crash()
				}
				return errCrashed
			})
			l.o.SegmentBytes = 1
			_, err := l.Append([]byte(payloads[3]))
			l.o.SegmentBytes = 1 << 20
			if err == nil {
				_, err = l.Append([]byte(payloads[4]))
			}
			if err == nil {
				err = l.Sync(5)
			}
			if step == len(want) {
				must.Do(t, err)
				must.Equal(t, ops, want, "operations")
				crash()
			}
			for i, v := range left {
				_, got, err := replay(small(v), 1)
				least := 1
				switch {
				case step == len(want):
					least = 5
				case i == 0 && step >= 4:
					least = 5
				case i == 0 || step >= 5:
					least = 3
				}
				if err != nil || len(got) < least {
					t.Fatalf("crash before operation %d, state %d, seed %d: %d records of %d at least, %v",
						step, i, seed, len(got), least, err)
				}
				checkPrefix(t, fmt.Sprintf("crash before operation %d, state %d, seed %d", step, i, seed), v,
					payloads, len(got))
			}
		}
	}
}
