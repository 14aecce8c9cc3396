package vfs

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a file system in memory that records what was synced.
//
// It has two states of everything: files as written and as of their last Sync, directories as they
// are and as of their last SyncDir. Clone copies the first state, Crash the second. An empty Mem
// has only the directory "/"; relative names start there. There are no links, and space is
// unlimited. A Mem is safe for concurrent use.
//
// One lock guards all of it, so that a copy is the state between two calls and never has a later
// write without an earlier one.
type Mem struct {
	mu   sync.RWMutex
	root *memNode
}

// memNode is a file or a directory. It lives as long as a name or an open file leads to it. All
// fields but the kind are guarded by Mem.mu.
type memNode struct {
	// A directory has names and syncedNames; a file has both nil.
	names, syncedNames map[string]*memNode

	data, syncedData content
	lost             map[int]*page // pages of data that a later Sync takes for synced: LoseUnsynced
	locks            int           // number of shared locks; -1 for an exclusive lock
}

func (n *memNode) isDir() bool { return n.names != nil }

func newMemDir() *memNode {
	return &memNode{names: map[string]*memNode{}, syncedNames: map[string]*memNode{}}
}

// NewMem returns an empty file system.
func NewMem() *Mem {
	return &Mem{root: newMemDir()}
}

// Clone returns the file system after a kill of the process: it has all bytes that were written.
// Bytes and names that were synced count as synced in the copy too, and others do not. No file is
// locked there.
func (m *Mem) Clone() *Mem {
	// Lock, not RLock: sharing a page marks it.
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := map[*memNode]*memNode{}
	var copyNode func(n *memNode) *memNode
	copyNames := func(names map[string]*memNode) map[string]*memNode {
		c := make(map[string]*memNode, len(names))
		for name, n := range names {
			c[name] = copyNode(n)
		}
		return c
	}
	copyNode = func(n *memNode) *memNode {
		if c := copies[n]; c != nil {
			return c
		}
		c := &memNode{}
		copies[n] = c
		if n.isDir() {
			c.names, c.syncedNames = copyNames(n.names), copyNames(n.syncedNames)
		} else {
			c.data, c.syncedData, c.lost = n.data.share(), n.syncedData.share(), maps.Clone(n.lost)
		}
		return c
	}
	return &Mem{root: copyNode(m.root)}
}

// Crash returns what a power cut leaves if nothing unsynced survives: each file has the content and
// length of its last Sync (none if there was no Sync), each directory the names of its last
// SyncDir, so that a file created, renamed or removed since then is absent, has its old name, or is
// back. All of this counts as synced. No file is locked there.
//
// A real disk may leave anything between this and Clone.
func (m *Mem) Crash() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := map[*memNode]*memNode{}
	var copyNode func(n *memNode) *memNode
	copyNode = func(n *memNode) *memNode {
		if c := copies[n]; c != nil {
			return c
		}
		c := &memNode{}
		copies[n] = c
		if !n.isDir() {
			c.data, c.syncedData = n.syncedData.share(), n.syncedData.share()
			return c
		}
		c.names = make(map[string]*memNode, len(n.syncedNames))
		for name, child := range n.syncedNames {
			c.names[name] = copyNode(child)
		}
		c.syncedNames = maps.Clone(c.names)
		return c
	}
	return &Mem{root: copyNode(m.root)}
}

// elements splits a name into the names on the way from the root; none for the root itself.
func elements(name string) []string {
	name = filepath.ToSlash(filepath.Clean(name)[len(filepath.VolumeName(name)):])
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// find returns the node called name. The caller holds m.mu.
func (m *Mem) find(name string) (*memNode, error) {
	n := m.root
	for _, e := range elements(name) {
		if e == "." {
			continue
		}
		if !n.isDir() {
			return nil, syscall.ENOTDIR
		}
		if n = n.names[e]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// parent returns the directory that contains name, and the last element of name. The caller holds
// m.mu.
func (m *Mem) parent(name string) (dir *memNode, base string, err error) {
	path := elements(name)
	if len(path) == 0 || path[len(path)-1] == "." {
		return nil, "", fs.ErrInvalid
	}
	dir, err = m.find(strings.Join(path[:len(path)-1], "/"))
	if err == nil && !dir.isDir() {
		err = syscall.ENOTDIR
	}
	return dir, path[len(path)-1], err
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Create implements FS.
func (m *Mem) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.add(name, &memNode{})
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return &memFile{m: m, n: n, name: name, write: true}, nil
}

// add gives n a new name.
func (m *Mem) add(name string, n *memNode) (*memNode, error) {
	if len(elements(name)) == 0 {
		return nil, fs.ErrExist
	}
	dir, base, err := m.parent(name)
	if err != nil {
		return nil, err
	}
	if dir.names[base] != nil {
		return nil, fs.ErrExist
	}
	dir.names[base] = n
	return n, nil
}

// Open implements FS.
func (m *Mem) Open(name string, write bool) (File, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err == nil && n.isDir() {
		err = fmt.Errorf("directory is %w", ErrNotRegular)
	}
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &memFile{m: m, n: n, name: name, write: write}, nil
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.add(name, newMemDir())
	return pathError("mkdir", name, err)
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base, err := m.parent(name)
	if err != nil {
		return pathError("remove", name, err)
	}
	n := dir.names[base]
	switch {
	case n == nil:
		return pathError("remove", name, fs.ErrNotExist)
	case len(n.names) > 0:
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	delete(dir.names, base)
	return nil
}

// Rename implements FS.
func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.rename(oldName, newName); err != nil {
		return fmt.Errorf("rename %s to %s: %w", oldName, newName, err)
	}
	return nil
}

func (m *Mem) rename(oldName, newName string) error {
	oldDir, oldBase, err := m.parent(oldName)
	if err != nil {
		return err
	}
	n := oldDir.names[oldBase]
	if n == nil {
		return fs.ErrNotExist
	}
	oldPath, newPath := elements(oldName), elements(newName)
	if slices.Equal(oldPath, newPath) {
		return nil
	}
	if len(newPath) > len(oldPath) && slices.Equal(oldPath, newPath[:len(oldPath)]) {
		return fs.ErrInvalid // a directory into itself
	}
	newDir, newBase, err := m.parent(newName)
	if err != nil {
		return err
	}
	if there := newDir.names[newBase]; there != nil && (there.isDir() || n.isDir()) {
		return fs.ErrExist
	}
	delete(oldDir.names, oldBase)
	newDir.names[newBase] = n
	return nil
}

// List implements FS.
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(dir)
	if err == nil && !n.isDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("list", dir, err)
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find(name)
	if err != nil {
		return nil, pathError("stat", name, err)
	}
	return memInfo{name: filepath.Base(name), size: n.data.size, dir: n.isDir()}, nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.find(dir)
	if err == nil && !n.isDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("sync", dir, err)
	}
	n.syncedNames = maps.Clone(n.names)
	return nil
}

// FreeBytes implements FS.
func (m *Mem) FreeBytes(string) int64 { return -1 }

type memInfo struct {
	name string
	size int64
	dir  bool
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }
func (i memInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | dirMode
	}
	return fileMode
}
