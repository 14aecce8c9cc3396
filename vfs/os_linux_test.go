package vfs

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

// takes returns the number of bytes that a file occupies on disk.
func takes(t *testing.T, name string) int64 {
	t.Helper()
	info := must.Get(OS.Stat(name))(t)
	return Allocated(info)
}

func TestPreallocateTakesAndPunchHoleGivesBackSpace(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	f := put(t, OS, name, strings.Repeat("x", 1<<20))
	defer f.Close()
	must.Do(t, f.Sync())
	before := takes(t, name)
	if err := f.PunchHole(0, 1<<19); err != nil {
		t.Skip(err)
	}
	if after := takes(t, name); after > before-1<<18 {
		t.Errorf("%d bytes on disk before the hole, %d after", before, after)
	}
	before = takes(t, name)
	must.Do(t, f.Preallocate(1<<20, 1<<20))
	if after := takes(t, name); after < before+1<<19 {
		t.Errorf("%d bytes on disk before Preallocate, %d after", before, after)
	}
}

func TestOSDoesNotWaitForAFIFO(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	must.Do(t, syscall.Mkfifo(name, 0o600))
	done := make(chan error, 1)
	go func() {
		_, err := OS.Open(name, false)
		done <- err
	}()
	select {
	case err := <-done:
		must.Refuse(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("still waiting for a writer")
	}
}
