package oribi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/vfs"
)

// Open opens the store in dir. It creates a store if dir is empty, or if dir is missing and its
// parent exists.
//
// If the process that wrote the store was killed, Open recovers it: the store contains every write
// batch that was acknowledged as durable, completely. Store.Recovery returns what Open found.
//
// Errors: ErrNotStore if dir contains something else or, with ErrorIfMissing or ReadOnly, nothing;
// ErrLocked; ErrCorrupt; ErrUnsupported for a newer format; ErrExists; those of the file system. A
// follower (Options.Follow) waits up to five seconds for a state that it can read. A
// failed Open changes nothing, except that a writer creates a missing directory, writes LOCK, and
// restarts an unfinished format.
func Open(dir string, o *Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, fmt.Errorf("oribi: open: the name of the directory is empty: %w", fault.ErrNotStore)
	}
	filled := o.filled()
	open := openOnce
	if filled.Follow {
		open = openFollower
	}
	s, err := open(dir, &filled)
	if err != nil {
		return nil, fmt.Errorf("oribi: %s: %w", dir, err)
	}
	if n, err := s.core.Blocks.ReadAhead(s.opts.ReadAheadBytes); err != nil {
		s.opts.Logger.Warn("reading ahead failed", slog.Int64("bytes", n), slog.Any("err", err))
	}
	if !s.opts.ReadOnly {
		s.background = store.StartBackground(s.writer, store.BackgroundOptions{Manual: s.opts.Manual,
			Workers: s.opts.MaintenanceWorkers, FlushBytes: s.opts.FlushBytes, Policy: s.opts.Policy,
			Schedule: s.schedule(), Locks: s.locks})
	}
	return s, nil
}

// A follower reads the files of the store in this order, and takes no lock:
//
//	anchor      at least as new as the last commit that was confirmed before
//	metadata    as of one commit, at an epoch that the anchor accepts, or a later one
//	containers  opened: what the writer removes from now on stays readable, what it punches is detected
//	log         from log_start on, up to the first record that is not complete or needs later metadata
//
//	writer      append 7   append 8   flush: commit of epoch 5   append 9   release of the log below 9
//	follower        anchor 4   metadata 4                log 1 … 9: as of 9, from files of epoch 4
//	             or anchor 4   metadata 4                                     log: 1 is missing, again
//
// Metadata and log need not be of one moment: the log after metadata of an earlier moment is what a
// crash leaves, and replay is exact for it. What only the metadata has, such as new tables, ends
// the log (see logCheck).
//
// A step that fails has met a change, or damage. It was damage if the next tries fail too, and
// nothing has changed in between.

// openFollower opens the store without locks.
func openFollower(dir string, o *Options) (s *Store, err error) {
	err = storedir.At(o.FS, dir, o.Logger).Retry(context.Background(), func() error {
		s, err = openOnce(dir, o)
		return err
	})
	return s, err
}

// openOnce is one try to open the store in dir, with filled options.
func openOnce(dir string, o *Options) (*Store, error) {
	s := newStore(dir, *o)
	if err := s.open(); err != nil {
		s.abandon()
		if !errors.Is(err, fault.ErrNotStore) &&
			(errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, syscall.ENOTDIR)) {
			err = fmt.Errorf("%w: %w", err, fault.ErrCorrupt)
		}
		return nil, err
	}
	return s, nil
}

// newStore returns a store that is not open.
func newStore(dir string, o Options) *Store {
	s := &Store{opts: o, counters: newCounters(), idle: make(chan struct{}, 1)}
	if o.CompactionBandwidth > 0 {
		s.throttle = store.NewBandwidth(o.CompactionBandwidth,
			func() bool { return s.writer != nil && s.writer.OverLimit() }).Wait
	}
	s.core = store.NewCore(storedir.At(o.FS, dir, o.Logger),
		store.Options{Clock: o.Clock, Logger: o.Logger, ReadOnly: o.ReadOnly, Follow: o.Follow,
			MemoryLimit: o.MemoryLimit, RowSetBytes: o.RowSetBytes, LogSegmentBytes: o.LogSegmentBytes,
			RecompressAfter: o.RecompressAfter, FollowerLag: o.FollowerLag,
			LogLimit: o.logLimit, Throttle: s.throttle, Progress: o.Progress, Event: s.event,
			Face: func(t *store.Table) any { return &Table{store: s, tab: t.Tablet, entry: t} }})
	s.followers = storedir.NewFollowers(s.core.Dir, o.FollowerLag)
	return s
}

