package storeinfo

import (
	"io"

	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// ImageInfo describes an image.
type ImageInfo struct {
	UUID      string         // of the store, 32 hex digits
	Timestamp mvcc.Timestamp // the image has all write batches up to it, and no later one

	Blocks     int   // number of blocks
	BlockBytes int64 // of all blocks together

	BlockSize int64   // blocks begin at multiples of it in their files, bytes
	Epoch     uint64  // number of the newest metadata commit
	Mark      uint64  // all block IDs are below it
	LogStart  lsn.LSN // of the first record
	LogEnd    lsn.LSN // of the last record, LogStart-1 if there is none // inclusive
}

// ImageBlock describes a block of an image. A block never changes: within one store, ID and Sum
// identify its bytes.
type ImageBlock struct {
	ID     uint64 // never used again in the store
	Length int64  // bytes
	Sum    uint64 // xxh3-64 of all its bytes
}

// ImageSource is what WriteImage copies: an Image, or one that was stored elsewhere. WriteImage
// calls Info, Rows, Records and Blocks once each, in this order. The methods return the errors of
// fn, after which they do not call it again.
type ImageSource interface {
	Info() ImageInfo
	// Rows calls fn with each row of the metadata, by key. fn may keep the slices.
	Rows(fn func(key, value []byte) error) error
	// Records calls fn with each record of the log. The slice is valid during the call.
	Records(fn func(record []byte) error) error
	// Blocks calls fn with each block, by ID. open, valid during the call, returns its bytes.
	Blocks(fn func(b ImageBlock, open func() (io.ReadCloser, error)) error) error
}

// CopyResult is a store that Checkpoint, WriteImage, or package salvage has made.
type CopyResult struct {
	UUID      string         // its own, 32 hex digits
	Timestamp mvcc.Timestamp // it has all write batches up to it, and no later one
	Bytes     int64          // length of its files
}
