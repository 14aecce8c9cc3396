// Package instore keeps what is written next to stores out of them: a copy, a repository, or an
// export in the directory of a store would be lost with it, and be taken for damage.
package instore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/vfs"
)

// The file that each store has, and its first bytes.
const (
	InstanceName  = "INSTANCE"
	InstanceMagic = "oribinst" // see the format of INSTANCE in package storedir
)

// LostFound is the name that some file systems have at the top of each volume. A directory with
// nothing else is empty.
const LostFound = "lost+found"

// Check returns an error if something new at path would be in the directory of a store, whether
// path leads there directly, through symbolic links, or by "..". It is also an error in the
// directories that are named stores, and for an empty path. path itself may be a store.
func Check(fsys vfs.FS, path string, stores ...string) error {
	if path == "" {
		return errors.New("the name of the file or directory to write is empty")
	}
	at := resolve(path)
	for _, store := range stores {
		if below(at, resolve(store)) {
			return inStore(path)
		}
	}
	for dir := filepath.Dir(at); dir != at; at, dir = dir, filepath.Dir(dir) {
		if isStore(fsys, dir) {
			return inStore(path)
		}
	}
	return nil
}

func inStore(path string) error {
	return fmt.Errorf("%s is in the directory of a store: choose a place outside of it", path)
}

// Dangles reports whether path is a symbolic link that leads nowhere.
func Dangles(fsys vfs.FS, path string) bool {
	info, err := fsys.Stat(path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return false
	}
	_, err = filepath.EvalSymlinks(path)
	return errors.Is(err, fs.ErrNotExist)
}

// resolve returns an absolute path without symbolic links. If the path does not exist, or if it is a
// link whose target does not exist, resolve resolves the parent directory of the path or target. A
// file system in memory has no links.
func resolve(path string) string {
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		if target, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			path = target
		}
		if parent, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			at = filepath.Join(parent, filepath.Base(path))
		} else {
			at = filepath.Clean(path)
		}
	}
	if abs, err := filepath.Abs(at); err == nil {
		at = abs
	}
	return at
}

func below(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != "." && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

func isStore(fsys vfs.FS, dir string) bool {
	f, err := fsys.Open(filepath.Join(dir, InstanceName), false)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, len(InstanceMagic))
	n, _ := f.ReadAt(b, 0)
	return string(b[:n]) == InstanceMagic
}
