package salvage

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// Options of Run are checked before anything is read, nil options have no effect, and progress ends
// with all bytes, which are no less than the bytes of blocks.
func TestOptions(t *testing.T) {
	ctx, mem := context.Background(), vfs.NewMem()
	o := &oribi.Options{FS: mem, MemoryLimit: 1}
	if _, err := Run(ctx, "/s", "/out", o, nil); err == nil || errors.Is(err, ErrNotStore) {
		t.Errorf("invalid options: %v", err)
	}
	o.MemoryLimit = 0
	if _, err := Run(ctx, "/s", "/out", o, nil, nil, FillNull()); !errors.Is(err, ErrNotStore) ||
		err.Error() != "oribi: salvage: /s: no such directory: not a store" {
		t.Errorf("no store: %v", err)
	}
	s, err := oribi.Open("/s", o)
	must.Do(t, err)
	must.Fail(t, must.Err(Run(ctx, "/s", "/out", o, nil)), ErrLocked, "a store with a writer")
	must.Do(t, s.Close())
	done, all := int64(-1), int64(-1)
	c, err := Run(ctx, "/s", "/out", o, nil, Progress(func(n, total int64) { done, all = n, total }))
	if err != nil || c.UUID == "" || c.Bytes == 0 || done != all {
		t.Errorf("an empty store: %+v, %v, %d bytes of %d", c, err, done, all)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	must.Fail(t, must.Err(Run(ended, "/s", "/other", o, nil)), context.Canceled, "after ctx ended")
	must.Refuse(t, must.Err(mem.Stat("/other")), "after an error, there is an output")
}
