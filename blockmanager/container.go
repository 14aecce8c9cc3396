package blockmanager

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/vfs"
)

// How far ahead of the writer space is reserved: doubling from the first value to the last.
const (
	firstWindow = 1 << 20
	lastWindow  = 32 << 20
)

// container is one file of blocks.
//
// At most one Creation writes to it at a time, from its first byte until that Creation is committed
// or aborted. So all bytes above row.next belong to one Creation: an abort only has to forget them,
// and no commit can move a container's end past unfinished blocks of another Creation.
type container struct {
	id  containerID
	row containerRow // as of the last commit; guarded by Manager.mu

	// Use of the container, guarded by Manager.mu. A container is dead once live has reached 0. Its
	// file is removed when refs is 0 too, and when no state to which the metadata may return, after
	// a crash that loses a commit, has blocks in it: died must be a confirmed epoch.
	live     int       // committed blocks in it
	died     uint64    // epoch of the commit that made it dead, or of the open
	since    time.Time // of that commit, or of the open
	acquired bool      // by a Creation
	unlinked bool      // the file is gone: the next commit removes the row
	damaged  bool      // a block in it could not be copied: it is not rewritten

	refs atomic.Int64 // open sources
	file *sharedFile  // for reading; nil for a dead one from before the open

	// Owned by the Creation that acquired it, without a lock.
	end     int64 // where the next block begins
	unnamed bool  // the file is new: the directory was not synced since

	// ioMu serializes all file operations except ReadAt and WriteAt: syncing, reserving, punching.
	ioMu     sync.Mutex
	wfile    vfs.File // for writing; nil until needed; may be file.f
	reserved int64    // space is reserved up to here
	window   int64    // how much to reserve next
}

func (c *container) name() string { return c.id.String() + dataSuffix }

const dataSuffix = ".data"

// sharedFile is an open file that the last user closes.
type sharedFile struct {
	f    vfs.File
	refs atomic.Int64
}

func newSharedFile(f vfs.File) *sharedFile {
	s := &sharedFile{f: f}
	s.refs.Store(1)
	return s
}

func (s *sharedFile) release() error {
	if s.refs.Add(-1) == 0 {
		return s.f.Close()
	}
	return nil
}

// openContainer opens the file of a container with a row for reading, and checks its header page
// and that it reaches as far as its last live block.
func openContainer(o *Options, c *container, last int64) error {
	f, err := o.FS.Open(o.dataPath(c.name()), false)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Corruptf("container %s: missing", c.id)
	} else if err != nil {
		return fmt.Errorf("container %s: %w", c.id, err)
	}
	if err := checkContainer(o, c.id, f, last); err != nil {
		f.Close()
		return err
	}
	c.file = newSharedFile(f)
	return nil
}

func checkContainer(o *Options, id containerID, f vfs.File, last int64) error {
	page := make([]byte, headerLen)
	if n, err := f.ReadAt(page, 0); n < headerLen {
		return fmt.Errorf("container %s: header page: %w", id, noEOF(err))
	}
	if err := checkHeader(page, o.Instance, id); err != nil {
		return fmt.Errorf("container %s: %w", id, err)
	}
	size, err := f.Size()
	if err != nil {
		return fmt.Errorf("container %s: %w", id, err)
	}
	if size < last {
		return fault.Corruptf("container %s: %d bytes long, its blocks end at %d", id, size, last)
	}
	return nil
}

// createContainer creates a new container: file and header page, which become durable when a
// Creation that writes to it is synced. Errors: ErrNoSpace, after which no file is left.
func createContainer(o *Options, blockSize int64) (*container, error) {
	c := &container{window: firstWindow, unnamed: true}
	rand.Read(c.id[:])
	c.end = alignUp(headerLen, blockSize)
	c.row = containerRow{state: containerOpen, next: c.end}
	path := o.dataPath(c.name())
	f, err := o.FS.Create(path)
	if err != nil {
		return nil, fmt.Errorf("container %s: %w", c.id, err)
	}
	if _, err := f.WriteAt(encodeHeader(o.Instance, c.id), 0); err != nil {
		f.Close()
		o.FS.Remove(path) // if it stays, Writable removes it
		return nil, fmt.Errorf("container %s: header page: %w", c.id, err)
	}
	c.wfile, c.file, c.reserved = f, newSharedFile(f), c.end
	return c, nil
}

