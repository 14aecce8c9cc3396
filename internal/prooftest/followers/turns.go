package followers

import (
	"io/fs"
	"sync"

	"github.com/oribi-db/oribi/vfs"
)

// turnFS is a file system that runs each call in a turn.
type turnFS struct {
	vfs.FS
	turn func(call func())
}

func (t *turnFS) Create(name string) (f vfs.File, err error) {
	t.turn(func() { f, err = t.FS.Create(name) })
	return t.file(f, err)
}

func (t *turnFS) Open(name string, write bool) (f vfs.File, err error) {
	t.turn(func() { f, err = t.FS.Open(name, write) })
	return t.file(f, err)
}

func (t *turnFS) file(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return turnFile{f, t}, nil
}

func (t *turnFS) Mkdir(name string) (err error) {
	t.turn(func() { err = t.FS.Mkdir(name) })
	return err
}

func (t *turnFS) Remove(name string) (err error) {
	t.turn(func() { err = t.FS.Remove(name) })
	return err
}

func (t *turnFS) Rename(oldName, newName string) (err error) {
	t.turn(func() { err = t.FS.Rename(oldName, newName) })
	return err
}

func (t *turnFS) List(dir string) (names []string, err error) {
	t.turn(func() { names, err = t.FS.List(dir) })
	return names, err
}

func (t *turnFS) Stat(name string) (info fs.FileInfo, err error) {
	t.turn(func() { info, err = t.FS.Stat(name) })
	return info, err
}

func (t *turnFS) SyncDir(dir string) (err error) {
	t.turn(func() { err = t.FS.SyncDir(dir) })
	return err
}

func (t *turnFS) Lock(name string, mode vfs.LockMode) (l vfs.Lock, err error) {
	t.turn(func() { l, err = t.FS.Lock(name, mode) })
	return l, err
}

// turnFile is an open file of a turnFS.
type turnFile struct {
	vfs.File
	t *turnFS
}

func (f turnFile) ReadAt(b []byte, off int64) (n int, err error) {
	f.t.turn(func() { n, err = f.File.ReadAt(b, off) })
	return n, err
}

func (f turnFile) WriteAt(b []byte, off int64) (n int, err error) {
	f.t.turn(func() { n, err = f.File.WriteAt(b, off) })
	return n, err
}

func (f turnFile) Size() (n int64, err error) {
	f.t.turn(func() { n, err = f.File.Size() })
	return n, err
}

func (f turnFile) Sync() (err error) {
	f.t.turn(func() { err = f.File.Sync() })
	return err
}

func (f turnFile) Truncate(size int64) (err error) {
	f.t.turn(func() { err = f.File.Truncate(size) })
	return err
}

// PunchHole takes one turn for each half.
func (f turnFile) PunchHole(off, n int64) (err error) {
	f.t.turn(func() { err = f.File.PunchHole(off, n/2) })
	if err == nil {
		f.t.turn(func() { err = f.File.PunchHole(off+n/2, n-n/2) })
	}
	return err
}

func (f turnFile) Map(off, n int64) (w vfs.Window, err error) {
	f.t.turn(func() { w, err = vfs.Map(f.File, off, n) })
	if err != nil {
		return nil, err
	}
	return turnWindow{w, f.t}, nil
}

// turnWindow is a window on a file of a turnFS.
type turnWindow struct {
	vfs.Window
	t *turnFS
}

// Copy takes one turn for each half, so that a reader finds an incomplete record.
func (w turnWindow) Copy(b []byte, off int64) (err error) {
	half := len(b) / 2
	w.t.turn(func() { err = w.Window.Copy(b[:half], off) })
	if err == nil {
		w.t.turn(func() { err = w.Window.Copy(b[half:], off+int64(half)) })
	}
	return err
}

// Turns lets another goroutine, and those that it starts, do a number of file operations at a time.
type Turns struct {
	mu      sync.Mutex
	changed *sync.Cond
	left    int  // operations that may begin
	free    bool // any number may
	waiting int  // goroutines before an operation
	running int  // operations
	ended   bool // the goroutine has
	taken   int  // operations so far
}

// NewTurns returns turns of which none may be taken.
func NewTurns() *Turns {
	t := new(Turns)
	t.changed = sync.NewCond(&t.mu)
	return t
}

// Turn does a call when it may.
func (t *Turns) Turn(call func()) {
	t.mu.Lock()
	t.waiting++
	t.changed.Broadcast()
	for t.left == 0 && !t.free {
		t.changed.Wait()
	}
	t.waiting--
	t.left = max(0, t.left-1)
	t.running++
	t.taken++
	t.mu.Unlock()
	call()
	t.mu.Lock()
	t.running--
	t.changed.Broadcast()
	t.mu.Unlock()
}

// Advance lets n operations run, and returns when they have ended and the next one waits, or when
// the goroutine has ended.
func (t *Turns) Advance(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left += n
	t.changed.Broadcast()
	for !t.ended && (t.left > 0 || t.running > 0 || t.waiting == 0) {
		t.changed.Wait()
	}
	t.left = 0
}

// End says that the goroutine has ended.
func (t *Turns) End() { t.set(&t.ended) }

// Release lets the goroutine and all others run freely.
func (t *Turns) Release() { t.set(&t.free) }

// Stop undoes Release.
func (t *Turns) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = false
}

func (t *Turns) set(flag *bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*flag = true
	t.changed.Broadcast()
}

// Over reports whether the goroutine has ended.
func (t *Turns) Over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// Taken returns the number of operations so far.
func (t *Turns) Taken() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken
}

// NewFS returns a file system that runs each call in a turn.
func NewFS(fsys vfs.FS, turn func(call func())) vfs.FS { return &turnFS{fsys, turn} }
