package blockmanager

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"

	pvfs "github.com/cockroachdb/pebble/v2/vfs"
)

// pebbleFS adapts our file system to Pebble's.
//
// Lock does nothing, since the store holds its own LOCK. If readOnly is set, every call that writes
// fails.
//
// A call that fails to write poisons and never returns. Once the store is poisoned, or after sever,
// no call writes or returns any more. Pebble must not see the error: after a failed sync of its
// directory, or a failed close of its log, it panics in one of its goroutines, which would end the
// host's process; after a failed flush it retries at once, forever. Under a writer, a call that
// fails to read does not return either: when Open for writing fails, it closes what a compaction
// that it has already started still uses, and the compaction panics.
type pebbleFS struct {
	fs       vfs.FS
	readOnly bool
	poison   *poison

	mu      sync.Mutex
	idle    sync.Cond // writing has become 0
	writing int       // calls in progress that write
	severed bool
	open    map[*pebbleFile]struct{} // to close them when Pebble is abandoned
	markers []string                 // to be removed after the next sync of their directory
}

func newPebbleFS(fs vfs.FS, readOnly bool, p *poison) *pebbleFS {
	pfs := &pebbleFS{fs: fs, readOnly: readOnly, poison: p, open: map[*pebbleFile]struct{}{}}
	pfs.idle.L = &pfs.mu
	return pfs
}

// sever waits for the calls in progress that write; no other one begins. So an abandoned Pebble
// changes nothing in the directory that the caller may remove, or open again.
func (p *pebbleFS) sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.severed = true
	for p.writing > 0 {
		p.idle.Wait()
	}
}

// closeFiles closes the descriptors of an abandoned Pebble.
func (p *pebbleFS) closeFiles() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for f := range p.open {
		f.f.Close()
	}
	clear(p.open)
}

// write makes a call that changes the disk.
func (p *pebbleFS) write(op, name string, call func() error) error {
	if p.readOnly {
		return fmt.Errorf("%s %s: %w", op, name, fault.ErrReadOnly)
	}
	p.mu.Lock()
	if p.severed || p.poison.is() {
		p.mu.Unlock()
		select {} // only goroutines of Pebble and of metaStore.run get here
	}
	p.writing++
	p.mu.Unlock()
	err := call()
	p.mu.Lock()
	if p.writing--; p.writing == 0 {
		p.idle.Broadcast()
	}
	p.mu.Unlock()
	return p.afterWrite(op, name, err)
}

// afterWrite returns nil and fs.ErrNotExist unchanged. Any other error of a call that changes the
// disk poisons the store, and afterWrite never returns.
func (p *pebbleFS) afterWrite(op, name string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.poison.set(fmt.Errorf("metadata: %s %s: %w", op, filepath.Base(name), err))
	select {}
}

// afterRead is afterWrite for a call that reads. To the Pebble of a reader, which does no
// background work, it returns the error.
func (p *pebbleFS) afterRead(op, name string, err error) error {
	if p.readOnly || errors.Is(err, io.EOF) {
		return err
	}
	return p.afterWrite(op, name, err)
}

func (p *pebbleFS) add(f vfs.File, name string, write bool) *pebbleFile {
	pf := &pebbleFile{p: p, f: f, name: name, write: write}
	p.mu.Lock()
	p.open[pf] = struct{}{}
	p.mu.Unlock()
	return pf
}

