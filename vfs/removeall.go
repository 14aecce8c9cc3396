package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// RemoveAll removes a file, or a directory with all that is in it. A missing name is not an error.
func RemoveAll(fsys FS, name string) error {
	info, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		names, err := fsys.List(name)
		if err != nil {
			return err
		}
		for _, n := range names {
			if err := RemoveAll(fsys, filepath.Join(name, n)); err != nil {
				return err
			}
		}
	}
	return fsys.Remove(name)
}
