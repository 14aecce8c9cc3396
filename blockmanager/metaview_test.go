package blockmanager

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/faultfs"
)

// fakeMeta returns a directory with the file names of a Pebble database, whose files contain their
// names, and a view of the disk on which a follower looks at it.
func fakeMeta(t *testing.T) (o Options, mem *vfs.Mem, disk *faultfs.FS) {
	t.Helper()
	mem = vfs.NewMem()
	disk = faultfs.New(mem)
	o = testOptions(disk)
	must.Do(t, errors.Join(mem.Mkdir(o.Dir), mem.Mkdir(o.metaDir())))
	for _, name := range []string{"000004.log", "000006.sst", "MANIFEST-000003"} {
		appendTo(t, mem, o.metaDir()+"/"+name)
	}
	return o, mem, disk
}

// appendTo appends a byte to a file, which it creates if need be.
func appendTo(t *testing.T, mem *vfs.Mem, name string) {
	t.Helper()
	f, err := mem.Open(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = mem.Create(name)
	}
	must.Do(t, err)
	defer f.Close()
	size, err := f.Size()
	if err == nil {
		_, err = f.WriteAt([]byte{1}, size)
	}
	must.Do(t, err)
}

// Files that come or go while a follower opens the others make it begin again, not for good.
func TestViewHasAllFilesOfOneMoment(t *testing.T) {
	for _, changes := range []int{0, 1, viewLooks - 1, viewLooks} {
		for _, kind := range []string{"new", "removed"} {
			t.Run(fmt.Sprintf("%s/changes=%d", kind, changes), func(t *testing.T) {
				o, mem, disk := fakeMeta(t)
				next := func(n int) string { return fmt.Sprintf("%s/%06d.log", o.metaDir(), 10+n) }
				appendTo(t, mem, next(0))
				done := 0
				disk.WatchDone(func(c faultfs.Call) {
					if c.Op != faultfs.Open || !strings.Contains(c.Name, "MANIFEST") || done == changes {
						return
					}
					done++
					if kind == "new" {
						appendTo(t, mem, next(done))
					} else if err := errors.Join(mem.Rename(next(done-1), next(done))); err != nil {
						t.Fatal(err)
					}
				})
				v, err := viewMeta(&o)
				if changes == viewLooks {
					must.Fail(t, err, errMoved, "a directory that changes all the time")
					return
				}
				must.Do(t, err)
				defer v.close()
				if !v.isCurrent(&o) || v.files["000006.sst"] == nil ||
					v.files[next(changes)[len(o.metaDir())+1:]] == nil {
					t.Errorf("after %d changes the view has %q", done, v.names)
				}
			})
		}
	}
}

// What the manifest of a view names is complete in it: a table grows before the manifest does.
func TestViewHasManifestOfBefore(t *testing.T) {
	o, mem, disk := fakeMeta(t)
	opened := 0
	disk.WatchDone(func(c faultfs.Call) {
		if c.Op != faultfs.Open {
			return
		}
		if opened++; opened == 3 { // the last of the files: the others have their lengths
			return
		}
		appendTo(t, mem, o.metaDir()+"/000004.log")
		appendTo(t, mem, o.metaDir()+"/000006.sst")
		appendTo(t, mem, o.metaDir()+"/MANIFEST-000003")
	})
	v := must.Get(viewMeta(&o))(t)
	defer v.close()
	manifest := v.files["MANIFEST-000003"].size
	for _, name := range []string{"000004.log", "000006.sst"} {
		if f := v.files[name]; f.size < manifest {
			t.Errorf("%s has %d bytes, the manifest already %d", name, f.size, manifest)
		}
	}
	must.Equal(t, v.isCurrent(&o), false, "files have grown, and the view is called current")
}