// Create creates a new file and replaces an existing one.
func (p *pebbleFS) Create(name string, _ pvfs.DiskWriteCategory) (pvfs.File, error) {
	if isMarker(name) {
		dir := filepath.Dir(name)
		if err := p.write("sync", dir, func() error { return p.fs.SyncDir(dir) }); err != nil {
			return nil, err
		}
	}
	var f vfs.File
	err := p.write("create", name, func() (err error) {
		f, err = p.fs.Create(name)
		if errors.Is(err, fs.ErrExist) {
			if err = p.fs.Remove(name); err == nil {
				f, err = p.fs.Create(name)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.add(f, name, true), nil
}

// Link is used by checkpoints and ingestion only, which this package does not use.
func (p *pebbleFS) Link(oldname, newname string) error {
	return fault.Unsupportedf("link %s to %s", oldname, newname)
}

func (p *pebbleFS) Open(name string, opts ...pvfs.OpenOption) (pvfs.File, error) {
	f, err := p.fs.Open(name, false)
	if err := p.afterRead("open", name, err); err != nil {
		return nil, err
	}
	pf := p.add(f, name, false)
	for _, o := range opts {
		o.Apply(pf)
	}
	return pf, nil
}

func (p *pebbleFS) OpenReadWrite(name string, c pvfs.DiskWriteCategory, opts ...pvfs.OpenOption) (pvfs.File, error) {
	var f vfs.File
	err := p.write("open", name, func() (err error) {
		f, err = p.fs.Open(name, true)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return p.Create(name, c)
	}
	if err != nil {
		return nil, err
	}
	pf := p.add(f, name, true)
	for _, o := range opts {
		o.Apply(pf)
	}
	return pf, nil
}

func (p *pebbleFS) OpenDir(name string) (pvfs.File, error) {
	info, err := p.fs.Stat(name)
	if err := p.afterRead("stat", name, err); err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a directory")}
	}
	return &pebbleDir{p: p, name: name}, nil
}

func (p *pebbleFS) Remove(name string) error {
	return p.write("remove", name, func() error {
		if !isMarker(name) {
			return p.fs.Remove(name)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.markers = append(p.markers, name)
		return nil
	})
}

// isMarker reports whether name is a marker: a file whose name specifies the current manifest.
//
// Pebble creates the new manifest and the new marker, removes the old marker, and only then syncs
// the directory. A file system need not keep that order: a power cut could leave a marker whose
// manifest has no name, or no marker at all. So the directory is synced before a marker is created,
// and the old marker is removed after the sync. If a power cut restores the old marker, Pebble uses
// the newer one.
func isMarker(name string) bool { return strings.HasPrefix(filepath.Base(name), "marker.") }

// removeMarkers removes the old markers of a directory that has just been synced.
func (p *pebbleFS) removeMarkers(dir string) error {
	p.mu.Lock()
	due := p.markers
	p.markers = nil
	p.mu.Unlock() // a failed call never returns
	for _, name := range due {
		if filepath.Dir(name) != dir {
			p.mu.Lock()
			p.markers = append(p.markers, name)
			p.mu.Unlock()
			continue
		}
		if err := p.write("remove", name, func() error { return p.fs.Remove(name) }); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (p *pebbleFS) RemoveAll(name string) error {
	return p.write("remove", name, func() error { return vfs.RemoveAll(p.fs, name) })
}

func (p *pebbleFS) Rename(oldname, newname string) error {
	return p.write("rename", oldname, func() error { return p.fs.Rename(oldname, newname) })
}

// ReuseForWrite creates a new file instead. Pebble's reader detects damage least reliably in a log
// with old records after the new ones.
func (p *pebbleFS) ReuseForWrite(oldname, newname string, c pvfs.DiskWriteCategory) (pvfs.File, error) {
	f, err := p.Create(newname, c)
	if err != nil {
		return nil, err
	}
	if err := p.Remove(oldname); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (p *pebbleFS) MkdirAll(dir string, perm os.FileMode) error {
	info, err := p.fs.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.afterRead("stat", dir, err)
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := p.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	return p.write("mkdir", dir, func() error { return p.fs.Mkdir(dir) })
}

// Lock does nothing: the caller of Open holds the store's own lock.
func (p *pebbleFS) Lock(string) (io.Closer, error) { return noLock{}, nil }

type noLock struct{}

func (noLock) Close() error { return nil }

func (p *pebbleFS) List(dir string) ([]string, error) {
	names, err := p.fs.List(dir)
	return names, p.afterRead("list", dir, err)
}

func (p *pebbleFS) Stat(name string) (pvfs.FileInfo, error) {
	info, err := p.fs.Stat(name)
	if err := p.afterRead("stat", name, err); err != nil {
		return nil, err
	}
	return pebbleInfo{info}, nil
}

func (p *pebbleFS) PathBase(path string) string    { return filepath.Base(path) }
func (p *pebbleFS) PathJoin(elem ...string) string { return filepath.Join(elem...) }
func (p *pebbleFS) PathDir(path string) string     { return filepath.Dir(path) }
func (p *pebbleFS) Unwrap() pvfs.FS                { return nil }
func (p *pebbleFS) GetDiskUsage(dir string) (pvfs.DiskUsage, error) {
	free := p.fs.FreeBytes(dir)
	if free < 0 {
		free = math.MaxInt64
	}
	return pvfs.DiskUsage{AvailBytes: uint64(free), TotalBytes: uint64(free)}, nil
}

type pebbleInfo struct{ fs.FileInfo }

func (pebbleInfo) DeviceID() pvfs.DeviceID { return pvfs.DeviceID{} }

// pebbleFile adds a position to a vfs.File. Pebble reads and writes in order, from one goroutine.
type pebbleFile struct {
	p     *pebbleFS
	f     vfs.File
	name  string
	write bool // opened for writing
	pos   int64
}

func (f *pebbleFile) Read(b []byte) (int, error) {
	n, err := f.f.ReadAt(b, f.pos)
	f.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, f.p.afterRead("read", f.name, err)
}

func (f *pebbleFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(b, off)
	return n, f.p.afterRead("read", f.name, err)
}

func (f *pebbleFile) Write(b []byte) (int, error) {
	n, err := f.WriteAt(b, f.pos)
	f.pos += int64(n)
	return n, err
}

func (f *pebbleFile) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.p.write("write", f.name, func() (err error) {
		n, err = f.f.WriteAt(b, off)
		return err
	})
	return n, err
}

func (f *pebbleFile) Close() error {
	f.p.mu.Lock()
	_, open := f.p.open[f]
	delete(f.p.open, f)
	f.p.mu.Unlock()
	if !open {
		return nil
	}
	err := f.f.Close()
	if !f.write {
		return nil // no data is lost
	}
	return f.p.afterWrite("close", f.name, err)
}

// Preallocate does nothing: Pebble's files are small.
func (f *pebbleFile) Preallocate(_, _ int64) error { return nil }

func (f *pebbleFile) Stat() (pvfs.FileInfo, error) {
	size, err := f.f.Size()
	if err == nil {
		var info fs.FileInfo
		if info, err = f.p.fs.Stat(f.name); err == nil {
			return sizedInfo{pebbleInfo{info}, size}, nil
		}
	}
	return nil, f.p.afterRead("stat", f.name, err)
}

// sizedInfo has the size of the open file, even if its name now refers to another one.
type sizedInfo struct {
	pebbleInfo
	size int64
}

func (i sizedInfo) Size() int64 { return i.size }

func (f *pebbleFile) Sync() error { return f.p.write("sync", f.name, f.f.Sync) }

func (f *pebbleFile) SyncData() error { return f.Sync() }

// SyncTo only requests write-back to begin, which is left to the kernel.
func (f *pebbleFile) SyncTo(int64) (fullSync bool, err error) { return false, nil }

func (f *pebbleFile) Prefetch(int64, int64) error { return nil }
func (f *pebbleFile) Fd() uintptr                 { return pvfs.InvalidFd }

// pebbleDir is a directory, opened to be synced.
type pebbleDir struct {
	p    *pebbleFS
	name string
}

var errIsDir = errors.New("is a directory")

func (d *pebbleDir) Sync() error {
	if d.p.readOnly {
		return nil
	}
	if err := d.p.write("sync", d.name, func() error { return d.p.fs.SyncDir(d.name) }); err != nil {
		return err
	}
	return d.p.removeMarkers(d.name)
}

func (d *pebbleDir) Stat() (pvfs.FileInfo, error)       { return d.p.Stat(d.name) }
func (d *pebbleDir) SyncData() error                    { return d.Sync() }
func (d *pebbleDir) SyncTo(int64) (bool, error)         { return false, nil }
func (d *pebbleDir) Close() error                       { return nil }
func (d *pebbleDir) Read([]byte) (int, error)           { return 0, errIsDir }
func (d *pebbleDir) ReadAt([]byte, int64) (int, error)  { return 0, errIsDir }
func (d *pebbleDir) Write([]byte) (int, error)          { return 0, errIsDir }
func (d *pebbleDir) WriteAt([]byte, int64) (int, error) { return 0, errIsDir }
func (d *pebbleDir) Preallocate(int64, int64) error     { return nil }
func (d *pebbleDir) Prefetch(int64, int64) error        { return nil }
func (d *pebbleDir) Fd() uintptr                        { return pvfs.InvalidFd }
