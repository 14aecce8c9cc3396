package crash

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// The goroutines of an open store, such as Pebble's cleanup, change the disk while a test sets up
// the probing of crash states. These changes must not become crash points.
func TestChangesDuringSetupAreNotCrashPoints(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	r := history.NewCrashRunner(history.TraceSettings(1), disk)
	x := newProbing(disk, r)
	change := func() {
		t.Helper()
		f := must.Get(disk.Create(filepath.Join(history.Dir, "new")))(t)
		must.Do(t, errors.Join(f.Close(), disk.Remove(filepath.Join(history.Dir, "new"))))
	}
	change()
	must.Equal(t, x.counted().Points, 0, "crash points before watch")
	x.limit = 1
	x.watch(x.check)
	change()
	if n := x.counted().Points; n == 0 {
		t.Error("no crash point after watch")
	}
	must.Do(t, must.Err2(x.end()))
}
