package oribi

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/mvcc"
)

// Image is the content of a store as of one moment, while the store goes on: what Store.Checkpoint
// copies and what package backup stores. It is safe for concurrent use.
//
// An image is metadata, the blocks that it names, and the log from where the metadata needs it. Its
// moment is between two write batches. On a store with writers it is taken in these steps:
//
//  1. No ingest is between its record in the log and its metadata commit: they are waited for, and
//     others wait.
//  2. Under the lock of metadata commits: the rows of the metadata, and the list of blocks, which
//     are pinned. A flush or compaction whose commit follows is not part of the image, whatever it
//     has written and caught up; the log still has what it would have contained.
//  3. Under the same lock, in the critical section of commits: the timestamp of the newest batch, and
//     its LSN. Since the log has it, later batches are above it, also after a kill. A table that a
//     record up to there names, and an epoch that it requires, are in the metadata.
//  4. With no lock: all batches up to that LSN are synced and published. Those in flight are part
//     of the image; after a failure of one of them, which poisons the store, there is no image.
//
// So the image is what a crash right after step 3 would leave if all of the log had reached the
// disk, and opening a copy of it is recovery: exactly the batches up to the LSN. As long as an
// image is open, dropped blocks keep their space; until Records has returned, the log releases no
// segments.
type Image struct {
	store  *Store
	info   ImageInfo
	blocks *blockmanager.Snapshot
	unpin  func() // of the log
	leave  func() // of a follower: it need not keep its pin for the image
	bytes  int64  // reserved in the budget
}

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
	im, err := s.image(ctx)
	if err != nil {
		return nil, callErr("image", err)
	}
	return im, nil
}

func (s *Store) image(ctx context.Context) (_ *Image, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.core.Poisoned(); err != nil {
		return nil, err
	}
	im := &Image{store: s, unpin: func() {}, leave: func() {},
		info: ImageInfo{UUID: hex.EncodeToString(s.core.Instance.ID[:]), BlockSize: s.core.Instance.BlockSize}}
	defer func() {
		if err != nil {
			im.Close()
		}
	}()
	if err := im.capture(); err != nil {
		return nil, err
	}
	if err := im.passFloors(); err != nil {
		return nil, err
	}
	for i := range im.blocks.Len() {
		im.info.BlockBytes += im.blocks.Block(i).Length
	}
	im.info.Blocks = im.blocks.Len()
	im.bytes = int64(im.info.Blocks) * 8
	s.core.Budget.Reserve(budget.Metadata, im.bytes)
	im.info.Epoch, im.info.Mark = im.blocks.Epoch, im.blocks.Mark
	im.info.LogStart = max(im.blocks.LogStart, 1)
	if s.opts.ReadOnly {
		return im, nil
	}
	if err := s.core.Writer.Log.Sync(im.info.LogEnd); err != nil {
		s.core.Writer.Poison(err)
		return nil, err
	}
	return im, s.core.WaitLSN(ctx, im.info.LogEnd)
}

// capture does the steps 1 to 3 of Image.
func (im *Image) capture() (err error) {
	s := im.store
	if s.opts.ReadOnly {
		leave := im.leave
		im.info.Timestamp, im.info.LogEnd, leave, err = s.core.Follower.Capture(func() (err error) {
			im.blocks, err = s.core.Blocks.Snapshot()
			return err
		})
		if err == nil {
			im.leave = leave
		}
		return err
	}
	im.info.Timestamp, im.info.LogEnd, err = s.core.Writer.Capture(func() (err error) {
		// Segments are released below the log_start of the last commit at most, which is the log_start
		// of the snapshot.
		im.unpin = s.core.Writer.Log.Retain()
		im.blocks, err = s.core.Blocks.Snapshot()
		return err
	})
	return err
}

// passFloors raises the timestamp to the history floors of all tables, which may be above the newest
// batch: the tables can be read as of it. Later batches are above the floors.
func (im *Image) passFloors() error {
	return im.blocks.Rows(func(key, value []byte) error {
		if kind, _, _, err := meta.ParseKey(key); err != nil || kind != meta.TableRow {
			return err
		}
		row, err := meta.DecodeTable(value)
		if err == nil {
			im.info.Timestamp = max(im.info.Timestamp, row.HistoryFloor)
		}
		return err
	})
}

// Info describes the image.
func (im *Image) Info() ImageInfo { return im.info }

// Rows calls fn with each row of the metadata, by key. fn may keep the slices. Errors: ErrClosed.
func (im *Image) Rows(fn func(key, value []byte) error) error {
	if err := im.store.enter(); err != nil {
		return err
	}
	defer im.store.leave()
	return im.blocks.Rows(func(key, value []byte) error {
		if string(key) != string(meta.StoreKey()) {
			return fn(key, value)
		}
		row, err := meta.DecodeStore(value)
		if err != nil {
			return err
		}
		// A copy opens only with the whole log, and answers reads as of the image's timestamp.
		row.LogEnd = im.info.LogEnd
		row.ClockHigh = max(row.ClockHigh, im.info.Timestamp)
		return fn(key, row.Encode())
	})
}

// Blocks calls fn with each block, by ID. open, valid during the call, returns its bytes. If they
// are not the block, open or a read, that of the end at the latest, returns ErrCorrupt. Errors:
// ErrClosed.
func (im *Image) Blocks(fn func(b ImageBlock, open func() (io.ReadCloser, error)) error) error {
	for i := range im.blocks.Len() {
		if err := im.block(i, fn); err != nil {
			return err
		}
	}
	return nil
}

func (im *Image) block(i int, fn func(b ImageBlock, open func() (io.ReadCloser, error)) error) error {
	if err := im.store.enter(); err != nil {
		return err
	}
	defer im.store.leave()
	b := im.blocks.Block(i)
	return fn(ImageBlock{uint64(b.ID), b.Length, b.Sum},
		func() (io.ReadCloser, error) { return im.blocks.ReadBlock(i) })
}

// Records calls fn with each record of the log. The slice is valid during the call. Without an
// error, the log is not pinned any more, and Records must not be called again. Errors: ErrCorrupt;
// ErrClosed.
func (im *Image) Records(fn func(record []byte) error) error {
	if err := im.store.enter(); err != nil {
		return err
	}
	defer im.store.leave()
	err := wal.Range(im.store.core.LogOptions(), im.info.LogStart, im.info.LogEnd,
		func(_ lsn.LSN, payload []byte) error { return fn(payload) })
	if err == nil {
		im.unpin()
	}
	return im.store.core.OutOfDate(err)
}

// Close unpins blocks and log. It may be called twice, but not concurrently with other methods.
func (im *Image) Close() error {
	im.unpin()
	im.leave()
	im.store.core.Budget.Release(budget.Metadata, im.bytes)
	im.bytes = 0
	if im.blocks == nil {
		return nil
	}
	if err := im.blocks.Close(); err != nil {
		return fmt.Errorf("oribi: image: close: %w", err)
	}
	return nil
}
