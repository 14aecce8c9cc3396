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
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/instore"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/internal/storedir"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// readsShare: 1/readsShare of the memory limit is for blocks that are being read, before they are
// in the cache.
const readsShare = 16

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
	if n, err := s.blocks.ReadAhead(s.opts.ReadAheadBytes); err != nil {
		s.opts.Logger.Warn("reading ahead failed", slog.Int64("bytes", n), slog.Any("err", err))
	}
	if !s.opts.ReadOnly {
		s.background = startBackground(s)
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
		if !errors.Is(err, fault.ErrNotStore) && (errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, syscall.ENOTDIR)) {
			err = fmt.Errorf("%w: %w", err, fault.ErrCorrupt)
		}
		return nil, err
	}
	return s, nil
}

// newStore returns a store that is not open.
func newStore(dir string, o Options) *Store {
	s := &Store{opts: o, tables: map[string]*Table{}, counters: newCounters(), idle: make(chan struct{}, 1), maxLog: maxLogBytes}
	s.dir = storedir.At(s.opts.FS, dir, s.opts.Logger)
	s.followers = storedir.NewFollowers(s.dir, s.opts.FollowerLag)
	s.timeline = store.NewTimeline(s.opts.Clock)
	s.pins = store.NewPins(s.timeline)
	s.budget = budget.New(s.opts.MemoryLimit)
	if s.opts.CompactionBandwidth > 0 {
		s.throttle = store.NewBandwidth(s.opts.CompactionBandwidth, s.overLimit).Wait
	}
	s.cache = store.NewCache(s.budget, s.opts.MemoryLimit)
	s.reads = budget.NewGate(s.opts.MemoryLimit / readsShare)
	return s
}

