package oribi

import (
	"context"
	"io"

	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/storeinfo"
)

// Image is the content of a store as of one moment, while the store goes on: what Store.Checkpoint
// copies and what package backup stores. It is safe for concurrent use.
//
// An image is metadata, the blocks that it names, and the log from where the metadata needs it. Its
// moment is between two write batches. As long as an image is open, dropped blocks keep their
// space; until Records has returned, the log releases no segments.
type Image struct{ im *store.Image }

// ImageInfo describes an image.
type ImageInfo = storeinfo.ImageInfo

// ImageBlock describes a block of an image. A block never changes: within one store, ID and Sum
// identify its bytes.
type ImageBlock = storeinfo.ImageBlock

// ImageSource is what WriteImage copies: an Image, or one that was stored elsewhere.
type ImageSource = storeinfo.ImageSource

// Image returns the content of the store as of now. Write batches, flushes and compactions
// continue; Image waits for write batches and ingests that are in flight. The caller closes the
// image; when the store is closed before, its methods return ErrClosed. On a read-only store it is
// what Open, or a follower's Refresh, found.
//
// Errors: ctx.Err(); ErrPoisoned; ErrClosed.
func (s *Store) Image(ctx context.Context) (*Image, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	im, err := s.core.Image(ctx)
	if err != nil {
		return nil, callErr("image", err)
	}
	return &Image{im}, nil
}

// Info describes the image.
func (im *Image) Info() ImageInfo { return im.im.Info() }

// Rows calls fn with each row of the metadata, by key. fn may keep the slices. Errors: ErrClosed.
func (im *Image) Rows(fn func(key, value []byte) error) error { return im.im.Rows(fn) }

// Blocks calls fn with each block, by ID. open, valid during the call, returns its bytes. If they
// are not the block, open or a read, that of the end at the latest, returns ErrCorrupt. Errors:
// ErrClosed.
func (im *Image) Blocks(fn func(b ImageBlock, open func() (io.ReadCloser, error)) error) error {
	return im.im.Blocks(fn)
}

// Records calls fn with each record of the log. The slice is valid during the call. Without an
// error, the log is not pinned any more, and Records must not be called again. Errors: ErrCorrupt;
// ErrClosed.
func (im *Image) Records(fn func(record []byte) error) error { return im.im.Records(fn) }

// Close unpins blocks and log. It may be called twice, but not concurrently with other methods.
func (im *Image) Close() error { return callErr("", im.im.Close()) }
