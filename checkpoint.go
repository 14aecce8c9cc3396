package oribi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

// CopyResult is a store that Checkpoint, WriteImage or Salvage has made.
type CopyResult struct {
	UUID      string         // its own, 32 hex digits
	Timestamp mvcc.Timestamp // it has all write batches up to it, and no later one
	Bytes     int64          // length of its files
}

// Progress is called repeatedly while Checkpoint, WriteImage, or Verify runs, with the number of
// bytes that are done and the number of all. A nil Progress has no effect.
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
	im, err := s.image(ctx)
	if err != nil {
		return CopyResult{}, callErr("checkpoint", err)
	}
	defer im.Close()
	c, err := writeImage(ctx, dir, im, &s.opts, progress)
	return c, callErr("checkpoint", err)
}

// WriteImage makes a store from an image, in dir, as Checkpoint does, for images that were stored
// elsewhere. Of o it uses FS, Logger and
// LogSegmentBytes; nil means the defaults.
//
// Each block is verified against its length and checksum; metadata and log are copied from src.
// Errors: as for Checkpoint; ErrUnsupported; the errors of src.
func WriteImage(ctx context.Context, dir string, src ImageSource, o *Options, progress ...Progress) (CopyResult, error) {
	if err := o.Validate(); err != nil {
		return CopyResult{}, err
	}
	filled := o.filled()
	c, err := writeImage(ctx, dir, src, &filled, progress)
	return c, callErr("write image", err)
}

func writeImage(
	ctx context.Context, dir string, src ImageSource, o *Options, progress []Progress,
) (_ CopyResult, err error) {
	fsys := o.FS
	if err := mayCopyTo(fsys, dir); err != nil {
		return CopyResult{}, err
	}
	to := storedir.At(fsys, dir, o.Logger)
	made := true
	if err := fsys.Mkdir(to.Path); err != nil {
		if made = false; !errors.Is(err, fs.ErrExist) {
			return CopyResult{}, err
		}
	}
	w := imageWriter{ctx: ctx, dir: to, src: src, info: src.Info(), o: o, progress: progress}
	// With its lock held, no other process takes the directory for an empty one.
	lock, err := fsys.Lock(to.File(storedir.LockName), vfs.LockCreate)
	if err == nil {
		// Another process may have put something there before this one locked it.
		if err := mustBeEmpty(to); err != nil && !made {
			return CopyResult{}, errors.Join(err, lock.Close())
		}
		err = w.write()
		err = errors.Join(err, lock.Close())
	} else if !made {
		return CopyResult{}, err
	}
	if errors.Is(err, fault.ErrPoisoned) {
		err = &copyError{err}
	}
	if err == nil {
		w.copied.Bytes, err = treeBytes(fsys, to.Path)
	}
	if err != nil {
		if rerr := w.remove(made); rerr != nil {
			err = fmt.Errorf("%w; removing %s: %w", err, to.Path, rerr)
		}
		return CopyResult{}, err
	}
	return w.copied, nil
}

// mayCopyTo returns an error unless dir is missing or an empty directory, and not in the directory
// of a store.
func mayCopyTo(fsys vfs.FS, dir string, stores ...string) error {
	if err := instore.Check(fsys, dir, stores...); err != nil {
		return err
	}
	to := storedir.At(fsys, dir, nil)
	dir = to.Path
	info, err := fsys.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := fsys.Stat(filepath.Dir(dir)); errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOENT}
		}
		return nil
	} else if err != nil {
		return err
	}
	if instore.Dangles(fsys, dir) {
		return fault.Reworded(fs.ErrExist, "%s is a symbolic link that leads nowhere", dir)
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.EEXIST}
	}
	return mustBeEmpty(to)
}

// mustBeEmpty returns an error unless a directory has at most the names that an empty one may have.
func mustBeEmpty(dir storedir.Dir) error {
	state, err := dir.State()
	if err == nil && state != storedir.Empty {
		err = fault.Reworded(fs.ErrExist, "%s exists and is not empty", dir.Path)
	}
	return err
}

// remove removes the files that were written, and the directory if it was made for it. Without
// INSTANCE the rest is not a store, however much of it a kill leaves.
func (w *imageWriter) remove(made bool) error {
	err := w.dir.Clear()
	if made {
		err = errors.Join(err, vfs.RemoveAll(w.dir.FS, w.dir.Path))
	}
	return err
}

// copyError is a failed write to the files of a copy, which poisons nothing else: it is no
// ErrPoisoned, which would be about the store.
type copyError struct{ cause error }

func (e *copyError) Error() string {
	return strings.ReplaceAll(e.cause.Error(), fault.ErrPoisoned.Error()+": ", "")
}

// Is reports whether the cause is target.
func (e *copyError) Is(target error) bool {
	return target != fault.ErrPoisoned && errors.Is(e.cause, target)
}

