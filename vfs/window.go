package vfs

import (
	"io"

	"github.com/oribi-db/oribi/internal/fault"
)

// Mapper is a File into which bytes can be copied without a call of the system. A File need not be
// one.
type Mapper interface {
	File
	// Map returns a window on [off, off+n), which must not be empty and must be in the file, which
	// must be open for writing. The range should have been written before: a copy into a hole fails
	// on a full disk. Errors: ErrUnsupported where the system cannot.
	Map(off, n int64) (Window, error)
}

// Window is a range of a file. A copy into it has the effect of File.WriteAt: ReadAt returns the
// bytes, they survive a kill of the process, and File.Sync makes them durable. Not safe for
// concurrent use. The file may be synced, read and written meanwhile.
//
// Before a Sync, a power cut may leave any of the pages that were written, each as it was at any
// time since the last Sync: the system writes them in any order.
//
// Unlike WriteAt, a copy that waits for the system may hold up the whole process, not only its
// caller: the garbage collector cannot stop a goroutine inside a page fault. Copies wait, for
// instance, while the file system is frozen for a snapshot.
type Window interface {
	// Copy copies b to offset off of the file; all of it must be in the window. An error means that
	// the system could not provide the memory: a failing disk, a full one if the file system copies
	// on write, or a file that has become shorter. The error does not say which. File.Size does, or
	// File.WriteAt of the same range. Part of b may have been copied.
	Copy(b []byte, off int64) error
	// Close releases the memory. The file must not be truncated to less than the end of the window
	// before. Copy must not be called any more.
	io.Closer
}

// Map is f.Map if f is a Mapper, else ErrUnsupported.
func Map(f File, off, n int64) (Window, error) {
	if m, ok := f.(Mapper); ok {
		return m.Map(off, n)
	}
	return nil, fault.Unsupportedf("map a file of this file system")
}
