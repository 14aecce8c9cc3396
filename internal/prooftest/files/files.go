// Package files reads directory trees for proofs: names, contents, and a hash of both.
package files

import (
	"io"
	"path/filepath"

	"github.com/zeebo/xxh3"

	"github.com/oribi-db/oribi/vfs"
)

// Walk calls visit for dir and everything below it: a directory before its contents, names in the
// order of fsys.List. The first error ends it.
func Walk(fsys vfs.FS, dir string, visit func(name string, isDir bool) error) error {
	info, err := fsys.Stat(dir)
	if err != nil {
		return err
	}
	if err := visit(dir, info.IsDir()); err != nil || !info.IsDir() {
		return err
	}
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := Walk(fsys, filepath.Join(dir, n), visit); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads a whole file.
func ReadFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, 0, size))
}

// Files returns the paths of all files below dir.
func Files(fsys vfs.FS, dir string) (names []string, err error) {
	err = Walk(fsys, dir, func(name string, isDir bool) error {
		if !isDir {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Fingerprint returns a hash of all names below dir and of the contents of all files.
func Fingerprint(fsys vfs.FS, dir string) (sum [16]byte, err error) {
	h := xxh3.New128()
	err = Walk(fsys, dir, func(name string, isDir bool) error {
		h.WriteString(name + "\x00")
		if isDir {
			return nil
		}
		b, err := ReadFile(fsys, name)
		content := xxh3.Hash128(b).Bytes()
		h.Write(content[:])
		return err
	})
	return h.Sum128().Bytes(), err
}