// abandon releases what a failed open has acquired.
func (s *Store) abandon() {
	for _, t := range s.tables {
		t.tab.Close()
	}
	if s.commits != nil {
		s.commits.Log.Poison(errors.New("the store was not opened completely")) // Close would seal it
		s.commits.Log.Close()
	}
	if s.blocks != nil {
		s.blocks.Close()
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
	if s.instance == nil {
		if s.instance, err = s.dir.Instance(); err != nil {
			return err
		}
	}
	if s.opts.Follow {
		s.reader = s.dir.Pin()
	}
	if s.blocks, err = blockmanager.Open(s.blockOptions()); err != nil {
		return err
	}
	if err := s.loadTables(); err != nil {
		return err
	}
	tail, err := s.replay()
	if err != nil {
		return err
	}
	if s.opts.ReadOnly {
		s.reader.Set(s.blocks.Epoch(), s.blocks.LogStart())
		return nil
	}
	s.timeline.Clock.Restore(s.marked)
	for _, t := range s.tables {
		// A floor is chosen by the clock, which may be ahead of all batches. What is below it is not
		// kept apart any more.
		s.timeline.Clock.Restore(t.tab.Metadata().HistoryFloor)
	}
	var failed error // of the blocks, not of the log
	log, err := tail.Repair(func() error {
		failed = s.blocks.Writable()
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	s.commits = store.NewCommits(s.timeline, log, s.blocks, s.opts.Logger, recentLimit(s.opts.MemoryLimit))
	r, mended := &s.recovery, s.blocks.Repaired()
	if r.TornBytes > 0 {
		r.TornFile = storedir.LogName + "/" + wal.TornName(tail.Report().TornFile)
	}
	r.StrayContainers, r.CutBytes, r.Reclaimed = mended.Strays, mended.CutBytes, mended.Reclaimed
	if !fresh && (!r.Clean || r.RepairedBits > 0) {
		s.opts.Logger.Info("store recovered", slog.Int64("batches", r.Batches), slog.Int64("torn_bytes", r.TornBytes),
			slog.String("torn_file", r.TornFile), slog.Int64("repaired_bits", r.RepairedBits), slog.Int("stray_containers", r.StrayContainers),
			slog.Int64("cut_bytes", r.CutBytes), slog.Int("reclaimed_blocks", r.Reclaimed))
	}
	if s.unsettled {
		if err := s.commits.Settle(); err != nil && !isNoSpace(err) {
			return err
		}
	}
	if err := s.commits.Log.Release(s.logBegin()); err != nil {
		return err
	}
	if len(s.tables) > 0 {
		s.reserve.Keep(s.instance.ID)
	}
	return nil
}

// prepare makes sure that dir contains a store and locks it. fresh reports whether prepare created
// the store.
func (s *Store) prepare() (fresh bool, err error) {
	state, err := s.dir.State()
	missing := errors.Is(err, fs.ErrNotExist)
	if errors.Is(err, syscall.ENOTDIR) {
		return false, fmt.Errorf("%w: %w", err, fault.ErrNotStore)
	}
	if err != nil && !missing {
		return false, err
	}
	mayFormat := !s.opts.ReadOnly && !s.opts.ErrorIfMissing
	switch {
	case missing && instore.Dangles(s.opts.FS, s.dir.Path):
		return false, fmt.Errorf("a symbolic link that leads nowhere: %w", fault.ErrNotStore)
	case missing && !mayFormat:
		return false, fmt.Errorf("no such directory: %w", fault.ErrNotStore)
	case missing:
		if err := s.opts.FS.Mkdir(s.dir.Path); err != nil {
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
	if s.locks, err = s.dir.Lock(s.opts.ReadOnly); err != nil {
		return false, err
	}
	// Another process may have created the store before this one locked it.
	if state, err = s.dir.State(); err != nil {
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
		if s.instance, err = s.dir.Instance(); err != nil {
			return false, err
		}
		s.reserve = s.dir.FindReserve(s.instance.ID)
		if err := s.reserve.Claim(); err != nil {
			return false, err
		}
		if s.marked, err = s.locks.WriteOwner(); err != nil {
			return false, err
		}
		return false, s.dir.EndFormat()
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
	s.reserve = s.dir.FindReserve(s.instance.ID)
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
	if err := s.opts.FS.SyncDir(filepath.Dir(s.dir.Path)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.instance = &storedir.Instance{BlockSize: fsBlockSize, Created: time.Now().UnixMicro()}
	return s.dir.Format(s.instance, func() error {
		if err := s.opts.FS.Mkdir(s.dir.File(storedir.LogName)); err != nil {
			return err
		}
		if err := wal.Create(s.logOptions(), 1); err != nil {
			return err
		}
		if err := s.opts.FS.SyncDir(s.dir.Path); err != nil {
			return err
		}
		row := meta.Store{DefaultHistorySec: history, NextTable: 1}
		return blockmanager.Format(s.blockOptions(), []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}, 1)
	})
}

func (s *Store) blockOptions() blockmanager.Options {
	return blockmanager.Options{FS: s.opts.FS, Dir: s.dir.Path, Instance: s.instance.ID, ReadOnly: s.opts.ReadOnly, Follow: s.opts.Follow,
		BlockSize: s.instance.BlockSize, Logger: s.opts.Logger, BeforeCommit: s.locks.Check, Kept: s.followers.Kept}
}

func (s *Store) logOptions() wal.Options {
	return wal.Options{FS: s.opts.FS, Dir: s.dir.File(storedir.LogName), Instance: s.instance.ID, Logger: s.opts.Logger, Durable: s.durable,
		SegmentBytes: s.opts.LogSegmentBytes}
}

// loadTables creates the tables from their metadata rows.
func (s *Store) loadTables() error {
	stored, rows, err := s.readTables(nil)
	if err != nil {
		return err
	}
	s.stored = stored
	if h, _ := historySeconds(s.opts.History); s.opts.History != defaultHistory && h != s.stored.DefaultHistorySec {
		s.opts.Logger.Warn("Options.History is ignored: the store has its own", slog.Int64("seconds", s.stored.DefaultHistorySec))
	}
	for _, row := range rows {
		if s.tables[row.Name] != nil {
			return fault.Corruptf("metadata: two tables are named %q", row.Name)
		}
		tab, err := s.openTable(row)
		if err != nil {
			return err
		}
		s.tables[row.Name] = &Table{store: s, tab: tab}
	}
	return nil
}

// openTable opens a table of the metadata.
func (s *Store) openTable(row *meta.Table) (*tablet.Tablet, error) {
	sets, err := s.rowSets(row, nil)
	if err != nil {
		return nil, err
	}
	o := s.tabletOptions()
	if s.salvage != nil {
		o.Salvage = func(m *rowset.Metadata, err error) { s.salvage.loseRowSet(row, m, err) }
	}
	return tablet.Open(o, row, sets)
}

// openNext opens a follower's table in a new state; see tablet.OpenNext.
func (s *Store) openNext(row *meta.Table, n tablet.Next) (*tablet.Tablet, lsn.LSN, error) {
	have := map[uint64]*rowset.Metadata{}
	for _, m := range n.Of.RowSetMetadata() {
		if !n.Changed[m.ID] {
			have[m.ID] = m
		}
	}
	sets, err := s.rowSets(row, have)
	if err != nil {
		return nil, 0, err
	}
	return tablet.OpenNext(s.tabletOptions(), row, sets, n)
}

// rowSets returns the metadata of the rowsets of a table. Those in have need not be decoded.
func (s *Store) rowSets(row *meta.Table, have map[uint64]*rowset.Metadata) (sets []*rowset.Metadata, err error) {
	err = s.blocks.Rows(meta.RowSetPrefix(row.Number), func(key, value []byte) error {
		if _, _, id, err := meta.ParseKey(key); err == nil && have[id] != nil {
			sets = append(sets, have[id])
			return nil
		}
		set, err := rowset.DecodeMetadata(value)
		if err == nil && set.ID >= row.NextRowSetID {
			return fault.Corruptf("metadata: table %q: rowset %d, want less than %d", row.Name, set.ID, row.NextRowSetID)
		}
		sets = append(sets, set)
		return err
	})
	return sets, err
}

// readTables decodes the rows of the store and of the tables. have, if it is not nil, returns the
// metadata of a table that need not be decoded, or nil.
func (s *Store) readTables(have func(number uint32) *meta.Table) (stored meta.Store, rows []*meta.Table, err error) {
	found := false
	err = s.blocks.Rows(meta.StoreKey(), func(_, value []byte) error {
		row, err := meta.DecodeStore(value)
		if err == nil {
			stored, found = *row, true
		}
		return err
	})
	if err == nil && !found {
		err = fault.Corruptf("metadata: no row of the store")
	}
	if err != nil {
		return stored, nil, err
	}
	err = s.blocks.Rows(meta.TablePrefix(), func(key, value []byte) error {
		if have != nil {
			if _, number, _, err := meta.ParseKey(key); err == nil {
				if row := have(number); row != nil {
					rows = append(rows, row)
					return nil
				}
			}
		}
		row, err := meta.DecodeTable(value)
		rows = append(rows, row)
		return err
	})
	return stored, rows, err
}

func (s *Store) tabletOptions() tablet.Options {
	return tablet.Options{
		Store:       tabletStore{s},
		RowSets:     rowset.Options{Blocks: openBlocks{s.blocks}, Cache: s.cache, Grow: s.budget.Grower(budget.Delta), Reads: s.reads},
		GrowMem:     s.budget.Grower(budget.MemRowSet),
		GrowMerge:   s.budget.Grower(budget.Merge),
		TargetBytes: s.opts.RowSetBytes,
		MergeBytes:  s.opts.MemoryLimit / 2,

		RecompressAfter: s.opts.RecompressAfter,
		Logger:          s.opts.Logger,
		Progress:        s.opts.Progress,
		Throttle:        s.throttle,
	}
}

// openBlocks adapts the block manager to the interface of package rowset.
type openBlocks struct{ m *blockmanager.Manager }

func (o openBlocks) OpenBlock(id blockID) (rowset.Block, error) { return o.m.OpenBlock(id) }

func (o openBlocks) OpenTail(id blockID, n int64) (rowset.Block, error) { return o.m.OpenTail(id, n) }
