package storetest

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// A store whose files contain all changes is opened without reading the old log or writing it
// again.
func TestCloseRemovesUnneededLog(t *testing.T) {
	for name, flushed := range map[string]bool{"flushed": true, "not flushed": false} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			o := &oribi.Options{FS: fs, Manual: true}
			store := must.Get(oribi.Open("/s", o))(t)
			table := tableOf(t, store, "t", "k*:int64 v:binary")
			b := store.NewBatch()
			for k := range 40 { // 2 MB
				b.Insert(table, oribi.Row{"k": k, "v": bytes.Repeat([]byte{byte(k)}, 50_000)})
				must.Get(b.Commit(t.Context(), oribi.NoSync))(t)
			}
			if flushed {
				must.Do(t, table.Flush(t.Context()))
			}
			must.Do(t, store.Close())
			store = must.Get(oribi.Open("/s", o))(t)
			defer store.Close()
			want := int64(40)
			if flushed {
				want = 0
			}
			if got := store.Recovery(); got.Frames != want || !got.Clean {
				t.Errorf("the next open found %+v, want %d frames", got, want)
			}
			table = must.Get(store.Table("t"))(t)
			must.Equal(t, must.Get(table.Count(t.Context()))(t), 40, "rows")
			// Timestamps and LSNs continue from their last values.
			b = store.NewBatch()
			b.Insert(table, oribi.Row{"k": 40, "v": []byte{}})
			must.Get(b.Commit(t.Context()))(t)
		})
	}
}

// The log's files have the size that the options set, within limits.
func TestLogSegmentsHaveTheConfiguredSize(t *testing.T) {
	fs := vfs.NewMem()
	for _, n := range []int64{-1, 1, 4095, 1<<30 + 1} {
		must.Refuse(t, must.Err(oribi.Open("/s", &oribi.Options{FS: fs, LogSegmentBytes: n})),
			"segments of", n, "bytes are taken")
	}
	store := must.Get(oribi.Open("/s", &oribi.Options{FS: fs, Manual: true, LogSegmentBytes: 4096}))(t)
	defer store.Close()
	fillNumbers(t, store, numbersTable(t, store, "numbers"), 0, 200)
	names := must.Get(fs.List("/s/wal"))(t)
	for _, name := range names {
		if info, err := fs.Stat("/s/wal/" + name); err != nil || info.Size() > 4096 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if len(names) < 4 {
		t.Errorf("200 batches are in files %q", names)
	}
}

// A log segment that cannot be removed is a warning: what has taken effect succeeds, and a later
// call removes the segment.
func TestSegmentThatCannotBeRemovedIsAWarning(t *testing.T) {
	ctx := t.Context()
	disk := faultfs.New(vfs.NewMem())
	var log bytes.Buffer
	warnings := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := must.Get(
		oribi.Open("/s", &oribi.Options{FS: disk, LogSegmentBytes: 4 << 10, Manual: true, Logger: warnings}))(t)
	table := numbersTable(t, s, "numbers")
	numbersTable(t, s, "other")
	fillNumbers(t, s, table, 0, 300)
	segments := func() int {
		names := must.Get(disk.List("/s/wal"))(t)
		return len(names)
	}
	before := segments()
	var repaired atomic.Bool
	fails := func(faultfs.Call) bool { return !repaired.Load() }
	failed := disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Remove}, Name: "*.wal",
		Match: fails, Times: faultfs.Forever})
	must.Do(t, table.Flush(ctx), "flush")
	must.Do(t, table.Alter(ctx, oribi.SetComment("new")))
	must.Equal(t, table.Properties().Comment, "new", "alter the comment")
	must.Do(t, s.DropTable("other"), "drop")
	if err := s.Poisoned(); err != nil || before < 3 || segments() < before || failed.Failures() == 0 {
		t.Errorf("%d of %d segments, %d removals failed, poisoned: %v", segments(), before, failed.Failures(), err)
	}
	repaired.Store(true)
	if err := table.Alter(ctx, oribi.SetComment("newer")); err != nil || segments() >= before {
		t.Errorf("%d of %d segments are left, %v", segments(), before, err)
	}
	must.Do(t, s.Close())
	must.Equal(t, bytes.Contains(log.Bytes(), []byte("removing log segments")), true, "logged", &log)
}
