package kudufs

import (
	"errors"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"github.com/oribi-db/oribi/vfs"
)

// OpenExclusive is Open that first takes the lock of a server on each data directory, until Unlock.
// On a file system that is not the real one nothing is locked. A POSIX lock is lost when the
// process closes any descriptor of its file, so until then no other Directory is opened there by
// this process. Errors: ErrLocked if a server is running; the errors of Open. Source: blockmanager
// spec §1.6.
func OpenExclusive(fsys vfs.FS, dir string) (*Directory, error) {
	d := newDirectory(fsys)
	if err := d.findRoots(dir); err != nil {
		return nil, err
	}
	d.locks = map[string]*os.File{}
	err := d.lockData()
	if err == nil {
		err = d.load(dir)
	}
	if err != nil {
		return nil, errors.Join(err, d.Unlock())
	}
	return d, nil
}

// lockData locks the data directories, in the order of their paths.
func (d *Directory) lockData() error {
	if d.fs != vfs.OS {
		return nil
	}
	for i := range d.Roots {
		name := filepath.Join(d.Roots[i].Dir, dataName, blockInstanceName)
		f, err := lock(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // not a root with data, or damage, which load finds
		}
		if err != nil {
			return err
		}
		d.locks[name] = f
	}
	return nil
}

// Unlock releases the locks of OpenExclusive. It may be called twice.
func (d *Directory) Unlock() (err error) {
	for _, f := range d.locks {
		err = errors.Join(err, f.Close())
	}
	d.locks = nil
	return err
}

// readLocked reads an instance file. If this process has the file's lock, it reads through the
// descriptor that has the lock: closing a second descriptor of the file would release the lock.
func (d *Directory) readLocked(name string, m proto.Message) error {
	f := d.locks[name]
	if f == nil {
		return d.readInstance(name, m)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return decodeFile(name, f, info.Size(), maxInstanceBytes, m)
}
