package oribi

import (
	"context"

	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/storeinfo"
)

// CopyResult is a store that Checkpoint, WriteImage, or package salvage has made.
type CopyResult = storeinfo.CopyResult

// Progress is called repeatedly while Checkpoint, WriteImage, Verify, or salvage.Run runs, with the
// number of bytes that are done and the number of all. A nil Progress has no effect.
type Progress func(done, total int64)

// advance calls each of progress.
func advance(progress []Progress, done, total int64) {
	for _, p := range progress {
		if p != nil {
			p(done, total)
		}
	}
}

// Checkpoint makes a copy of the store, as of now, in dir, which must not exist, with a parent that
// does, or be an empty directory, such as a mounted volume. It must not be in the directory of a
// store. Writers and readers of the store continue. See Image for what is part of the copy.
//
// The copy is a complete, closed store with a UUID of its own: it can be opened, written and moved
// independently, and no file of one is taken for a file of the other. Its tables keep their IDs,
// and its blocks theirs. It answers reads at every timestamp that the store answers, those before
// the checkpoint too; only what a Snapshot pins beyond the retention of a table becomes too old.
// The copy has the live blocks only, and the part of the log that it needs. Blocks are verified
// while they are copied. Where the file system can share bytes between files, as btrfs and xfs can,
// it shares those of larger blocks instead: these are not read, and Verify of the copy reports
// what was damaged in the store.
//
// INSTANCE is written last. So after a kill, dir is not a store, and Open refuses it; after an
// error there is no dir, or it is empty again.
//
// Errors: fs.ErrExist if dir is anything else; ErrCorrupt; ErrNoSpace; ErrPoisoned; ErrClosed;
// ctx.Err(); those of the file system.
func (s *Store) Checkpoint(ctx context.Context, dir string, progress ...Progress) (CopyResult, error) {
	if err := s.enter(); err != nil {
		return CopyResult{}, err
	}
	defer s.leave()
	im, err := s.core.Image(ctx)
	if err != nil {
		return CopyResult{}, callErr("checkpoint", err)
	}
	defer im.Close()
	c, err := store.WriteImage(ctx, dir, im, imageOptions(&s.opts, progress))
	return c, callErr("checkpoint", err)
}

// WriteImage makes a store from an image, in dir, as Checkpoint does, for images that were stored
// elsewhere. Of o it uses FS, Logger and
// LogSegmentBytes; nil means the defaults.
//
// Each block is verified against its length and checksum; metadata and log are copied from src.
// Errors: as for Checkpoint; ErrUnsupported; the errors of src.
func WriteImage(
	ctx context.Context, dir string, src ImageSource, o *Options, progress ...Progress,
) (CopyResult, error) {
	if err := o.Validate(); err != nil {
		return CopyResult{}, err
	}
	filled := o.filled()
	c, err := store.WriteImage(ctx, dir, src, imageOptions(&filled, progress))
	return c, callErr("write image", err)
}

// imageOptions returns the options of store.WriteImage.
func imageOptions(o *Options, progress []Progress) store.ImageOptions {
	return store.ImageOptions{FS: o.FS, Logger: o.Logger, LogSegmentBytes: o.LogSegmentBytes,
		Progress: func(done, total int64) { advance(progress, done, total) }}
}
