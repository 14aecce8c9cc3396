package kudufs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/oribi-db/oribi/vfs"
)

// temporary is part of the names of files that a server was writing when it ended.
const temporary = ".kudutmp" // file format: never change

// isTemporary reports whether a file has the name of a temporary file, which a server removes when
// it starts.
func isTemporary(name string) bool { return strings.Contains(name, temporary) }

// Replace makes content the content of a file, atomically and durably: it writes and syncs another
// file, renames it, and syncs the directory. A crash leaves the old file or the new one, and
// perhaps the other file, which a server removes when it starts.
func Replace(fsys vfs.FS, name string, content []byte) (err error) {
	next := name + temporary + ".oribi0"
	if err := fsys.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := fsys.Create(next)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(next, name)
	}
	if err != nil {
		return errors.Join(err, fsys.Remove(next))
	}
	return fsys.SyncDir(filepath.Dir(name))
}
