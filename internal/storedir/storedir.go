// Package storedir manages the files in a store's directory that contain no data: INSTANCE, which
// makes the directory a store, LOCK, RESERVE, and the pins of followers. It also knows the names of
// all other files.
package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/vfs"
)

// Names in a store's directory.
const (
	LockName        = "LOCK"
	FormattingName  = "FORMATTING"
	InstanceName    = instore.InstanceName
	InstanceTmpName = "INSTANCE.tmp"
	AnchorName      = "ANCHOR"
	ReserveName     = "RESERVE"
	LogName         = "wal"
	MetaName        = "meta"
	DataName        = "data"
	PinsName        = "readers"
)

// Names are all names in a store's directory but InstanceName.
var Names = []string{LockName, FormattingName, InstanceTmpName, AnchorName, LogName, MetaName, DataName, PinsName,
	blockmanager.JournalName, blockmanager.JournalNewName, ReserveName}

// Dir is the directory of a store. It is immutable, and safe for concurrent use.
type Dir struct {
	FS     vfs.FS
	Path   string // not a symbolic link, which file systems do not follow
	Logger *slog.Logger
}

// At returns the directory at path, or, if path is a symbolic link, at the place to which it leads.
// A link that leads nowhere stays in Dir.Path, and a later step reports the error.
func At(fsys vfs.FS, path string, logger *slog.Logger) Dir {
	d := Dir{fsys, path, logger}
	if info, err := fsys.Stat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			d.Path = target
		}
	}
	return d
}

// File returns the path of a file in the directory.
func (d Dir) File(name string) string { return filepath.Join(d.Path, name) }

// FreeBytes returns the free space of the volume in bytes, negative if it is not known.
func (d Dir) FreeBytes() int64 { return d.FS.FreeBytes(d.Path) }

// read returns the first bytes of a file in the directory, at most limit.
func (d Dir) read(name string, limit int64) ([]byte, error) {
	f, err := d.FS.Open(d.File(name), false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(size, limit))
	if n, err := f.ReadAt(b, 0); n < len(b) {
		return nil, err
	}
	return b, nil
}

// write creates a small file in the directory and syncs it.
func (d Dir) write(name string, b []byte) error {
	f, err := d.FS.Create(d.File(name))
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// onlyOurs returns an error if wal/ or data/ in an unfinished format is a symbolic link, or has
// files that a format does not make.
func (d Dir) onlyOurs() error {
	all := func(string) bool { return true }
	for _, sub := range []struct {
		name string
		ours func(name string) bool
	}{{LogName, wal.IsName}, {DataName, blockmanager.IsName}, {MetaName, all}} {
		path := d.File(sub.name)
		info, err := d.FS.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if !info.IsDir() {
			return notStore("%s is no directory", sub.name)
		}
		names, err := d.FS.List(path)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !sub.ours(name) {
				return notStore("the store was not created completely, and %s in %s is not a file of a store",
					name, sub.name)
			}
		}
	}
	return nil
}

// notStore returns an ErrNotStore with a reason.
func notStore(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), fault.ErrNotStore)
}
