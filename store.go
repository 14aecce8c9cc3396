package oribi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/oribi-db/oribi/blockmanager"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/cache"
	"github.com/oribi-db/oribi/internal/change"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/internal/wal"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/rowset"
	"github.com/oribi-db/oribi/vfs"
)

// Store is an open directory of tables. It is safe for concurrent use.
type Store struct {
	dir      string
	opts     Options
	instance *instance
	lock     vfs.Lock
	blocks   *blockmanager.Manager
	log      *wal.Log // nil when read-only
	pub      *mvcc.Publisher
	clock    mvcc.Clock
	cache    *cache.Cache
	recovery Recovery
	logTail  *wal.Tail // as replay found it

	// running counts the calls that are inside. Close sets closed, then waits until running is 0: a
	// call that counted itself in and then finds closed set goes out again, so none is missed and
	// none that began before is cut off.
	running atomic.Int64
	closed  atomic.Bool
	idle    chan struct{} // gets a value when running falls to 0 after closed was set

	// appendMu is the critical section of a commit: timestamp, LSN, frame and publication order are
	// given under it.
	appendMu sync.Mutex
	// loggedEpoch is the newest confirmed epoch that a record of this session contains. Replay
	// checks the metadata against it.
	loggedEpoch uint64
	lastLSN     atomic.Uint64
	promised    atomic.Uint64 // highest timestamp that no later batch may go below though no batch has it

	// metaMu makes metadata commits follow one another, from the finding of log_start to
	// publication in memory.
	metaMu sync.Mutex
	stored meta.Store // under metaMu

	tablesMu sync.RWMutex
	tables   map[string]*Table

	holds      *holds
	budget     *budget.Budget
	spare      atomic.Int64 // bytes that may be written before the disk is asked how much is free
	background *background
}

// Recovery tells what opening the store found in its log, and what a writer did about it.
type Recovery struct {
	Clean        bool   // the log ended as Close leaves it
	Frames       int64  // log frames read
	Batches      int64  // write batches replayed
	TornBytes    int64  // bytes of an unfinished write at the end of the log
	TornFile     string // where a writer kept them, within the store's directory; empty for a reader
	RepairedBits int64  // single bits put right

	// What a writer cleared away of blocks that no commit named, or that one had dropped. Zero for
	// a reader.
	StrayContainers int   // files that were removed
	CutBytes        int64 // behind the last named block of a container
	Reclaimed       int   // dropped blocks whose space was given back
}

// Open opens the store in dir, or makes one there: an empty directory is formatted, a missing one
// is made if its parent is there.
//
// A store that was killed is recovered: every batch that was acknowledged as durable is there,
// whole. Recovery tells what was found.
//
// Errors: ErrNotStore (something else lies there, or, with ErrorIfMissing or ReadOnly, nothing),
// ErrLocked, ErrCorrupt, ErrUnsupported (a newer format), ErrExists, and those of the file system.
// A failed Open changes nothing, save that a writer makes a missing directory, writes LOCK, and
// begins an unfinished format again.
func Open(dir string, o *Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := &Store{opts: o.filled(), tables: map[string]*Table{}, holds: newHolds(), idle: make(chan struct{}, 1)}
	s.dir = resolve(s.opts.FS, dir)
	s.clock = s.opts.Clock
	s.budget = budget.New(s.opts.MemoryLimit)
	s.cache = cache.New(s.opts.MemoryLimit / 4)
	if err := s.open(); err != nil {
		s.abandon()
		if !errors.Is(err, fault.ErrNotStore) && (errors.Is(err, vfs.ErrNotRegular) || errors.Is(err, syscall.ENOTDIR)) {
			err = fmt.Errorf("%w: %w", err, fault.ErrCorrupt)
		}
		return nil, fmt.Errorf("oribi: %s: %w", dir, err)
	}
	if !s.opts.ReadOnly {
		s.background = startBackground(s)
	}
	return s, nil
}

