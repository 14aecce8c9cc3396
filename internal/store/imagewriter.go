package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/storeinfo"
	"github.com/oribi-db/oribi/vfs"
)

// ImageOptions are the options of WriteImage.
type ImageOptions struct {
	FS              vfs.FS
	Logger          *slog.Logger
	LogSegmentBytes int64
	Progress        func(done, total int64) // of the bytes of blocks
}

// WriteImage makes a store from an image, in dir. A source that also has a method Build writes
// blocks of its own with it, before its rows are asked for.
func WriteImage(
	ctx context.Context, dir string, src storeinfo.ImageSource, o ImageOptions,
) (_ storeinfo.CopyResult, err error) {
	fsys := o.FS
	if err := storedir.MayCopyTo(fsys, dir); err != nil {
		return storeinfo.CopyResult{}, err
	}
	to := storedir.At(fsys, dir, o.Logger)
	made := true
	if err := fsys.Mkdir(to.Path); err != nil {
		if made = false; !errors.Is(err, fs.ErrExist) {
			return storeinfo.CopyResult{}, err
		}
	}
	w := imageWriter{ctx: ctx, dir: to, src: src, info: src.Info(), o: o}
	// With its lock held, no other process takes the directory for an empty one.
	lock, err := fsys.Lock(to.File(storedir.LockName), vfs.LockCreate)
	if err == nil {
		// Another process may have put something there before this one locked it.
		if err := to.MustBeEmpty(); err != nil && !made {
			return storeinfo.CopyResult{}, errors.Join(err, lock.Close())
		}
		err = w.write()
		err = errors.Join(err, lock.Close())
	} else if !made {
		return storeinfo.CopyResult{}, err
	}
	if errors.Is(err, fault.ErrPoisoned) {
		err = &copyError{err}
	}
	if err == nil {
		w.copied.Bytes, err = to.FileBytes()
	}
	if err != nil {
		if rerr := w.remove(made); rerr != nil {
			err = fmt.Errorf("%w; removing %s: %w", err, to.Path, rerr)
		}
		return storeinfo.CopyResult{}, err
	}
	return w.copied, nil
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

// imageWriter makes a store from an image.
type imageWriter struct {
	ctx      context.Context
	dir      storedir.Dir
	src      storeinfo.ImageSource
	info     storeinfo.ImageInfo
	o        ImageOptions
	instance storedir.Instance
	copied   storeinfo.CopyResult
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
		Build(*blockmanager.Builder) error
	}); ok {
		if err := src.Build(b); err != nil {
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
		err = w.src.Blocks(func(block storeinfo.ImageBlock, open func() (io.ReadCloser, error)) error {
			return w.block(b, block, open)
		})
	}
	if err != nil {
		b.Abort()
		return err
	}
	return b.Close()
}

func (w *imageWriter) block(
	b *blockmanager.Builder, info storeinfo.ImageBlock, open func() (io.ReadCloser, error),
) error {
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
	w.o.Progress(w.done, w.info.BlockBytes)
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
