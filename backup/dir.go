package backup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/vfs"
)

// Names in a directory that are not objects.
const (
	lockName = "LOCK"
	tmpName  = "tmp" // objects that are being written
)

// Dir is the Storage in a directory. Its parent must exist; the first backup creates the directory
// itself, which must not be in the directory of a store. fsys nil means the file system of the
// operating system.
func Dir(dir string, fsys vfs.FS) Storage {
	if fsys == nil {
		fsys = vfs.OS
	}
	return &dirStorage{dir, fsys}
}

type dirStorage struct {
	dir string
	fs  vfs.FS
}

func (d *dirStorage) path(name string) string { return filepath.Join(d.dir, filepath.FromSlash(name)) }

// Put writes a file in tmp/, syncs it, and moves it to its name, so that a crash leaves all of it
// or none.
func (d *dirStorage) Put(ctx context.Context, name string, r io.Reader) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	to := d.path(name)
	if _, err := d.fs.Stat(to); err == nil {
		return &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(d.mkdir(tmpName), d.mkdir(path.Dir(name))); err != nil {
		return err
	}
	var random [12]byte
	rand.Read(random[:])
	tmp := d.path(tmpName + "/" + hex.EncodeToString(random[:]))
	if err := d.write(tmp, r); err != nil {
		return errors.Join(err, vfs.RemoveAll(d.fs, tmp))
	}
	if err := d.fs.Rename(tmp, to); err != nil {
		return errors.Join(err, vfs.RemoveAll(d.fs, tmp))
	}
	if err := d.fs.SyncDir(filepath.Dir(to)); err != nil {
		return errors.Join(err, vfs.RemoveAll(d.fs, to))
	}
	return nil
}

func (d *dirStorage) write(name string, r io.Reader) (err error) {
	f, err := d.fs.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(io.NewOffsetWriter(f, 0), r); err != nil {
		return err
	}
	return f.Sync()
}

// mkdir makes a directory below d.dir, with its parents up to d.dir, durably.
func (d *dirStorage) mkdir(name string) error {
	if name == "." {
		return nil
	}
	if _, err := d.fs.Stat(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := d.fs.Mkdir(d.path(name)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(d.path(name)))
}

func (d *dirStorage) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := d.fs.Open(d.path(name), false)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, size), f}, nil
}

func (d *dirStorage) List(ctx context.Context, prefix string, fn func(name string, bytes int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := d.fs.List(d.path(prefix))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, n := range names {
		name := prefix + n
		if name == lockName || name == tmpName {
			continue
		}
		info, err := d.fs.Stat(d.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted since
			continue
		case err != nil:
			return err
		case info.IsDir():
			err = d.List(ctx, name+"/", fn)
		default:
			err = fn(name, info.Size())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a file, durably.
func (d *dirStorage) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.fs.Remove(d.path(name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return d.fs.SyncDir(filepath.Dir(d.path(name)))
}

func (d *dirStorage) Lock(ctx context.Context, exclusive bool) (io.Closer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !exclusive {
		l, err := d.fs.Lock(d.path(lockName), vfs.LockShared)
		if errors.Is(err, fs.ErrNotExist) { // a copy of a repository
			return io.NopCloser(strings.NewReader("")), nil
		}
		return l, err
	}
	if err := instore.Check(d.fs, d.dir); err != nil {
		return nil, err
	}
	if err := d.fs.Mkdir(d.dir); err == nil {
		if err := d.fs.SyncDir(filepath.Dir(d.dir)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	l, err := d.fs.Lock(d.path(lockName), vfs.LockCreate)
	if err != nil {
		return nil, err
	}
	if err := vfs.RemoveAll(d.fs, d.path(tmpName)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}
