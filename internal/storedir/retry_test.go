package storedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
)

// fakeStore returns a file system with the files of a store, as far as a follower looks at them
// between two tries.
func fakeStore(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	for _, dir := range []string{"", LogName, MetaName, DataName} {
		must.Do(t, mem.Mkdir(filepath.Join("/store", dir)))
	}
	for _, name := range []string{AnchorName, LogName + "/1", MetaName + "/1", DataName + "/1"} {
		put(t, mem, name, 0, 1)
	}
	return mem
}

// put writes a byte to a file of a store, which it creates if need be.
func put(t *testing.T, mem *vfs.Mem, name string, off int64, b byte) {
	t.Helper()
	path := filepath.Join("/store", name)
	f, err := mem.Open(path, true)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = mem.Create(path)
	}
	must.Do(t, err)
	defer f.Close()
	must.Get(f.WriteAt([]byte{b}, off))(t)
}

var errTorn = fault.Corruptf("torn")

// try calls Dir.Retry with a function that fails so often, and then changes the store.
func try(t *testing.T, ctx context.Context, mem *vfs.Mem, failures int, change func(n int)) (tries int, err error) {
	t.Helper()
	err = At(mem, "/store", slog.New(slog.DiscardHandler)).Retry(ctx, func() error {
		if tries++; tries > failures {
			return nil
		}
		change(tries)
		return errTorn
	})
	return tries, err
}

// Whatever a writer changes, a follower that has met it tries again.
func TestFollowerTriesAgainAfterAnyChange(t *testing.T) {
	for name, change := range map[string]func(mem *vfs.Mem, n int){
		"new file":            func(mem *vfs.Mem, n int) { put(t, mem, fmt.Sprint("x", n), 0, 1) },
		"new segment":         func(mem *vfs.Mem, n int) { put(t, mem, fmt.Sprint(LogName, "/", 1+n), 0, 1) },
		"new file in meta":    func(mem *vfs.Mem, n int) { put(t, mem, fmt.Sprint(MetaName, "/", 1+n), 0, 1) },
		"new container":       func(mem *vfs.Mem, n int) { put(t, mem, fmt.Sprint(DataName, "/", 1+n), 0, 1) },
		"longer segment":      func(mem *vfs.Mem, n int) { put(t, mem, LogName+"/1", int64(n), 1) },
		"longer file in meta": func(mem *vfs.Mem, n int) { put(t, mem, MetaName+"/1", int64(n), 1) },
		"anchor":              func(mem *vfs.Mem, n int) { put(t, mem, AnchorName, 0, byte(1+n)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := fakeStore(t)
				must.Equal(t, must.Get(try(t, t.Context(), mem, 10, func(n int) { change(mem, n) }))(t), 11, "tries")
			})
		})
	}
}

// Three failures on the same files are damage. Other followers that come and go change nothing.
func TestFollowerReportsDamageAfterThreeTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := fakeStore(t)
		others := func(n int) {
			var err error
			if n%2 == 1 {
				err = mem.Mkdir("/store/" + PinsName)
			} else {
				err = mem.Remove("/store/" + PinsName)
			}
			must.Do(t, err)
		}
		if tries, err := try(t, t.Context(), mem, 10, others); tries != 3 || err != errTorn {
			t.Errorf("%d tries, %v; want %v after 3", tries, err, errTorn)
		}
		// A change in between begins the count anew.
		change := func(n int) {
			if n == 3 {
				put(t, mem, AnchorName, 0, 2)
			}
		}
		if tries, err := try(t, t.Context(), mem, 10, change); tries != 5 || err != errTorn {
			t.Errorf("with a change: %d tries, %v; want %v after 5", tries, err, errTorn)
		}
	})
}

// A store that changes all the time ends the tries after five seconds, and so does the caller at
// any time.
func TestFollowerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := fakeStore(t)
		change := func(n int) { put(t, mem, LogName+"/1", int64(n), 1) }
		begin := time.Now()
		_, err := try(t, t.Context(), mem, 1<<20, change)
		if took := time.Since(begin); !errors.Is(err, fault.ErrLocked) || errors.Is(err, fault.ErrCorrupt) ||
			took < followPatience || took > followPatience+2*followMaxSleep {
			t.Errorf("after %v: %v; want ErrLocked after %v", took, err, followPatience)
		}
		mem = fakeStore(t)
		ctx, cancel := context.WithCancel(t.Context())
		tries, err := try(t, ctx, mem, 1<<20, func(n int) {
			if change(n); n == 5 {
				cancel()
			}
		})
		if tries > 6 || !errors.Is(err, context.Canceled) {
			t.Errorf("canceled in try 5: %d tries, %v", tries, err)
		}
	})
}
