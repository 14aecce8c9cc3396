package wal

import (
	"fmt"
	"testing"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// While a sync finds the disk full, between two pieces of its zeros, a record is written over the
// first piece. The sync must not cut it off.
func TestSyncOnAFullDiskKeepsRecordsAppendedMeanwhile(t *testing.T) {
	for _, later := range []bool{false, true} {
		m := emptyMem(t)
		h := faultfs.New(m)
		o := Options{FS: h, Dir: testDir, Instance: exampleInstance, SegmentBytes: 400_000, windows: noWindows,
			ahead: aheadRules{syncs: 1, least: 3000, most: 9000, serve: 1, large: 1000}}
		l := create(t, o)
		payloads := []string{text(0, 2000)}
		appendAll(t, l, payloads[0])
		add := func(n int, write func([]byte) (lsn.LSN, error)) {
			payloads = append(payloads, text(len(payloads), n))
			must.Do(t, must.Err(write([]byte(payloads[len(payloads)-1]))))
		}
		write := l.Append
		if later {
			write = l.AppendLater
		}
		writes := 0
		hook(h, func(op, _ string) error {
			if op != "write" || writes >= 2 {
				return nil
			}
			if writes++; writes < 2 {
				return nil
			}
			add(300, write)
			return fmt.Errorf("test: %w", fault.ErrNoSpace)
		})
		must.Do(t, l.Sync(1))
		must.Do(t, l.Sync(2))
		for range 4 {
			add(100, l.AppendLater)
			must.Do(t, l.Sync(lsn.LSN(len(payloads))))
		}
		o.FS = m.Crash()
		_, got := must.Get2(replay(o, 1))(t)
		for i, p := range payloads {
			must.Equal(t, got[lsn.LSN(i+1)], p, "later", later, "LSN", i+1, "is lost")
		}
		if writes < 2 {
			t.Errorf("the sync wrote %d pieces of zeros, want 2", writes)
		}
	}
}