// treeBytes returns the length of all files below dir.
func treeBytes(fsys vfs.FS, dir string) (bytes int64, err error) {
	names, err := fsys.List(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if name == instore.LostFound {
			continue
		}
		path := filepath.Join(dir, name)
		info, err := fsys.Stat(path)
		if err != nil {
			return 0, err
		}
		n := info.Size()
		if info.IsDir() {
			if n, err = treeBytes(fsys, path); err != nil {
				return 0, err
			}
		}
		bytes += n
	}
	return bytes, nil
}

// imageWriter makes a store from an image.
type imageWriter struct {
	ctx      context.Context
	dir      storedir.Dir
	src      ImageSource
	info     ImageInfo
	o        *Options
	progress []Progress
	instance storedir.Instance
	copied   CopyResult
	done     int64 // bytes of blocks
}

// write makes all files, INSTANCE last. A kill at any moment leaves a directory without INSTANCE
// and without FORMATTING, which is not a store and is never taken for an unfinished format.
func (w *imageWriter) write() error {
	if _, err := rand.Read(w.instance.ID[:]); err != nil {
		return err
	}
	w.instance.BlockSize, w.instance.Created = w.info.BlockSize, time.Now().UnixMicro()
	if b := w.info.BlockSize; !storedir.IsBlockSize(b) {
		return fault.Corruptf("image: block size %d", b)
	}
	if w.info.LogStart == 0 || w.info.LogEnd+1 < w.info.LogStart {
		return fault.Corruptf("image: log from LSN %d to %d", w.info.LogStart, w.info.LogEnd)
	}
	fsys := w.o.FS
	if err := fsys.SyncDir(filepath.Dir(w.dir.Path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, step := range []func() error{
		func() error { return fsys.Mkdir(w.dir.File(storedir.LogName)) },
		w.content,
		func() error { return fsys.SyncDir(w.dir.Path) },
		func() error { return w.dir.WriteInstance(&w.instance) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	w.copied.UUID, w.copied.Timestamp = hex.EncodeToString(w.instance.ID[:]), w.info.Timestamp
	return nil
}

// content makes metadata, containers and log.
func (w *imageWriter) content() error {
	b, err := blockmanager.NewBuilder(blockmanager.Options{FS: w.o.FS, Dir: w.dir.Path, Instance: w.instance.ID,
		BlockSize: w.instance.BlockSize, Logger: w.o.Logger},
		blockmanager.Counters{Epoch: w.info.Epoch, Mark: w.info.Mark, LogStart: w.info.LogStart})
	if err != nil {
		return err
	}
	if src, ok := w.src.(interface {
		build(*blockmanager.Builder) error
	}); ok {
		if err := src.build(b); err != nil {
			b.Abort()
			return err
		}
	}
	err = w.src.Rows(func(key, value []byte) error {
		return errors.Join(w.ctx.Err(), b.AddRow(blockmanager.Row{Key: key, Value: value}))
	})
	if err == nil {
		err = w.log()
	}
	if err == nil {
		err = w.src.Blocks(func(block ImageBlock, open func() (io.ReadCloser, error)) error {
			return w.block(b, block, open)
		})
	}
	if err != nil {
		b.Abort()
		return err
	}
	return b.Close()
}

func (w *imageWriter) block(b *blockmanager.Builder, info ImageBlock, open func() (io.ReadCloser, error)) error {
	r, err := open()
	if err != nil {
		return err
	}
	err = b.AddBlock(w.ctx, blockmanager.BlockInfo{ID: block.ID(info.ID), Length: info.Length, Sum: info.Sum}, r)
	if err == nil { // what the source verifies, it may verify at its end
		var n int64
		if n, err = io.Copy(io.Discard, r); n > 0 {
			err = fault.Corruptf("image: block %d has more than %d bytes", info.ID, info.Length)
		}
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	w.done += info.Length
	advance(w.progress, w.done, w.info.BlockBytes)
	return nil
}

// log makes a log of the image's records, with their LSNs, and closes it.
func (w *imageWriter) log() error {
	o := wal.Options{FS: w.o.FS, Dir: w.dir.File(storedir.LogName), Instance: w.instance.ID, Logger: w.o.Logger,
		SegmentBytes: w.o.LogSegmentBytes}
	if err := wal.Create(o, w.info.LogStart); err != nil {
		return err
	}
	tail, err := wal.Replay(o, w.info.LogStart, nil) // there is no record
	if err != nil {
		return err
	}
	l, err := tail.Repair(nil)
	if err != nil {
		return err
	}
	err = w.src.Records(func(record []byte) error {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		_, err := l.Append(record)
		return err
	})
	if end := l.Next() - 1; err == nil && end != w.info.LogEnd {
		err = fault.Corruptf("image: log ends with LSN %d, want %d", end, w.info.LogEnd)
	}
	if err != nil {
		l.Poison(err) // so that Close writes nothing
		l.Close()
		return err
	}
	return l.Close()
}
