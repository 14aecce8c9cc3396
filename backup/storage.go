package backup

import (
	"context"
	"io"
)

// Storage is where a repository keeps its objects: byte strings with names. Names are lower-case
// letters, digits and slashes. Objects never change. It must be safe for concurrent use.
type Storage interface {
	// Put stores what r returns as a new object. When it returns nil the object is complete and
	// durable; after an error, which may be an error of r, there is no object. If an object has
	// this name already, the error is fs.ErrExist, and r may not have been read.
	Put(ctx context.Context, name string, r io.Reader) error
	// Get returns the content of an object. If the object does not exist, the error is
	// fs.ErrNotExist.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// List calls fn with the name and the length of each object whose name begins with prefix,
	// which is empty or ends in a slash, in any order. It stops at the first error of fn and
	// returns it.
	List(ctx context.Context, prefix string, fn func(name string, bytes int64) error) error
	// Delete removes an object, durably. A missing one is no error.
	Delete(ctx context.Context, name string) error
	// Lock locks the storage until the result is closed, or the process ends: for one writer, or
	// shared by readers. It does not wait: ErrLocked. A writer's Lock may create the storage and
	// remove what unfinished Puts left.
	Lock(ctx context.Context, exclusive bool) (io.Closer, error)
}
