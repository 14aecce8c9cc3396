package carbondata

import (
	"path/filepath"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// faultyFS is a file system in which calls fail.
type faultyFS struct{ *faultfs.FS }

func (f faultyFS) Create(name string) (folderFile, error) { return f.FS.Create(name) }

// TestFailedWritesLeaveNothing fails each call to the disk that changes something, before, in the
// middle, and after its work.
func TestFailedWritesLeaveNothing(t *testing.T) {
	for _, when := range []faultfs.When{faultfs.Before, faultfs.Middle, faultfs.After} {
		for n := 0; ; n++ {
			mem := vfs.NewMem()
			must.Do(t, mem.Mkdir("/d"))
			disk := faultfs.New(mem)
			fault := disk.Fail(faultfs.Rule{Ops: faultfs.Changes, Skip: n, When: when})
			err := func() error {
				w, err := create(faultyFS{disk}, "/d/out", []Column{column("a", Int), column("s", String)},
					WriterOptions{PageRows: 2, BlockletBytes: 1, FileBytes: 400})
				if err != nil {
					return err
				}
				defer w.Abort()
				for i := range 7 {
					if err := w.Append([]any{int32(i), "text"}); err != nil {
						return err
					}
				}
				return w.Close()
			}()
			names := must.Get(mem.List("/d"))(t)
			call, failed := fault.First()
			if !failed {
				if err != nil || len(names) != 1 || n < 12 {
					t.Errorf("%d calls: %v, %q", n, err, names)
				}
				break
			}
			if err == nil || len(names) != 0 {
				t.Errorf("call %d, %v, failed: %v, files %q", n, call, err, names)
			}
		}
	}
}

// TestAbortTriesAgain removes files that a failed call could not remove.
func TestAbortTriesAgain(t *testing.T) {
	mem := vfs.NewMem()
	must.Do(t, mem.Mkdir("/d"))
	disk := faultfs.New(mem)
	w := must.Get(
		create(faultyFS{disk}, "/d/out", []Column{column("a", Int)}, WriterOptions{PageRows: 1, BlockletBytes: 1}))(t)
	disk.Fail(faultfs.Rule{Ops: []faultfs.Op{faultfs.Sync, faultfs.Remove}, Times: 2})
	must.Do(t, w.Append([]any{int32(1)}))
	must.Refuse(t, w.Close())
	must.Equal(t, len(must.Get(mem.List("/d"))(t)), 1)
	must.Do(t, w.Abort())
	must.Equal(t, len(must.Get(mem.List("/d"))(t)), 0)
}

// TestFailedSortsLeaveNothing fails each call of a writer that sorts after it has written files.
func TestFailedSortsLeaveNothing(t *testing.T) {
	for n := 0; ; n++ {
		parent, temp := t.TempDir(), t.TempDir()
		disk := faultfs.New(vfs.OS)
		fault := disk.Fail(faultfs.Rule{Ops: faultfs.Changes, Skip: n})
		err := func() error {
			o := WriterOptions{SortColumns: []string{"a"}, PageRows: 2, BlockletBytes: 1,
				FileBytes: 300, TempDir: temp, SortMemory: 1}
			w, err := create(faultyFS{disk}, filepath.Join(parent, "out"), []Column{column("a", Int)}, o)
			if err != nil {
				return err
			}
			defer w.Abort()
			for _, i := range []int32{1, 2, 3, 4, 5, 0, 7} {
				if err := w.Append([]any{i}); err != nil {
					return err
				}
			}
			return w.Close()
		}()
		names := append(namesIn(t, parent), namesIn(t, temp)...)
		call, failed := fault.First()
		if !failed {
			if err != nil || len(names) != 1 || n < 20 {
				t.Errorf("%d calls: %v, %q", n, err, names)
			}
			break
		}
		if err == nil || len(names) != 0 {
			t.Errorf("call %d, %v, failed: %v, files %q", n, call, err, names)
		}
	}
}
