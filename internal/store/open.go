package store

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
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/vfs"
)

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

// Open opens the store in dir, or creates it. Errors: ErrNotStore; ErrExists; ErrLocked;
// ErrCorrupt; ErrUnsupported; the errors of the file system.
func Open(dir string, o Options) (s *Store, err error) {
	if o.Follow { // without locks
		err = storedir.At(o.FS, dir, o.Logger).Retry(context.Background(), func() error {
			s, err = openOnce(dir, o)
			return err
		})
	} else {
		s, err = openOnce(dir, o)
	}
	if err != nil {
		return nil, err
	}
	if n, err := s.Blocks.ReadAhead(o.ReadAheadBytes); err != nil {
		o.Logger.Warn("reading ahead failed", slog.Int64("bytes", n), slog.Any("err", err))
	}
	if s.Writer != nil {
		s.Background = startBackground(s.Writer, o.Background, s.Locks, s.pacer)
	}
	return s, nil
}

// New returns a store that is not open.
func New(dir string, o Options) *Store {
	s := &Store{Core: newCore(storedir.At(o.FS, dir, o.Logger), o), idle: make(chan struct{}, 1)}
	s.host = host{s}
	s.pacer = newPacer(o.MemoryLimit,
		func() int64 { return s.Budget.Used() + s.Cache.Used() + s.Reads.Used() + s.Scanning.Load() },
		func() bool { return s.running.Load() > 0 })
	s.followers = storedir.NewFollowers(s.Dir, o.FollowerLag)
	if o.CompactionBandwidth > 0 {
		s.throttle = NewBandwidth(o.CompactionBandwidth,
			func() bool { return s.Writer != nil && s.Writer.OverLimit() }).Wait
	}
	return s
}

