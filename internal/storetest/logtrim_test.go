package storetest

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// A store whose files contain all changes is opened without reading the old log or writing it
// again.
func TestCloseRemovesUnneededLog(t *testing.T) {
	for name, flushed := range map[string]bool{"flushed": true, "not flushed": false} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			o := &oribi.Options{FS: fs, Manual: true}
			store, err := oribi.Open("/s", o)
			if err != nil {
				t.Fatal(err)
			}
			s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Binary}}, 1)
			if err != nil {
				t.Fatal(err)
			}
			table, err := store.CreateTable("t", s)
			if err != nil {
				t.Fatal(err)
			}
			b := store.NewBatch()
			for k := range 40 { // 2 MB
				b.Insert(table, oribi.Row{"k": k, "v": bytes.Repeat([]byte{byte(k)}, 50_000)})
				if _, err := b.Commit(t.Context(), oribi.NoSync); err != nil {
					t.Fatal(err)
				}
			}
			if flushed {
				if err := table.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if store, err = oribi.Open("/s", o); err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			want := int64(40)
			if flushed {
				want = 0
			}
			if got := store.Recovery(); got.Frames != want || !got.Clean {
				t.Errorf("the next open found %+v, want %d frames", got, want)
			}
			if table, err = store.Table("t"); err != nil {
				t.Fatal(err)
			}
			if n, err := table.Count(t.Context()); err != nil || n != 40 {
				t.Errorf("%d rows, %v", n, err)
			}
			// Timestamps and LSNs continue from their last values.
			b = store.NewBatch()
			b.Insert(table, oribi.Row{"k": 40, "v": []byte{}})
			if _, err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The log's files have the size that the options set, within limits.
func TestLogSegmentsHaveTheConfiguredSize(t *testing.T) {
	fs := vfs.NewMem()
	for _, n := range []int64{-1, 1, 4095, 1<<30 + 1} {
		if _, err := oribi.Open("/s", &oribi.Options{FS: fs, LogSegmentBytes: n}); err == nil {
			t.Errorf("segments of %d bytes are taken", n)
		}
	}
	store, err := oribi.Open("/s", &oribi.Options{FS: fs, Manual: true, LogSegmentBytes: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	fillNumbers(t, store, numbersTable(t, store, "numbers"), 0, 200)
	names, err := fs.List("/s/wal")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := fs.Stat("/s/wal/" + name); err != nil || info.Size() > 4096 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if len(names) < 4 {
		t.Errorf("200 batches are in files %q", names)
	}
}
