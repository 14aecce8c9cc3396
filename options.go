package oribi

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/meta"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/storeinfo"
	"github.com/oribi-db/oribi/vfs"
)

// HistoryForever keeps every version of every row.
const HistoryForever = time.Duration(-1)

const (
	defaultHistory     = 7 * 24 * time.Hour
	defaultMemoryLimit = 256 << 20
	minMemoryLimit     = 16 << 20
	maxFlushBytes      = 64 << 20
	maxLogBytes        = 128 << 20 // see store.Core.LogTarget
	defaultCellBytes   = 64 << 10
	minSegmentBytes    = 4 << 10
	maxSegmentBytes    = 1 << 30
	minWorkers         = 2

	defaultRecompressAfter = 24 * time.Hour
	defaultFollowerLag     = 10 * time.Minute
)

// Options configure Open. A nil *Options and zero fields mean the defaults. Open copies them.
//
// The store keeps 16 MiB of its disk free: it refuses rows with ErrNoSpace if less would be left,
// so that deletes, drops and compactions still have room.
type Options struct {
	// ReadOnly opens the store without writing a byte, also on a read-only mount. Any number of
	// readers may share a store. The log is replayed into memory. The store must exist.
	ReadOnly bool
	// Follow opens the store read-only next to a writer, in this process or another, or without
	// one. It takes no lock, so a writer can come at any time. The follower sees one state of all
	// tables: the write batches that were completely in the log when Open read it, in their order,
	// and no later one. A batch is there when its Commit has returned, if it was committed before
	// Open was called.
	//
	// The writer never waits for a follower, but keeps for it what flushes and compactions have
	// dropped, for the writer's FollowerLag. For that, a follower writes a file in readers/, and
	// removes it at Close; the file of a killed process has no effect. If the follower cannot write
	// there, or is behind by more, a read that needs a dropped block returns ErrTooOld, never a
	// wrong answer: Refresh, or open the store again. A read of the newest state that has returned
	// nothing yet does that itself. If the store changes faster than it can be read, Open and
	// Refresh return ErrLocked.
	//
	// A read AsOf a time after the newest write batch waits until the writer has confirmed that no
	// batch comes before that time, for a second at most; then it is ErrFuture. Without a writer it
	// does not wait.
	// Where open files cannot be removed, on Windows, Follow has the effect of ReadOnly.
	Follow bool
	// ErrorIfMissing makes Open fail if the directory contains no store, instead of creating one.
	ErrorIfMissing bool
	// ErrorIfExists makes Open fail if the directory contains a store.
	ErrorIfExists bool

	// MemoryLimit bounds the memory of the store, in bytes: rows not yet flushed, cache, compaction
	// buffers, transactions, metadata. Default 256 MiB, at least 16 MiB.
	//
	// Garbage is bounded too: the store runs the garbage collector when the heap of the program has
	// MemoryLimit and 48 MiB, the gaps between objects included, plus what the program needs itself
	// with the garbage that GOGC allows.
	// So a program that needs little memory itself takes up to MemoryLimit and 128 MiB; tables of
	// hundreds of columns need a limit of 256 MiB or more for that. Open scans are not limited: one
	// of a wide table takes up to 16 MiB for each rowset that it reads at a time. GOMEMLIMIT applies
	// as well if it is less; with GOGC=off the program's collections are its own matter, and the
	// store runs none.
	//
	// The cache takes what rows, changes and compactions leave of half of MemoryLimit, and of three
	// quarters if GOMEMLIMIT or debug.SetMemoryLimit was set when the store was opened; a quarter at
	// least, or an eighth during compactions of wide tables.
	MemoryLimit int64
	// ReadAheadBytes makes Open read all files of tables before it returns, if they have at most so
	// many bytes, so that the first reads find them in the system's memory. That takes as long as
	// reading a file of their size from one end to the other. It fills no memory of the store. An
	// error is logged; reads that meet it return it. Default 0: nothing is read ahead.
	ReadAheadBytes int64
	// CellLimit bounds one cell, in bytes. Default 64 KiB, at most 4 MiB.
	CellLimit int

	// History is how long old versions are kept in tables that are created without a History
	// option. It is stored when the store is created; later values are ignored. Default 7 days; at
	// least one second, or HistoryForever.
	History time.Duration

	// Clock assigns timestamps. Default: a hybrid clock on the machine's time; reads then refuse a
	// timestamp that looks like a Unix time (see AsOf).
	Clock mvcc.Clock
	// Logger receives messages on recovery and background work. Default: nothing is logged.
	Logger *slog.Logger
	// Listener is called when a flush, compaction or ingest begins and after it has ended, and when
	// a writer begins and ends to wait for memory (compaction.Stall). Each has two events with one
	// number, the first with Event.Begin set. Calls may be concurrent; calls of one number are
	// not, and those at the ends of jobs of one table are one after another, in the order of the
	// commits, in the goroutine that did the job or a concurrent job.
	//
	// At the end of a job or a wait no lock is held: Listener may use the store in any way except
	// Close, which waits for it. With Event.Begin the job or the writer waits for Listener, which
	// may read, but must not write, flush or compact: it would wait for the job. Default: none.
	Listener func(Event)
	// Progress is called periodically with the number of rows that a flush or a merging compaction
	// has read so far. It runs in the goroutine that does the work, and must be quick and must not
	// use the store. Jobs of different tables run concurrently, and so do a flush and merges of one
	// table. Default: none.
	Progress func(table string, rows, of int64)

	// Manual leaves flushes and compactions to the caller, except for flushes that the memory limit
	// forces. Store.StepBackgroundWork carries out the operations that are due.
	Manual bool
	// Schedule chooses which background operation starts next, for experiments and tests: it
	// returns an index in ops, which is not empty, or a negative number to start none now. It is
	// called in any goroutine, one call at a time, with a lock held: it must be quick and must not
	// use the store. Default: what docs/compaction.md describes.
	Schedule func(ops []BackgroundOp) int
	// Policy chooses what to merge in the background. compaction.Named lists the policies.
	// Default: compaction.Overlap{}.
	Policy compaction.Policy
	// MaintenanceWorkers is the number of flushes, compactions and other background operations that
	// run at once. One of them only flushes and removes log, so that a long compaction of one table
	// does not delay the flush of another. At least 2. Default: 2, and where Go uses more than two
	// processors one more for merges that are late, as docs/compaction.md describes.
	MaintenanceWorkers int
	// CompactionBandwidth is how many bytes per second merges and delta compactions write, those by
	// call included. Flushes are not limited, and compactions are not while memory or the log is
	// over its limit. Default: no limit.
	CompactionBandwidth int64
	// RecompressAfter is the age at which background work rewrites a rowset to take less space, as
	// Table.Recompress does: the time since its rows or changes were last written by a flush or
	// compaction. Default: one day. A negative age disables it, and so does a Clock that is not a
	// physical one.
	RecompressAfter time.Duration
	// FlushBytes is the size at which a MemRowSet is flushed. Default: 64 MiB, or a quarter of
	// MemoryLimit if that is less.
	FlushBytes int64
	// RowSetBytes is the size at which a flush or compaction starts a new rowset. Default 32 MiB.
	RowSetBytes int64

	// LogSegmentBytes is the size at which a file of the log is closed and the next one created,
	// which costs some syncs. A file is removed when nothing in it would be replayed. Default 32
	// MiB, at least 4 KiB, at most 1 GiB.
	LogSegmentBytes int64

	// FollowerLag bounds how long the store keeps the space of dropped blocks, and log, because a
	// follower (Options.Follow) may still read them. A follower that is behind by more gets
	// ErrTooOld. The bound is lower if less than 1 GiB of the disk is free, and zero below 64 MiB.
	// Log is kept up to 128 MiB. Default 10 minutes. With a negative value nothing is kept.
	FollowerLag time.Duration

	// FS is the file system. Default: the real one.
	FS vfs.FS

	logLimit int64 // maxLogBytes; less in a test
}