// resolve is the directory that dir is, where it is a symbolic link: file systems are asked about
// names without following links, and shall find a directory. One that leads nowhere is left for
// others to complain about.
func resolve(fsys vfs.FS, dir string) string {
	if info, err := fsys.Stat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if there, err := filepath.EvalSymlinks(dir); err == nil {
			return there
		}
	}
	return dir
}

// abandon gives back what a failed open holds.
func (s *Store) abandon() {
	for _, t := range s.tables {
		t.tab.Close()
	}
	if s.log != nil {
		s.log.Poison(errors.New("the store was not opened to its end")) // Close would seal it
		s.log.Close()
	}
	if s.blocks != nil {
		s.blocks.Close()
	}
	if s.lock != nil {
		s.lock.Close()
	}
}

// open does the steps of opening, in their order: lock, format if need be, metadata against the
// anchor, rowsets, log, and for a writer repair.
func (s *Store) open() error {
	fresh, err := s.prepare()
	if err != nil {
		return err
	}
	b, err := readFile(s.opts.FS, s.path(instanceName), 4096)
	if err != nil {
		return err
	}
	if s.instance, err = decodeInstance(b); err != nil {
		return err
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
		return s.checkUnlocked()
	}
	var failed error // of the blocks, not of the log
	s.log, err = tail.Repair(func() error {
		failed = s.blocks.Writable()
		return failed
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	r, mended := &s.recovery, s.blocks.Repaired()
	if r.TornBytes > 0 {
		r.TornFile = walName + "/" + wal.TornName(tail.Report().TornFile)
	}
	r.StrayContainers, r.CutBytes, r.Reclaimed = mended.Strays, mended.CutBytes, mended.Reclaimed
	if !fresh && (!r.Clean || r.RepairedBits > 0) {
		s.opts.Logger.Info("store recovered", slog.Int64("batches", r.Batches), slog.Int64("torn_bytes", r.TornBytes),
			slog.String("torn_file", r.TornFile), slog.Int64("repaired_bits", r.RepairedBits), slog.Int("stray_containers", r.StrayContainers),
			slog.Int64("cut_bytes", r.CutBytes), slog.Int("reclaimed_blocks", r.Reclaimed))
	}
	return s.log.Release(wal.LSN(s.blocks.ConfirmedLogStart()))
}

// prepare makes sure that dir holds a store and takes its lock; fresh tells that it was made just
// now.
func (s *Store) prepare() (fresh bool, err error) {
	fsys := s.opts.FS
	state, err := inspect(fsys, s.dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return false, fmt.Errorf("%w (%w)", err, fault.ErrNotStore)
	}
	mayFormat := !s.opts.ReadOnly && !s.opts.ErrorIfMissing
	switch {
	case missing && !mayFormat:
		return false, fmt.Errorf("no such directory: %w", fault.ErrNotStore)
	case missing:
		if err := fsys.Mkdir(s.dir); err != nil {
			return false, err
		}
	case state == dirForeign:
		return false, fmt.Errorf("the directory holds something else: %w", fault.ErrNotStore)
	case state == dirStore && s.opts.ErrorIfExists:
		return false, fmt.Errorf("store: %w", fault.ErrExists)
	case state == dirEmpty && !mayFormat:
		return false, fmt.Errorf("the directory is empty: %w", fault.ErrNotStore)
	case state == dirUnfinished && !mayFormat:
		return false, fmt.Errorf("the store was not made to its end: %w", fault.ErrNotStore)
	}
	if err := s.takeLock(); err != nil {
		return false, err
	}
	// Another process may have made the store between the look and the lock.
	if state, err = inspect(fsys, s.dir); err != nil {
		return false, err
	}
	switch state {
	case dirStore:
		if s.opts.ErrorIfExists {
			return false, fmt.Errorf("store: %w", fault.ErrExists)
		}
		if s.opts.ReadOnly {
			return false, nil
		}
		return false, removeAll(fsys, s.path(formattingName))
	case dirForeign:
		return false, fmt.Errorf("the directory holds something else: %w", fault.ErrNotStore)
	}
	if !mayFormat {
		return false, fmt.Errorf("the store was not made to its end: %w", fault.ErrNotStore)
	}
	return true, s.format()
}

func (s *Store) takeLock() error {
	lock, err := s.opts.FS.Lock(s.path(lockName), !s.opts.ReadOnly)
	if s.opts.ReadOnly && errors.Is(err, fs.ErrNotExist) {
		return nil // a copy made without LOCK, which a reader cannot make; see checkUnlocked
	}
	if errors.Is(err, fault.ErrLocked) {
		return fmt.Errorf("%w%s", err, s.lastWriter())
	}
	if err != nil {
		return err
	}
	s.lock = lock
	if s.opts.ReadOnly {
		return nil
	}
	return lock.Write(fmt.Appendf(nil, "pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339)))
}

// lastWriter is what LOCK says of who last opened the store for writing, for a message: that writer
// holds the lock, unless readers do.
func (s *Store) lastWriter() string {
	b, err := readFile(s.opts.FS, s.path(lockName), 128)
	var pid int
	var since string
	if _, bad := fmt.Sscanf(string(b), "pid %d since %s\n", &pid, &since); err != nil || bad != nil {
		return ""
	}
	if _, err := time.Parse(time.RFC3339, since); err != nil {
		return ""
	}
	return fmt.Sprintf(" (its last writer is process %d, since %s)", pid, since)
}

// checkUnlocked is for a reader that found no LOCK and so holds none. A store that somebody may
// write to has one, since a writer makes it before anything else: if there is one now, what was
// just read may be half before and half after its writing. A writer that comes later cannot make a
// read answer wrongly: ranges that held committed blocks are never written again, only punched, and
// what was punched fails its checksum.
func (s *Store) checkUnlocked() error {
	if s.lock != nil {
		return nil
	}
	names, err := s.opts.FS.List(s.dir)
	if err == nil && slices.Contains(names, lockName) {
		err = fmt.Errorf("a writer came while the store was opened without %s: %w", lockName, fault.ErrLocked)
	}
	return err
}

const fsBlockSize = 4096

func (s *Store) format() error {
	history, err := historySeconds(s.opts.History)
	if err != nil {
		return err
	}
	// The directory's own name has to be durable before anything in it is worth keeping; whoever
	// made it, now or before a crash, may not have seen to that. In a parent that cannot be read it
	// was somebody else.
	if err := s.opts.FS.SyncDir(filepath.Dir(s.dir)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	s.instance = &instance{blockSize: fsBlockSize, created: time.Now().UnixMicro()}
	return format(s.opts.FS, s.dir, s.instance, func() error {
		if err := s.opts.FS.Mkdir(s.path(walName)); err != nil {
			return err
		}
		if err := wal.Create(s.logOptions(), 1); err != nil {
			return err
		}
		if err := s.opts.FS.SyncDir(s.dir); err != nil {
			return err
		}
		row := meta.Store{DefaultHistorySec: history, NextTable: 1}
		return blockmanager.Format(s.blockOptions(), []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}, 1)
	})
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Store) blockOptions() blockmanager.Options {
	return blockmanager.Options{FS: s.opts.FS, Dir: s.dir, Instance: s.instance.id, ReadOnly: s.opts.ReadOnly,
		BlockSize: s.instance.blockSize, Logger: s.opts.Logger}
}

func (s *Store) logOptions() wal.Options {
	return wal.Options{FS: s.opts.FS, Dir: s.path(walName), Instance: s.instance.id, Logger: s.opts.Logger, Durable: s.durable,
		SegmentBytes: s.opts.LogSegmentBytes}
}

// loadTables makes the tables of the metadata rows.
func (s *Store) loadTables() error {
	var rows []*meta.Table
	found := false
	err := s.blocks.Rows(meta.StoreKey(), func(_, value []byte) error {
		row, err := meta.DecodeStore(value)
		if err == nil {
			s.stored, found = *row, true
		}
		return err
	})
	if err != nil {
		return err
	}
	if !found {
		return fault.Corruptf("metadata: no row of the store")
	}
	if h, _ := historySeconds(s.opts.History); s.opts.History != defaultHistory && h != s.stored.DefaultHistorySec {
		s.opts.Logger.Warn("Options.History is ignored: the store has its own", slog.Int64("seconds", s.stored.DefaultHistorySec))
	}
	err = s.blocks.Rows(meta.TablePrefix(), func(_, value []byte) error {
		row, err := meta.DecodeTable(value)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := s.loadTable(row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadTable(row *meta.Table) error {
	var sets []*meta.RowSet
	err := s.blocks.Rows(meta.RowSetPrefix(row.Number), func(_, value []byte) error {
		set, err := meta.DecodeRowSet(value)
		if err == nil && set.ID >= row.NextRowSetID {
			return fault.Corruptf("metadata: table %q: rowset %d, want less than %d", row.Name, set.ID, row.NextRowSetID)
		}
		sets = append(sets, set)
		return err
	})
	if err != nil {
		return err
	}
	if s.tables[row.Name] != nil {
		return fault.Corruptf("metadata: table %q stands twice", row.Name)
	}
	tab, err := tablet.Open(s.tabletOptions(), row, sets)
	if err != nil {
		return err
	}
	s.tables[row.Name] = &Table{s, tab}
	return nil
}

func (s *Store) tabletOptions() tablet.Options {
	return tablet.Options{
		Store:       tabletStore{s},
		RowSets:     rowset.Options{Blocks: openBlocks{s.blocks}, Cache: s.cache, Grow: s.budget.Grower(budget.Delta)},
		GrowMem:     s.budget.Grower(budget.MemRowSet),
		TargetBytes: s.opts.RowSetBytes,
		Logger:      s.opts.Logger,
		Progress:    s.opts.Progress,
	}
}

// openBlocks gives the block manager the shape that rowsets ask for.
type openBlocks struct{ m *blockmanager.Manager }

func (o openBlocks) OpenBlock(id blockID) (rowset.Block, error) { return o.m.OpenBlock(id) }

// Recovery tells what opening the store found.
func (s *Store) Recovery() Recovery { return s.recovery }

// enter begins a call; leave ends it.
func (s *Store) enter() error {
	s.running.Add(1)
	if s.closed.Load() {
		s.leave()
		return fault.ErrClosed
	}
	return nil
}

func (s *Store) leave() {
	if s.running.Add(-1) == 0 && s.closed.Load() {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}

// enterWriting is enter for calls that write.
func (s *Store) enterWriting() error {
	if s.opts.ReadOnly {
		return fault.ErrReadOnly
	}
	if err := s.enter(); err != nil {
		return err
	}
	if err := s.Poisoned(); err != nil {
		s.leave()
		return err
	}
	return nil
}

// Poisoned is the error that made the store read-only, wrapped by ErrPoisoned; nil while all is
// well.
func (s *Store) Poisoned() error {
	if s.log != nil {
		if err := s.log.Poisoned(); err != nil {
			return err
		}
	}
	return s.blocks.Poisoned()
}

// durable is told by the log.
func (s *Store) durable(upTo wal.LSN) { s.pub.Durable(uint64(upTo)) }

// poison makes the store read-only for good. The first cause wins.
func (s *Store) poison(cause error) {
	s.opts.Logger.Error("store is read-only from here on", slog.Any("cause", cause))
	s.log.Poison(cause)
	s.blocks.Poison(cause)
	s.pub.Poison(cause)
}

// replayLimit is how much log Close leaves for the next open to replay.
const replayLimit = 16 << 20

// Close waits for running calls, makes everything durable and releases the directory. Further calls
// get ErrClosed, open iterators at their next step. It may be called twice.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.background != nil {
		s.background.stop()
	}
	for s.running.Load() > 0 {
		<-s.idle
	}
	var errs []error
	if !s.opts.ReadOnly && s.Poisoned() == nil && s.log.Bytes() > replayLimit {
		errs = append(errs, s.flushAll(context.Background()))
	}
	if s.log != nil {
		errs = append(errs, s.keepEnds(), s.trimLog(), s.log.Close())
	}
	for _, t := range s.tables {
		t.tab.Close()
	}
	errs = append(errs, s.blocks.Close())
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	s.pub.Close()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("oribi: %s: close: %w", s.dir, err)
	}
	return nil
}

// trimAbove is how much log Close leaves although nothing of it would be replayed: reading that
// much costs the next open less than a new segment costs Close.
const trimAbove = 1 << 20

// trimLog begins a new segment and lets the others go if the files hold all that the log holds: the
// next open would read, and a writer write again, a segment for nothing.
func (s *Store) trimLog() error {
	if s.Poisoned() != nil || s.log.Bytes() <= trimAbove {
		return nil
	}
	err := s.blocks.Confirm()
	if err == nil && wal.LSN(s.blocks.ConfirmedLogStart()) >= s.log.Next() {
		if err = s.log.Roll(); err == nil {
			err = s.log.Release(wal.LSN(s.blocks.ConfirmedLogStart()))
		}
	}
	if isNoSpace(err) {
		return nil // it is for speed alone
	}
	return err
}

// flushAll flushes every table.
func (s *Store) flushAll(ctx context.Context) error {
	for _, t := range s.sortedTables() {
		if _, err := t.tab.Flush(ctx); err != nil && !errors.Is(err, fault.ErrNotFound) {
			return err
		}
	}
	return nil
}

func (s *Store) sortedTables() []*Table {
	s.tablesMu.RLock()
	defer s.tablesMu.RUnlock()
	out := make([]*Table, 0, len(s.tables))
	for _, t := range s.tables {
		out = append(out, t)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].tab.Name < out[j].tab.Name })
	return out
}

// tabletStore is the store as its tablets see it.
type tabletStore struct{ s *Store }

func (ts tabletStore) LastLSN() uint64 { return ts.s.lastLSN.Load() }

func (ts tabletStore) NewCreation() *blockmanager.Creation { return ts.s.blocks.NewCreation() }

// Settle makes the log durable up to lsn and waits until all of it is published.
func (ts tabletStore) Settle(ctx context.Context, lsn uint64) error {
	s := ts.s
	if err := s.log.Sync(wal.LSN(lsn)); err != nil {
		s.poison(err)
		return err
	}
	return s.pub.WaitLSN(ctx, lsn)
}

func (ts tabletStore) Visible() mvcc.Timestamp { return ts.s.pub.Visible() }

// Mark appends an empty batch. Its record keeps the timestamp from coming again for as long as the
// metadata does not.
func (ts tabletStore) Mark() (at mvcc.Timestamp, lsn uint64, publish func(), err error) {
	s := ts.s
	var rec change.RecordWriter
	rec.Begin(0)
	at, lsn, op, err := s.append(&rec, true)
	if err != nil {
		return 0, 0, nil, err
	}
	if err := s.log.Sync(wal.LSN(lsn)); err != nil {
		s.poison(err)
		op.Ready()
		return 0, 0, nil, err
	}
	return at, lsn, op.Ready, nil
}

// HistoryFloor is now less the retention, or what a snapshot or a running read holds below that;
// Min when history is kept for ever, or when the clock does not tell time; but never below the
// floor that the table has, which a longer retention does not lower. Reads of the table below it
// are refused from here on.
func (ts tabletStore) HistoryFloor(t *tablet.Tablet, historySec int64) mvcc.Timestamp {
	s := ts.s
	floor := historyFloor(s.clock, historySec)
	if s.pub.FirstUnpublished() <= s.lastLSN.Load() {
		floor = min(floor, s.pub.Visible()) // reads of the newest state are not to see what is on its way
	}
	return max(s.holds.choose(t.Number, floor), t.Row().HistoryFloor)
}

// historyFloor is where history begins by its age.
func historyFloor(c mvcc.Clock, historySec int64) mvcc.Timestamp {
	if historySec < 0 || !c.Physical() {
		return mvcc.Min
	}
	return mvcc.FromTime(c.Now().Time().Add(-time.Duration(historySec) * time.Second))
}

func (ts tabletStore) Event(e compaction.Event) {
	ts.s.opts.Logger.Debug("compaction", slog.String("kind", string(e.Kind)), slog.String("table", e.Table),
		slog.Int64("bytes", e.BytesWritten), slog.Duration("took", e.Duration), slog.Any("err", e.Err))
	if ts.s.opts.Listener != nil {
		ts.s.opts.Listener(e)
	}
}

// CommitMeta adds to edit what every metadata commit carries, commits it, installs it in memory, and
// lets go of log that the confirmed metadata no longer needs.
//
// log_start is found in this order, so that no operation slips through: first the first unpublished
// LSN, then what the memory stores hold. An operation that is not in a store when that is asked was
// not applied, so not published, so its LSN is not below the first.
func (ts tabletStore) CommitMeta(t *tablet.Tablet, edit blockmanager.Edit, first func() uint64, install func() error) error {
	s := ts.s
	s.metaMu.Lock()
	defer s.metaMu.Unlock()
	start := s.pub.FirstUnpublished()
	for _, other := range s.sortedTables() {
		if other.tab != t {
			start = min(start, other.tab.FirstLSN())
		}
	}
	if t != nil {
		start = min(start, first())
	}
	edit.LogStart = start
	// The log has to reach up to log_start: LSNs below it that a power cut took would be given
	// again, to batches that replay passes over.
	if err := s.log.Sync(wal.LSN(start - 1)); err != nil {
		s.poison(err)
		return err
	}
	row := s.stored
	row.ClockHigh = max(row.ClockHigh, s.pub.Visible())
	row.LogEnd = max(row.LogEnd, uint64(s.log.Durable()))
	edit.Put = append(edit.Put, blockmanager.Row{Key: meta.StoreKey(), Value: row.Encode()})
	if err := s.blocks.Commit(edit); err != nil {
		if !isNoSpace(err) {
			s.poison(err)
		}
		return err
	}
	s.stored = row
	if err := install(); err != nil {
		s.poison(err)
		return err
	}
	return s.log.Release(wal.LSN(s.blocks.ConfirmedLogStart()))
}

// promise keeps later batches above ts, after the next open too. In this process the clock does.
func (s *Store) promise(ts mvcc.Timestamp) {
	for old := s.promised.Load(); uint64(ts) > old; old = s.promised.Load() {
		if s.promised.CompareAndSwap(old, uint64(ts)) {
			return
		}
	}
}

// keepEnds writes down how far the log and the clock came, if the next open would not find that:
// the highest timestamp that was promised, and the last LSN. Without the latter a log that ends
// early, or is put back to what it was before, would be taken for one that was killed.
func (s *Store) keepEnds() error {
	if s.Poisoned() != nil {
		return nil
	}
	promised := s.promised.Load() > uint64(max(s.pub.Visible(), s.stored.ClockHigh))
	last := s.lastLSN.Load()
	if !promised && last <= s.stored.LogEnd {
		return nil
	}
	if err := s.log.Sync(wal.LSN(last)); err != nil {
		s.poison(err)
		return err
	}
	row := s.stored
	row.LogEnd = max(row.LogEnd, last)
	if promised {
		row.ClockHigh = mvcc.Timestamp(s.promised.Load())
	}
	err := s.commitTables(blockmanager.Edit{Put: []blockmanager.Row{{Key: meta.StoreKey(), Value: row.Encode()}}}, row)
	if isNoSpace(err) && !promised {
		return nil // nothing is lost without it
	}
	return err
}

func isNoSpace(err error) bool { return errors.Is(err, fault.ErrNoSpace) }
