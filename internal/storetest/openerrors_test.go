package storetest

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// An error of the operating system during Open is returned as that error: it does not turn into
// ErrNotStore, ErrLocked or ErrCorrupt. Every disk operation of every way to open fails once with
// EIO. Operations of the ways that include others also fail with errors that Pebble and the store
// may take for answers; without $ORIBI_FULL, one in three of them.
func TestOpenReturnsFileSystemErrorsUnchanged(t *testing.T) {
	closed, killed := storeTree(t)
	for _, c := range []struct {
		name string
		tree map[string][]byte // nil: no directory
		opts oribi.Options
		most bool // it includes another way
	}{
		{"writer", closed, oribi.Options{}, false},
		{"writer after a kill", killed, oribi.Options{}, true},
		{"writer of an existing store", closed, oribi.Options{ErrorIfMissing: true}, false},
		{"reader", closed, oribi.Options{ReadOnly: true}, false},
		{"reader after a kill", killed, oribi.Options{ReadOnly: true}, true},
		{"new store in an empty directory", map[string][]byte{}, oribi.Options{}, false},
		{"new store in a new directory", nil, oribi.Options{ErrorIfExists: true}, true},
		{"unfinished format", map[string][]byte{"LOCK": {}, "FORMATTING": {}, "meta": nil}, oribi.Options{}, true},
	} {
		numbers := []syscall.Errno{syscall.EIO}
		if c.most && !testing.Short() {
			numbers = append(numbers, syscall.EACCES, syscall.EMFILE)
		}
		for _, number := range numbers {
			t.Run(fmt.Sprintf("open=%s/error=%d", c.name, int(number)), func(t *testing.T) {
				mem := vfs.NewMem()
				if c.tree != nil {
					must.Do(t, mem.Mkdir("/store"))
					writeTree(t, mem, "/store", c.tree)
				}
				stride := 1
				if number != syscall.EIO {
					stride = seedtest.Stride(3)
				}
				for failed := 0; ; failed += stride {
					disk := faultfs.New(mem.Clone())
					fault := disk.Fail(faultfs.Rule{Skip: failed, Err: number, Ops: opensAndReads})
					opts := c.opts
					opts.FS, opts.Manual = disk, true
					store, err := oribi.Open("/store", &opts)
					call, met := fault.First()
					switch {
					case err == nil:
						store.Close()
					case !errors.Is(err, number):
						t.Errorf("%s of %s fails: %v, want the error of the disk", call.Op, call.Name, err)
					case errors.Is(err, oribi.ErrNotStore), errors.Is(err, oribi.ErrLocked),
						errors.Is(err, oribi.ErrCorrupt):
						t.Errorf("%s of %s fails: %v", call.Op, call.Name, err)
					}
					if !met {
						must.Do(t, err, "without a fault")
						break
					}
				}
			})
		}
	}
}

// opensAndReads lists the kinds of operations that read the state of the disk.
var opensAndReads = append([]faultfs.Op{faultfs.Read, faultfs.Create}, faultfs.Looks...)