// writer returns the file, open for writing. The caller holds ioMu.
func (c *container) writer(o *Options) (vfs.File, error) {
	if c.wfile == nil {
		f, err := o.FS.Open(o.dataPath(c.name()), true)
		if err != nil {
			return nil, fmt.Errorf("container %s: %w", c.id, err)
		}
		c.wfile = f
	}
	return c.wfile, nil
}

// write writes p at off, and reserves space ahead.
// Errors: ErrNoSpace; any other one poisons.
func (c *container) write(o *Options, p []byte, off int64) error {
	f, err := c.reserve(o, off+int64(len(p)))
	if err == nil {
		_, err = f.WriteAt(p, off)
	}
	if err != nil {
		return fmt.Errorf("container %s: write %d bytes at %d: %w", c.id, len(p), off, err)
	}
	return nil
}

// KeepFree is how many bytes of the disk block writes leave free, so that metadata commits, which
// free space, still succeed when blocks find no space.
const KeepFree = 4 << 20

// reserve reserves space up to end. On a nearly full disk it reserves no more than it needs, and
// nothing of the last KeepFree bytes.
func (c *container) reserve(o *Options, end int64) (vfs.File, error) {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	f, err := c.writer(o)
	if err != nil || end <= c.reserved {
		return f, err
	}
	n := max(c.window, end-c.reserved)
	if free := o.FS.FreeBytes(o.dataDir()); free >= 0 {
		if free < KeepFree+(end-c.reserved) {
			return nil, fmt.Errorf("%d bytes are free on the disk, %d are kept for metadata: %w", free,
				KeepFree, fault.ErrNoSpace)
		}
		if free < n+4*lastWindow {
			n = end - c.reserved
		}
	}
	err = f.Preallocate(c.reserved, n)
	if errors.Is(err, fault.ErrNoSpace) && n > end-c.reserved {
		n = end - c.reserved
		err = f.Preallocate(c.reserved, n)
	}
	if err != nil {
		return nil, err
	}
	c.reserved += n
	c.window = min(2*c.window, lastWindow)
	return f, nil
}

// sync makes what was written durable.
func (c *container) sync(o *Options) error {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	f, err := c.writer(o)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("container %s: sync: %w", c.id, err)
	}
	return nil
}

// punch returns the space of [off, off+n) to the file system.
func (c *container) punch(o *Options, off, n int64) error {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	f, err := c.writer(o)
	if err == nil {
		err = f.PunchHole(off, n)
	}
	if err != nil {
		return fmt.Errorf("container %s: punch %d bytes at %d: %w", c.id, n, off, err)
	}
	return nil
}

// cut removes all bytes above size, and the space reserved there.
func (c *container) cut(o *Options, size int64) error {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	f, err := c.writer(o)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("container %s: cut to %d: %w", c.id, size, err)
	}
	c.reserved = size
	return nil
}

// reservedAbove returns how many bytes this session has reserved or written above size.
func (c *container) reservedAbove(size int64) int64 {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	if c.wfile == nil {
		return 0
	}
	return max(0, c.reserved-size)
}

// closeFiles closes the manager's files; sources keep those they use.
func (c *container) closeFiles() error {
	c.ioMu.Lock()
	defer c.ioMu.Unlock()
	var errs []error
	if c.wfile != nil && (c.file == nil || c.wfile != c.file.f) {
		errs = append(errs, c.wfile.Close())
	}
	if c.file != nil {
		errs = append(errs, c.file.release())
	}
	c.wfile, c.file = nil, nil
	return errors.Join(errs...)
}
