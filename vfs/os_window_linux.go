package vfs

import (
	"errors"
	"io/fs"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/oribi-db/oribi/internal/fault"
)

// Map implements Mapper by mmap.
//
// A shared mapping is the page cache itself. The first store into a clean page is a fault, in which
// the file system marks the page dirty, as a write does. When the page is written to the disk, it
// becomes clean and protected again. So fdatasync writes all bytes that were copied before it, and
// msync would add nothing.
func (f osFile) Map(off, n int64) (Window, error) {
	if off < 0 || n <= 0 {
		return nil, pathError("map", f.Name(), fs.ErrInvalid)
	}
	if size, err := f.Size(); err != nil {
		return nil, err
	} else if size < off+n {
		return nil, pathError("map", f.Name(), fs.ErrInvalid)
	}
	start := off &^ int64(os.Getpagesize()-1)
	var mem []byte
	err := control(f.File, "mmap", func(fd uintptr) (err error) {
		mem, err = unix.Mmap(int(fd), start, int(off+n-start), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil { // the file system has no mappings, or the process has too many
		return nil, fault.Unsupportedf("map: %v", err)
	}
	return &osWindow{mem: mem, start: start, off: off, name: f.Name()}, nil
}

// osWindow is mapped memory.
type osWindow struct {
	mem        []byte // from start to the end of the window
	start, off int64  // offsets in the file: of mem, of the window
	name       string
}

func (w *osWindow) Copy(b []byte, off int64) (err error) {
	at := off - w.start
	if off < w.off || at > int64(len(w.mem)) || int64(len(b)) > int64(len(w.mem))-at {
		return pathError("copy", w.name, fs.ErrInvalid)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = w.failed(p)
		}
	}()
	copy(w.mem[at:], b)
	return nil
}

// errNoPage is the cause of a failed copy.
var errNoPage = errors.New("the system cannot provide the page of the file: a failing or full disk, or " +
	"the file has become shorter")

// failed returns the error for a panic of a copy. The system reports a page that it cannot provide
// by the signal SIGBUS, which is a panic with an address here.
func (w *osWindow) failed(p any) error {
	if _, ok := p.(interface{ Addr() uintptr }); ok {
		return pathError("copy", w.name, errNoPage)
	}
	panic(p)
}

func (w *osWindow) Close() error {
	mem := w.mem
	if w.mem = nil; mem == nil {
		return nil
	}
	return pathError("unmap", w.name, unix.Munmap(mem))
}