// abandon releases what a failed open has acquired.
func (s *Store) abandon() {
	s.core.CloseTables()
	if s.writer != nil {
		s.writer.Log.Poison(errors.New("the store was not opened completely")) // Close would seal it
		s.writer.Log.Close()
	}
	if s.core.Blocks != nil {
		s.core.Blocks.Close()
	}
	s.reader.Close()
	s.locks.Release()
}

// open does the steps of opening, in their order: lock, format if need be, metadata against the
// anchor, rowsets, log, and for a writer repair.
func (s *Store) open() error {
	fresh, err := s.prepare()
	if err != nil {
		return err
	}
	if s.core.Instance == nil {
		if s.core.Instance, err = s.core.Dir.Instance(); err != nil {
			return err
		}
	}
	if s.opts.Follow {
		s.reader = s.core.Dir.Pin()
	}
	if s.core.Blocks, err = blockmanager.Open(s.blockOptions()); err != nil {
		return err
	}
	if err := s.loadTables(); err != nil {
		return err
	}
	tail, err := s.core.Replay()
	if err != nil {
		return err
	}
	if s.opts.ReadOnly {
		s.follower = store.NewFollower(s.core, s.reader)
		s.recovery = recoveryOf(s.core.Recovery)
		return nil
	}
	s.core.Clock.Restore(s.marked)
	for _, t := range s.core.Tablets() {
		// A floor is chosen by the clock, which may be ahead of all batches. What is below it is not
		// kept apart any more.
		s.core.Clock.Restore(t.Metadata().HistoryFloor)
	}
	var failed error // of the blocks, not of the log
	log, err := tail.Repair(func() error {
		failed = s.core.Blocks.Writable()
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	s.writer = store.NewWriter(s.core, log, s.followers, recentLimit(s.opts.MemoryLimit))
	s.recovery = recoveryOf(s.core.Recovery)
	r, mended := &s.recovery, s.core.Blocks.Repaired()
	if r.TornBytes > 0 {
		r.TornFile = storedir.LogName + "/" + wal.TornName(tail.Report().TornFile)
	}
	r.StrayContainers, r.CutBytes, r.Reclaimed = mended.Strays, mended.CutBytes, mended.Reclaimed
	if !fresh && (!r.Clean || r.RepairedBits > 0) {
		s.opts.Logger.Info("store recovered", slog.Int64("batches", r.Batches), slog.Int64("torn_bytes", r.TornBytes),
			slog.String("torn_file", r.TornFile), slog.Int64("repaired_bits",
				r.RepairedBits), slog.Int("stray_containers", r.StrayContainers),
			slog.Int64("cut_bytes", r.CutBytes), slog.Int("reclaimed_blocks", r.Reclaimed))
	}
	if s.core.InDoubt {
		if err := s.writer.AbortInDoubt(); err != nil && !isNoSpace(err) {
			return err
		}
	}
	if err := s.writer.Log.Release(s.writer.LogBegin()); err != nil {
		return err
	}
	if len(s.core.Tablets()) > 0 {
		s.reserve.Keep(s.core.Instance.ID)
	}
	return nil
}

// prepare makes sure that dir contains a store and locks it. fresh reports whether prepare created
// the store.
func (s *Store) prepare() (fresh bool, err error) {
	state, err := s.core.Dir.State()
	missing := errors.Is(err, fs.ErrNotExist)
	if errors.Is(err, syscall.ENOTDIR) {
		return false, fmt.Errorf("%w: %w", err, fault.ErrNotStore)
	}
	if err != nil && !missing {
		return false, err
	}
	mayFormat := !s.opts.ReadOnly && !s.opts.ErrorIfMissing
	switch {
	case missing && instore.Dangles(s.opts.FS, s.core.Dir.Path):
		return false, fmt.Errorf("a symbolic link that leads nowhere: %w", fault.ErrNotStore)
	case missing && !mayFormat:
		return false, fmt.Errorf("no such directory: %w", fault.ErrNotStore)
	case missing:
		if err := s.opts.FS.Mkdir(s.core.Dir.Path); err != nil {
			return false, err
		}
	case state == storedir.Foreign:
		return false, fmt.Errorf("the directory contains something else: %w", fault.ErrNotStore)
	case state == storedir.Formatted && s.opts.ErrorIfExists:
		return false, fmt.Errorf("a store %w", fault.ErrExists)
	case state == storedir.Empty && !mayFormat:
		return false, fmt.Errorf("the directory is empty: %w", fault.ErrNotStore)
	case state == storedir.Unfinished && !mayFormat:
		return false, fmt.Errorf("the store was not created completely: %w", fault.ErrNotStore)
	}
	if s.opts.Follow {
		return false, nil
	}
	if s.locks, err = s.core.Dir.Lock(s.opts.ReadOnly); err != nil {
		return false, err
	}
	// Another process may have created the store before this one locked it.
	if state, err = s.core.Dir.State(); err != nil {
		return false, err
	}
	switch state {
	case storedir.Formatted:
		if s.opts.ErrorIfExists {
			return false, fmt.Errorf("a store %w", fault.ErrExists)
		}
		if err := s.locks.LockInstance(); err != nil || s.opts.ReadOnly {
			return false, err
		}
		if s.core.Instance, err = s.core.Dir.Instance(); err != nil {
			return false, err
		}
		s.reserve = s.core.Dir.FindReserve(s.core.Instance.ID)
		if err := s.reserve.Claim(); err != nil {
			return false, err
		}
		if s.marked, err = s.locks.WriteOwner(); err != nil {
			return false, err
		}
		return false, s.core.Dir.EndFormat()
	case storedir.Foreign:
		return false, fmt.Errorf("the directory contains something else: %w", fault.ErrNotStore)
	}
	if !mayFormat {
		return false, fmt.Errorf("the store was not created completely: %w", fault.ErrNotStore)
	}
	if s.marked, err = s.locks.WriteOwner(); err != nil {
		return false, err
	}
	if err := s.format(); err != nil {
		return false, err
	}
	s.reserve = s.core.Dir.FindReserve(s.core.Instance.ID)
	return true, s.locks.LockInstance()
}

const fsBlockSize = 4096

func (s *Store) format() error {
	history, err := historySeconds(s.opts.History)
	if err != nil {
		return err
	}
	// The directory's entry in its parent must be durable before anything in it. Its creator, in
	// this process or in one that crashed, may not have synced it. A parent that this process may
	// not read was not changed by it.
	if err := s.opts.FS.SyncDir(filepath.Dir(s.core.Dir.Path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.core.Instance = &storedir.Instance{BlockSize: fsBlockSize, Created: time.Now().UnixMicro()}
	return s.core.Dir.Format(s.core.Instance, func() error {
		if err := s.opts.FS.Mkdir(s.core.Dir.File(storedir.LogName)); err != nil {
			return err
		}
		if err := wal.Create(s.core.LogOptions(), 1); err != nil {
			return err
		}
		if err := s.opts.FS.SyncDir(s.core.Dir.Path); err != nil {
			return err
		}
		row := meta.Store{DefaultHistorySec: history, NextTable: 1}
		return blockmanager.Format(s.blockOptions(), []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}, 1)
	})
}

func (s *Store) blockOptions() blockmanager.Options {
	return blockmanager.Options{FS: s.opts.FS, Dir: s.core.Dir.Path, Instance: s.core.Instance.ID,
		ReadOnly: s.opts.ReadOnly, Follow: s.opts.Follow,
		BlockSize: s.core.Instance.BlockSize, Logger: s.opts.Logger, BeforeCommit: s.locks.Check, Kept: s.followers.Kept}
}

// loadTables opens the tables of the metadata.
func (s *Store) loadTables() error {
	if err := s.core.Load(); err != nil {
		return err
	}
	own := s.core.Stored().DefaultHistorySec
	if h, _ := historySeconds(s.opts.History); s.opts.History != defaultHistory && h != own {
		s.opts.Logger.Warn("Options.History is ignored: the store has its own", slog.Int64("seconds", own))
	}
	return nil
}
