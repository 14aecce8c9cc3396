package crash

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// The goroutines of an open store, Pebble's cleanup among them, change the disk while the probes of
// its crash states are set up.
func TestChangesDuringSetupAreNoCrashPoints(t *testing.T) {
	disk := crashfs.New(vfs.NewMem())
	r := history.NewCrashRunner(history.TraceSettings(1), disk)
	x := newProbing(disk, r)
	change := func() {
		t.Helper()
		f, err := disk.Create(filepath.Join(history.Dir, "new"))
		if err == nil {
			err = errors.Join(f.Close(), disk.Remove(filepath.Join(history.Dir, "new")))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change()
	if n := x.counted().Points; n != 0 {
		t.Errorf("%d crash points before the probes are set up", n)
	}
	x.limit = 1
	x.watch(x.check)
	change()
	if n := x.counted().Points; n == 0 {
		t.Error("no crash point afterwards")
	}
	if _, _, err := x.end(); err != nil {
		t.Error(err)
	}
}
