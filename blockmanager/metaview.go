package blockmanager

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// metaView is a file system in which meta/ is as it was at one moment, while another process writes
// to it. Everything else is as in the file system below.
//
// Pebble makes new files, appends to its log and its manifest, and removes files; it changes no
// byte that it has written. So open files and their lengths determine the content of the directory
// for good:
//
//	List       log 4, manifest 3, tables 1 2
//	Open       manifest 3, then log 4, tables 1 2
//	                                                writer: log 5, table 6 from log 4, a record of it in manifest 3,
//	                                                        removes log 4
//	List       as before, or everything is opened again
//
// The manifest is opened first, so what its bytes name is among the files that are opened later,
// unless they were removed meanwhile: then the second List differs. The logs have at least what
// they had when the manifest was opened. A record that is not complete yet counts as the end of its
// file.
//
// The root row and its hash then show that all rows belong to the same metadata commit.
type metaView struct {
	vfs.FS
	dir   string
	names []string
	files map[string]*viewFile // by name; what is not a regular file is not among them
}

// viewLooks is how often viewMeta tries to find the directory unchanged.
const viewLooks = 20

// errMoved means that files came or went while they were opened.
var errMoved = errors.New("the files of the metadata change all the time")

// viewMeta returns a view of meta/. The caller closes it when it has closed all files.
func viewMeta(o *Options) (*metaView, error) {
	for look := 1; ; look++ {
		v, err := captureMeta(o)
		if err == nil || !errors.Is(err, errMoved) || look == viewLooks {
			return v, err
		}
	}
}

func captureMeta(o *Options) (_ *metaView, err error) {
	v := &metaView{FS: o.FS, dir: o.metaDir(), files: map[string]*viewFile{}}
	if v.names, err = o.FS.List(v.dir); errors.Is(err, fs.ErrNotExist) {
		return v, nil // Pebble's error names the missing file
	} else if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	order := slices.Clone(v.names)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(openOrder(a), openOrder(b)) })
	for _, name := range order {
		f, err := o.FS.Open(filepath.Join(v.dir, name), false)
		switch {
		case errors.Is(err, vfs.ErrNotRegular):
			continue
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w: %w", errMoved, err)
		case err != nil:
			return nil, err
		}
		file := &viewFile{f: f}
		v.files[name] = file
		if file.size, err = f.Size(); err != nil {
			return nil, err
		}
	}
	again, err := o.FS.List(v.dir)
	if err == nil && !slices.Equal(again, v.names) {
		err = errMoved
	}
	return v, err
}

// isCurrent reports whether the directory is as the view has it. The view may be closed.
func (v *metaView) isCurrent(o *Options) bool {
	names, err := o.FS.List(v.dir)
	if err != nil || !slices.Equal(names, v.names) {
		return false
	}
	for name, f := range v.files {
		info, err := o.FS.Stat(filepath.Join(v.dir, name))
		if err != nil || info.Size() != f.size {
			return false
		}
	}
	return true
}

// openOrder returns the place of a file in the order in which a view opens them.
func openOrder(name string) int {
	if strings.HasPrefix(name, "MANIFEST-") {
		return 0
	}
	return 1
}

// close closes the files.
func (v *metaView) close() {
	for _, f := range v.files {
		f.f.Close()
	}
}

// file returns the file of the view with this path, or nil if the view has no such file.
func (v *metaView) file(path string) *viewFile {
	if filepath.Dir(path) != v.dir {
		return nil
	}
	return v.files[filepath.Base(path)]
}

func (v *metaView) Open(name string, write bool) (vfs.File, error) {
	f := v.file(name)
	switch {
	case f != nil && write:
		return nil, fmt.Errorf("open %s: %w", name, fault.ErrReadOnly)
	case f != nil:
		return f, nil
	case filepath.Dir(name) == v.dir && !slices.Contains(v.names, filepath.Base(name)):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return v.FS.Open(name, write)
}

func (v *metaView) List(dir string) ([]string, error) {
	if dir == v.dir {
		return slices.Clone(v.names), nil
	}
	return v.FS.List(dir)
}

func (v *metaView) Stat(name string) (fs.FileInfo, error) {
	if f := v.file(name); f != nil {
		return viewInfo{filepath.Base(name), f.size}, nil
	}
	return v.FS.Stat(name)
}

// viewFile is a file of a view, which closes it.
type viewFile struct {
	f    vfs.File
	size int64
}

func (f *viewFile) ReadAt(b []byte, off int64) (int, error) {
	if off >= f.size {
		return 0, io.EOF
	}
	want := len(b)
	b = b[:min(int64(want), f.size-off)]
	n, err := f.f.ReadAt(b, off)
	if err == nil && n < want {
		err = io.EOF
	}
	return n, err
}

func (f *viewFile) Size() (int64, error) { return f.size, nil }
func (f *viewFile) Close() error         { return nil }

func (f *viewFile) WriteAt([]byte, int64) (int, error) { return 0, fault.ErrReadOnly }
func (f *viewFile) Sync() error                        { return fault.ErrReadOnly }
func (f *viewFile) Truncate(int64) error               { return fault.ErrReadOnly }
func (f *viewFile) Preallocate(int64, int64) error     { return fault.ErrReadOnly }
func (f *viewFile) PunchHole(int64, int64) error       { return fault.ErrReadOnly }

// viewInfo describes a file of a view.
type viewInfo struct {
	name string
	size int64
}

func (i viewInfo) Name() string     { return i.name }
func (i viewInfo) Size() int64      { return i.size }
func (viewInfo) Mode() fs.FileMode  { return 0o600 }
func (viewInfo) ModTime() time.Time { return time.Time{} }
func (viewInfo) IsDir() bool        { return false }
func (viewInfo) Sys() any           { return nil }
