// Package newfile writes files that appear under their names complete and durable, or not at all.
//
//	f, err := newfile.Create("rows.csv")
//	if err != nil { … }
//	defer f.Abort() // does nothing after Commit
//	… f.Write(…) …
//	err = f.Commit()
//
// Until Commit the bytes are in a file with a temporary name, in the same directory: a crash leaves
// that one. A File is not safe for concurrent use.
package newfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
)

// File is a new file. Either Commit or Abort must be called. Errors of its methods that are
// *fs.PathError have its final name.
type File struct {
	name string
	tmp  string   // "" once it has the final name, or none
	f    *os.File // nil once it is closed
}

// Create creates a file that others may read, as far as the process's umask allows. An existing
// name is an error (fs.ErrExist), here and in Commit, and so is one in the directory of a store.
func Create(name string) (*File, error) {
	f := &File{name: name}
	if err := instore.Check(vfs.OS, name); err != nil {
		return nil, err
	}
	if err := f.mustNotExist(); err != nil {
		return nil, err
	}
	var err error
	for range 100 {
		f.tmp = filepath.Join(filepath.Dir(name), fmt.Sprintf(".oribi-%08x.tmp", rand.Uint32()))
		f.f, err = os.OpenFile(f.tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, f.named("create", err)
	}
	return f, nil
}

// named replaces the temporary name in an error.
func (f *File) named(op string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: op, Path: f.name, Err: p.Err}
	}
	return err
}

func (f *File) mustNotExist() error {
	_, err := os.Lstat(f.name)
	if err == nil {
		return &fs.PathError{Op: "create", Path: f.name, Err: fs.ErrExist}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.named("create", err)
}

// Write appends to the file. After Commit or Abort it returns fs.ErrClosed.
func (f *File) Write(p []byte) (int, error) {
	if f.f == nil {
		return 0, &fs.PathError{Op: "write", Path: f.name, Err: fs.ErrClosed}
	}
	n, err := f.f.Write(p)
	if err != nil {
		err = f.named("write", err)
	}
	return n, err
}

// Commit makes the bytes durable, and then the name. After an error there is no file.
//
//  1. The temporary file is synced. A crash here leaves only that.
//  2. It gets its name; the temporary one is removed.
//  3. The directory is synced.
func (f *File) Commit() error {
	if f.f == nil {
		return &fs.PathError{Op: "commit", Path: f.name, Err: fs.ErrClosed}
	}
	err := f.f.Sync()
	if closed := f.f.Close(); err == nil {
		err = closed
	}
	f.f = nil
	if err != nil {
		err = f.named("write", err)
	} else if err = f.rename(); err == nil {
		f.tmp = ""
		if err = vfs.OS.SyncDir(filepath.Dir(f.name)); err != nil {
			os.Remove(f.name)
		}
	}
	if err != nil {
		return errors.Join(err, f.Abort())
	}
	return nil
}

// rename gives the file its name unless there is a file of that name. A link does that in one step;
// some file systems have none.
func (f *File) rename() error {
	err := os.Link(f.tmp, f.name)
	switch {
	case err == nil:
		if err = os.Remove(f.tmp); err != nil {
			os.Remove(f.name)
		}
		return err
	case errors.Is(err, fs.ErrExist):
		return &fs.PathError{Op: "create", Path: f.name, Err: fs.ErrExist}
	}
	if err := f.mustNotExist(); err != nil {
		return err
	}
	return os.Rename(f.tmp, f.name)
}

// Abort gives up the file: it removes what was written. After Commit, or a second time, it does
// nothing, so that it can be deferred.
func (f *File) Abort() error {
	if f.f != nil {
		f.f.Close()
		f.f = nil
	}
	if f.tmp == "" {
		return nil
	}
	err := os.Remove(f.tmp)
	f.tmp = ""
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