// Event describes one flush, compaction or ingest. See package compaction.
type Event = compaction.Event

// Validate reports everything that is wrong with o.
func (o *Options) Validate() error {
	if o == nil {
		return nil
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.MemoryLimit != 0 && o.MemoryLimit < minMemoryLimit {
		bad("MemoryLimit is %d bytes, want at least %d", o.MemoryLimit, minMemoryLimit)
	}
	if o.CellLimit < 0 || o.CellLimit > bind.MaxCellBytes {
		bad("CellLimit is %d bytes, want at most %d", o.CellLimit, bind.MaxCellBytes)
	}
	if _, err := historySeconds(o.History); o.History != 0 && err != nil {
		bad("%v", err)
	}
	if o.FlushBytes < 0 || o.RowSetBytes < 0 || o.ReadAheadBytes < 0 {
		bad("FlushBytes, RowSetBytes and ReadAheadBytes cannot be negative")
	}
	if o.CompactionBandwidth < 0 {
		bad("CompactionBandwidth is %d, want bytes per second", o.CompactionBandwidth)
	}
	if n := o.MaintenanceWorkers; n != 0 && n < minWorkers {
		bad("MaintenanceWorkers is %d, want at least %d", n, minWorkers)
	}
	if n := o.LogSegmentBytes; n != 0 && (n < minSegmentBytes || n > maxSegmentBytes) {
		bad("LogSegmentBytes is %d, want %d to %d", n, minSegmentBytes, maxSegmentBytes)
	}
	if o.Policy != nil {
		if err := compaction.Validate(o.Policy); err != nil {
			bad("Policy: %w", err)
		}
	}
	if (o.ReadOnly || o.Follow) && o.ErrorIfExists {
		bad("ReadOnly, or Follow, and ErrorIfExists exclude one another")
	}
	return callErr("options", errors.Join(errs...))
}

// historySeconds returns a retention as it is stored: whole seconds, −1 for HistoryForever.
func historySeconds(d time.Duration) (int64, error) {
	switch {
	case d == HistoryForever:
		return meta.KeepForever, nil
	case d < time.Second:
		return 0, fmt.Errorf("a history of %v: want at least one second, or HistoryForever", d)
	}
	return int64(d / time.Second), nil
}

// filled returns a private copy with the defaults filled in.
func (o *Options) filled() Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.ReadOnly = c.ReadOnly || c.Follow
	if runtime.GOOS == "windows" { // the writer could not remove files that the follower has open
		c.Follow = false
	}
	set := func(v *int64, def int64) {
		if *v == 0 {
			*v = def
		}
	}
	set(&c.MemoryLimit, defaultMemoryLimit)
	set(&c.logLimit, maxLogBytes)
	set(&c.FlushBytes, min(maxFlushBytes, c.MemoryLimit/4))
	if c.CellLimit == 0 {
		c.CellLimit = defaultCellBytes
	}
	if c.History == 0 {
		c.History = defaultHistory
	}
	if c.FollowerLag == 0 {
		c.FollowerLag = defaultFollowerLag
	}
	if c.RecompressAfter == 0 {
		c.RecompressAfter = defaultRecompressAfter
	}
	if c.Clock == nil {
		c.Clock = defaultClock{mvcc.NewHybridClock(nil)}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Policy == nil {
		c.Policy = compaction.Overlap{}
	}
	if c.FS == nil {
		c.FS = vfs.OS
	}
	return c
}

// defaultClock is the clock of a store that was opened without one.
type defaultClock struct{ *mvcc.HybridClock }

// BackgroundOp describes an operation of background work: what it would free, gain, and cost.
type BackgroundOp = storeinfo.BackgroundOp
