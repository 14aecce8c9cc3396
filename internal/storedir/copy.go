package storedir

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
)

// MayCopyTo returns an error unless dir is missing or an empty directory, and not in the directory
// of a store, of which some are known. Errors: fs.ErrExist; fs.ErrNotExist if dir has no parent.
func MayCopyTo(fsys vfs.FS, dir string, stores ...string) error {
	if err := instore.Check(fsys, dir, stores...); err != nil {
		return err
	}
	to := At(fsys, dir, nil)
	dir = to.Path
	info, err := fsys.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fsys.Stat(filepath.Dir(dir)); errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOENT}
		}
		return nil
	} else if err != nil {
		return err
	}
	if instore.Dangles(fsys, dir) {
		return fault.Reworded(fs.ErrExist, "%s is a symbolic link that leads nowhere", dir)
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.EEXIST}
	}
	return to.MustBeEmpty()
}

// MustBeEmpty returns fs.ErrExist unless the directory has at most the names that an empty one may
// have.
func (d Dir) MustBeEmpty() error {
	state, err := d.State()
	if err == nil && state != Empty {
		err = fault.Reworded(fs.ErrExist, "%s exists and is not empty", d.Path)
	}
	return err
}

// FileBytes returns the length of all files in the directory.
func (d Dir) FileBytes() (int64, error) { return treeBytes(d.FS, d.Path) }

// treeBytes returns the length of all files below dir.
func treeBytes(fsys vfs.FS, dir string) (bytes int64, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if name == instore.LostFound {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := fsys.Stat(path)
		if err != nil {
			return 0, err
		}
		n := info.Size()
		if info.IsDir() {
			if n, err = treeBytes(fsys, path); err != nil {
				return 0, err
			}
		}
		bytes += n
	}
	return bytes, nil
}
