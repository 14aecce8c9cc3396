package store

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
	"github.com/oribi-db/oribi/storeinfo"
)

// Image is the content of a store as of one moment, while the store goes on. It is safe for
// concurrent use.
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
	info   storeinfo.ImageInfo
	blocks *blockmanager.Snapshot
	unpin  func() // of the log
	leave  func() // of a follower: it need not keep its pin for the image
	bytes  int64  // reserved in the budget
}

// Image returns the content of the store as of now. Errors: ctx.Err(); ErrPoisoned.
func (s *Store) Image(ctx context.Context) (_ *Image, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.Poisoned(); err != nil {
		return nil, err
	}
	im := &Image{store: s, unpin: func() {}, leave: func() {},
		info: storeinfo.ImageInfo{UUID: hex.EncodeToString(s.Instance.ID[:]), BlockSize: s.Instance.BlockSize}}
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
	s.Budget.Reserve(budget.Metadata, im.bytes)
	im.info.Epoch, im.info.Mark = im.blocks.Epoch, im.blocks.Mark
	im.info.LogStart = max(im.blocks.LogStart, 1)
	if s.Writer == nil {
		return im, nil
	}
	if err := s.Writer.Log.Sync(im.info.LogEnd); err != nil {
		s.Writer.Poison(err)
		return nil, err
	}
	return im, s.WaitLSN(ctx, im.info.LogEnd)
}

// capture does the steps 1 to 3 of Image.
func (im *Image) capture() (err error) {
	s := im.store
	blocks := func() (err error) {
		im.blocks, err = s.Blocks.Snapshot()
		return err
	}
	switch {
	case s.Writer != nil:
		im.info.Timestamp, im.info.LogEnd, err = s.Writer.Capture(func() error {
			// Segments are released below the log_start of the last commit at most, which is the
			// log_start of the snapshot.
			im.unpin = s.Writer.Log.Retain()
			return blocks()
		})
	case s.Follower != nil:
		leave := im.leave
		if im.info.Timestamp, im.info.LogEnd, leave, err = s.Follower.Capture(blocks); err == nil {
			im.leave = leave
		}
	default:
		im.info.Timestamp, im.info.LogEnd, err = s.Visible(), s.LastLSN(), blocks()
	}
	return err
}

// passFloors raises the timestamp to the history floors of all tables, which may be above the
// newest batch: the tables can be read as of it. Later batches are above the floors.
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
func (im *Image) Info() storeinfo.ImageInfo { return im.info }

// Rows calls fn with each row of the metadata, by key. fn may keep the slices. Errors: ErrClosed.
func (im *Image) Rows(fn func(key, value []byte) error) error {
	if err := im.store.Enter(); err != nil {
		return err
	}
	defer im.store.Leave()
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
func (im *Image) Blocks(fn func(b storeinfo.ImageBlock, open func() (io.ReadCloser, error)) error) error {
	for i := range im.blocks.Len() {
		if err := im.block(i, fn); err != nil {
			return err
		}
	}
	return nil
}

func (im *Image) block(i int, fn func(b storeinfo.ImageBlock, open func() (io.ReadCloser, error)) error) error {
	if err := im.store.Enter(); err != nil {
		return err
	}
	defer im.store.Leave()
	b := im.blocks.Block(i)
	return fn(storeinfo.ImageBlock{ID: uint64(b.ID), Length: b.Length, Sum: b.Sum},
		func() (io.ReadCloser, error) { return im.blocks.ReadBlock(i) })
}

// Records calls fn with each record of the log. The slice is valid during the call. Without an
// error, the log is not pinned any more, and Records must not be called again. Errors: ErrCorrupt;
// ErrClosed.
func (im *Image) Records(fn func(record []byte) error) error {
	if err := im.store.Enter(); err != nil {
		return err
	}
	defer im.store.Leave()
	err := wal.Range(im.store.LogOptions(), im.info.LogStart, im.info.LogEnd,
		func(_ lsn.LSN, payload []byte) error { return fn(payload) })
	if err == nil {
		im.unpin()
	}
	return im.store.OutOfDate(err)
}

// Close unpins blocks and log. It may be called twice, but not concurrently with other methods.
func (im *Image) Close() error {
	im.unpin()
	im.leave()
	im.store.Budget.Release(budget.Metadata, im.bytes)
	im.bytes = 0
	if im.blocks == nil {
		return nil
	}
	if err := im.blocks.Close(); err != nil {
		return fmt.Errorf("image: close: %w", err)
	}
	return nil
}
