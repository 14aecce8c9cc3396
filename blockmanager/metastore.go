package blockmanager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"syscall"

	"github.com/oribi-db/oribi/internal/fault"

	"github.com/cockroachdb/pebble/v2"
)

// How a metaStore is opened.
type metaMode int

const (
	metaRead   metaMode = iota // must exist, nothing is written
	metaWrite                  // must exist
	metaFormat                 // must not exist
)

// Pebble's settings. The format is pinned by name, so that this version of the module reads files
// that another version has written; it has checksums in table footers and records in the log how
// far it was synced, which distinguishes damage from a torn end.
const (
	metaFormatVersion = pebble.FormatTableFormatV6
	memTableBytes     = 4 << 20
	metaOpenFiles     = 100
)

// metaStore wraps Pebble and guards against three of its reactions to a failure: it ends the
// process (Fatalf), it panics, or it continues. Each call runs in a separate goroutine; Fatalf
// poisons and never returns, which strands that goroutine and unblocks the caller.
type metaStore struct {
	mode   metaMode
	db     *pebble.DB
	fs     *pebbleFS
	poison *poison
}

// openMeta opens the database. Once the store is poisoned, nothing is written. Errors of the
// operating system are returned unchanged; everything else, including a missing database, is
// ErrCorrupt.
func openMeta(o *Options, mode metaMode, p *poison) (*metaStore, error) {
	s := &metaStore{mode: mode, fs: newPebbleFS(o.FS, mode == metaRead, p), poison: p}
	log := &pebbleLog{log: o.Logger, store: s}
	opts := &pebble.Options{
		FS:                          s.fs,
		FormatMajorVersion:          metaFormatVersion,
		CacheSize:                   o.CacheBytes,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		MaxOpenFiles:                metaOpenFiles,
		ErrorIfNotExists:            mode != metaFormat,
		ErrorIfExists:               mode == metaFormat,
		ReadOnly:                    mode == metaRead,
		DisableTableStats:           true, // an abandoned Pebble would try forever to compute them
		Logger:                      log,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 1 },
	}
	if mode != metaRead { // to a reader, which does no background work, each call returns its error
		opts.EventListener = &pebble.EventListener{
			BackgroundError: func(err error) { s.poison.set(fmt.Errorf("metadata: background: %w", err)) },
			DataCorruption:  func(i pebble.DataCorruptionInfo) { s.poison.set(corruption(&i)) },
		}
	}
	err := s.run(func() (err error) {
		s.db, err = pebble.Open(o.metaDir(), opts)
		return err
	})
	if err != nil {
		s.fs.sever() // stops what a partly opened Pebble may still be running
		s.fs.closeFiles()
		return nil, fmt.Errorf("metadata: %w", metaError(err))
	}
	return s, nil
}

// metaError classifies the errors of an open or a scan.
func metaError(err error) error {
	var number syscall.Errno
	i := pebble.ExtractDataCorruptionInfo(err)
	switch {
	case i != nil:
		return corruption(i)
	case errors.Is(err, fault.ErrCorrupt), errors.Is(err, fault.ErrUnsupported), errors.Is(err, fs.ErrPermission),
		errors.Is(err, fault.ErrPoisoned), errors.Is(err, fault.ErrNoSpace):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault.Corruptf("%v", err)
	case errors.As(err, &number):
		return err
	default:
		return fault.Corruptf("%v", err)
	}
}

// corruption returns the error for a corrupt file.
func corruption(i *pebble.DataCorruptionInfo) error {
	return fault.Corruptf("%s: %v", i.Path, i.Details)
}

// run calls fn in its own goroutine and waits for it or for the poison.
func (s *metaStore) run(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fault.Corruptf("panic: %v", r)
			}
		}()
		done <- fn()
	}()
	select {
	case err := <-done:
		return err
	case <-s.poison.ch:
		if s.mode == metaRead {
			return s.poison.first() // a failure here makes nothing read-only
		}
		return s.poison.err()
	}
}

// scan calls fn for each row in key order. The slices are valid during the call.
func (s *metaStore) scan(fn func(key, value []byte) error) error {
	var refused error
	err := s.run(func() error {
		it, err := s.db.NewIter(nil)
		if err != nil {
			return err
		}
		for ok := it.First(); ok; ok = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				return errors.Join(err, it.Close())
			}
			if refused = fn(it.Key(), value); refused != nil {
				return it.Close()
			}
		}
		return errors.Join(it.Error(), it.Close())
	})
	if err != nil {
		return fmt.Errorf("metadata: %w", metaError(err))
	}
	return refused
}

// metaOp puts a row, or deletes it if value is nil.
type metaOp struct {
	key   []byte
	value []byte // nil: delete
}

// commit applies all ops atomically and durably. After an error it is unknown whether they were
// applied.
func (s *metaStore) commit(ops []metaOp) error {
	err := s.run(func() error {
		b := s.db.NewBatch()
		for _, op := range ops {
			var err error
			if op.value == nil {
				err = b.Delete(op.key, nil)
			} else {
				err = b.Set(op.key, op.value, nil)
			}
			if err != nil {
				return err
			}
		}
		if err := b.Commit(pebble.Sync); err != nil {
			return err
		}
		return b.Close()
	})
	if err != nil {
		return fmt.Errorf("metadata: commit: %w", err)
	}
	return nil
}

// flush writes the content of Pebble's log to tables, so that the next open has less to replay.
func (s *metaStore) flush() error {
	if err := s.run(func() error { return s.db.Flush() }); err != nil {
		return fmt.Errorf("metadata: flush: %w", err)
	}
	return nil
}

// close closes Pebble. If the store is poisoned, it abandons Pebble and closes its file
// descriptors.
func (s *metaStore) close() error {
	var err error
	if !s.poison.is() {
		if err = s.run(s.db.Close); err == nil {
			return nil
		}
		err = fmt.Errorf("metadata: close: %w", err)
	}
	s.fs.sever()
	s.fs.closeFiles()
	return err
}

// pebbleLog forwards Pebble's messages.
type pebbleLog struct {
	log   *slog.Logger
	store *metaStore
}

func (l *pebbleLog) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
	}
}

func (l *pebbleLog) Errorf(format string, args ...any) {
	l.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf never returns: Pebble continues after a return, and a failed fsync then looks like a
// commit.
func (l *pebbleLog) Fatalf(format string, args ...any) {
	l.store.poison.set(fmt.Errorf("metadata: fatal: %s", fmt.Sprintf(format, args...)))
	l.log.Error("pebble: " + fmt.Sprintf(format, args...))
	select {}
}