// openOnce is one try to open the store in dir.
func openOnce(dir string, o Options) (*Store, error) {
	s := New(dir, o)
	s.pacer.start()
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

// abandon releases what a store that is not open completely has acquired.
func (s *Store) abandon() {
	s.pacer.stop()
	s.closeTables()
	if s.Writer != nil {
		s.Writer.Log.Poison(errors.New("the store was not opened completely")) // Close would seal it
		s.Writer.Log.Close()
	}
	if s.Blocks != nil {
		s.Blocks.Close()
	}
	s.reader.Close()
	s.Locks.Release()
}

// open does the steps of opening, in their order: lock, format if need be, metadata against the
// anchor, rowsets, log, and for a writer repair.
func (s *Store) open() error {
	fresh, err := s.prepare()
	if err != nil {
		return err
	}
	if s.Instance == nil {
		if s.Instance, err = s.Dir.Instance(); err != nil {
			return err
		}
	}
	if s.Options.Follow {
		s.reader = s.Dir.Pin()
	}
	if s.Blocks, err = blockmanager.Open(s.blockOptions()); err != nil {
		return err
	}
	if err := s.loadTables(); err != nil {
		return err
	}
	tail, err := s.Replay()
	if err != nil {
		return err
	}
	if s.Options.Follow {
		s.Follower = newFollower(s.Core, s.reader)
	}
	if s.Options.ReadOnly {
		return nil
	}
	s.Clock.Restore(s.marked)
	for _, t := range s.Tablets() {
		// A floor is chosen by the clock, which may be ahead of all batches. What is below it is
		// not kept apart any more.
		s.Clock.Restore(t.Metadata().HistoryFloor)
	}
	var failed error // of the blocks, not of the log
	log, err := tail.Repair(func() error {
		failed = s.Blocks.Writable()
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	s.Writer = newWriter(s.Core, log, s.followers)
	r, mended := &s.Recovery, s.Blocks.Repaired()
	if r.TornBytes > 0 {
		r.TornFile = storedir.LogName + "/" + wal.TornName(tail.Report().TornFile)
	}
	r.StrayContainers, r.CutBytes, r.Reclaimed = mended.Strays, mended.CutBytes, mended.Reclaimed
	if !fresh && (!r.Clean || r.RepairedBits > 0) {
		s.Options.Logger.Info("store recovered", slog.Int64("batches", r.Batches), slog.Int64("torn_bytes", r.TornBytes),
			slog.String("torn_file", r.TornFile), slog.Int64("repaired_bits",
				r.RepairedBits), slog.Int("stray_containers", r.StrayContainers),
			slog.Int64("cut_bytes", r.CutBytes), slog.Int("reclaimed_blocks", r.Reclaimed))
	}
	if s.InDoubt {
		if err := s.Writer.AbortInDoubt(); err != nil && !isNoSpace(err) {
			return err
		}
	}
	if err := s.Writer.Log.Release(s.Writer.LogBegin()); err != nil {
		return err
	}
	if len(s.Tablets()) > 0 {
		s.reserve.Keep(s.Instance.ID)
	}
	return nil
}

// prepare makes sure that dir contains a store and locks it. fresh reports whether prepare created
// the store.
func (s *Store) prepare() (fresh bool, err error) {
	state, err := s.Dir.State()
	missing := errors.Is(err, fs.ErrNotExist)
	if errors.Is(err, syscall.ENOTDIR) {
		return false, fmt.Errorf("%w: %w", err, fault.ErrNotStore)
	}
	if err != nil && !missing {
		return false, err
	}
	mayFormat := !s.Options.ReadOnly && !s.Options.ErrorIfMissing
	switch {
	case missing && instore.Dangles(s.Options.FS, s.Dir.Path):
		return false, fmt.Errorf("a symbolic link that leads nowhere: %w", fault.ErrNotStore)
	case missing && !mayFormat:
		return false, fmt.Errorf("no such directory: %w", fault.ErrNotStore)
	case missing:
		if err := s.Options.FS.Mkdir(s.Dir.Path); err != nil {
			return false, err
		}
	case state == storedir.Foreign:
		return false, fmt.Errorf("the directory contains something else: %w", fault.ErrNotStore)
	case state == storedir.Formatted && s.Options.ErrorIfExists:
		return false, fmt.Errorf("a store %w", fault.ErrExists)
	case state == storedir.Empty && !mayFormat:
		return false, fmt.Errorf("the directory is empty: %w", fault.ErrNotStore)
	case state == storedir.Unfinished && !mayFormat:
		return false, fmt.Errorf("the store was not created completely: %w", fault.ErrNotStore)
	}
	if s.Options.Follow {
		return false, nil
	}
	if s.Locks, err = s.Dir.Lock(s.Options.ReadOnly); err != nil {
		return false, err
	}
	// Another process may have created the store before this one locked it.
	if state, err = s.Dir.State(); err != nil {
		return false, err
	}
	switch state {
	case storedir.Formatted:
		if s.Options.ErrorIfExists {
			return false, fmt.Errorf("a store %w", fault.ErrExists)
		}
		if err := s.Locks.LockInstance(); err != nil || s.Options.ReadOnly {
			return false, err
		}
		if s.Instance, err = s.Dir.Instance(); err != nil {
			return false, err
		}
		s.reserve = s.Dir.FindReserve(s.Instance.ID)
		if err := s.reserve.Claim(); err != nil {
			return false, err
		}
		if s.marked, err = s.Locks.WriteOwner(); err != nil {
			return false, err
		}
		return false, s.Dir.EndFormat()
	case storedir.Foreign:
		return false, fmt.Errorf("the directory contains something else: %w", fault.ErrNotStore)
	}
	if !mayFormat {
		return false, fmt.Errorf("the store was not created completely: %w", fault.ErrNotStore)
	}
	if s.marked, err = s.Locks.WriteOwner(); err != nil {
		return false, err
	}
	if err := s.format(); err != nil {
		return false, err
	}
	s.reserve = s.Dir.FindReserve(s.Instance.ID)
	return true, s.Locks.LockInstance()
}

const fsBlockSize = 4096

func (s *Store) format() error {
	// The directory's entry in its parent must be durable before anything in it. Its creator, in
	// this process or in one that crashed, may not have synced it. A parent that this process may
	// not read was not changed by it.
	if err := s.Options.FS.SyncDir(filepath.Dir(s.Dir.Path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.Instance = &storedir.Instance{BlockSize: fsBlockSize, Created: time.Now().UnixMicro()}
	return s.Dir.Format(s.Instance, func() error {
		if err := s.Options.FS.Mkdir(s.Dir.File(storedir.LogName)); err != nil {
			return err
		}
		if err := wal.Create(s.LogOptions(), 1); err != nil {
			return err
		}
		if err := s.Options.FS.SyncDir(s.Dir.Path); err != nil {
			return err
		}
		row := meta.Store{DefaultHistorySec: s.Options.HistorySec, NextTable: 1}
		return blockmanager.Format(s.blockOptions(), []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}, 1)
	})
}

// blockOptions returns the options of the block manager.
func (s *Store) blockOptions() blockmanager.Options {
	return blockmanager.Options{FS: s.Options.FS, Dir: s.Dir.Path, Instance: s.Instance.ID,
		ReadOnly: s.Options.ReadOnly, Follow: s.Options.Follow,
		BlockSize: s.Instance.BlockSize, Logger: s.Options.Logger, BeforeCommit: s.Locks.Check, Kept: s.followers.Kept}
}

// loadTables opens the tables of the metadata.
func (s *Store) loadTables() error {
	if err := s.load(); err != nil {
		return err
	}
	if own := s.stored.DefaultHistorySec; s.Options.HistoryChosen && s.Options.HistorySec != own {
		s.Options.Logger.Warn("Options.History is ignored: the store has its own", slog.Int64("seconds", own))
	}
	return nil
}
