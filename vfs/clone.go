package vfs

import "github.com/oribi-db/oribi/internal/fault"

// Cloner is a File that can share the bytes of another one, which takes neither time nor space
// until one of them is changed. A File need not be one.
type Cloner interface {
	File
	// CloneRange gives [off, off+n) the content of src from srcOff on, as WriteAt would. All three
	// are multiples of the file system's block size, and all of the range is in src. Where the
	// system cannot, it returns an error that wraps ErrUnsupported and changes nothing.
	CloneRange(src File, srcOff, off, n int64) error
}

// CloneRange is dst.CloneRange if dst is a Cloner, else ErrUnsupported.
func CloneRange(dst, src File, srcOff, off, n int64) error {
	if c, ok := dst.(Cloner); ok {
		return c.CloneRange(src, srcOff, off, n)
	}
	return fault.Unsupportedf("clone a range of this file system")
}
