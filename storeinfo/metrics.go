package storeinfo

import (
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
)

// Metrics describes what a store has done since it was opened, and what it uses now. Its figures
// are read one after the other: with concurrent calls they may be from slightly different times.
// WriteTo writes them in the text format of Prometheus.
type Metrics struct {
	Uptime time.Duration // since the store was opened

	Jobs        []JobMetrics // by kind: each kind once, always in the same order
	Maintenance MaintenanceMetrics

	Log    LogMetrics
	Memory MemoryMetrics
	Cache  CacheMetrics
	Disk   Sizes

	// ReadAmplification is the number of rowsets over a key: the depth of each table, as
	// compaction.Spans computes it from the bounds and sizes of its rowsets, averaged over all
	// tables by the bytes of their rowsets. 1 means that no rowsets overlap; 0 that there are none.
	ReadAmplification float64
	// WriteAmplification is (LogMetrics.BytesWritten + the sum of JobMetrics.BytesWritten) divided
	// by (CommitMetrics.Bytes + JobMetrics.BytesWritten of ingests). It may be below 1: files are
	// compressed. 0 if nothing was written.
	WriteAmplification float64
	// SpaceAmplification is the sum of Disk divided by the bytes of the newest rows in files: the
	// sum over all rowsets of (Bytes − RedoBytes − UndoBytes) × LiveRows / Rows, see
	// compaction.RowSetInfo. 0 if there are none.
	SpaceAmplification float64

	Stalls  StallMetrics
	Commits CommitMetrics
	Reads   ReadMetrics
	Pins    PinMetrics
	Tables  []TableMetrics // by name
}

// JobMetrics counts the jobs of one kind: flushes, compactions, ingests. See Event for what a job
// is.
type JobMetrics struct {
	Kind    compaction.Kind
	Running int64 // that have begun and whose end was not yet reported to the listener
	Done    int64 // committed
	Failed  int64 // ended with an error, also if it was canceled

	// The sums over jobs that have ended, failed ones included.
	RowsRead     int64
	RowsWritten  int64
	BytesRead    int64 // of files that were read, whole files; 0 for flushes and ingests
	BytesWritten int64 // to new files
	Duration     time.Duration
}

// MaintenanceMetrics describes background work. All is zero in a store that is opened read-only.
type MaintenanceMetrics struct {
	Workers int  // so many operations may run at once, see Options.MaintenanceWorkers
	Running int  // operations that run
	Queued  int  // operations that are due and wait for a worker or for another job, when last looked
	Paused  bool // see Store.PauseBackgroundWork

	Operations []OperationMetrics // by kind: each kind once, always in the same order
}

// OperationMetrics counts the background operations of one kind: of those of compaction.Kind that
// run in the background, which JobMetrics counts too, or one of
//
//	log-gc   the metadata is confirmed and segments of the log are removed
//	reclaim  live blocks are copied out of a container that has few of them
type OperationMetrics struct {
	Kind         string
	Running      int
	Done         int64
	Failed       int64         // without those that were canceled
	BytesWritten int64         // to new files, by those that are done
	Duration     time.Duration // of all that have ended
}

// LogMetrics describes the log. Its size is Sizes.Log.
type LogMetrics struct {
	BytesWritten int64 // of records, with their frames
	Syncs        int64 // of its files, except those at the end of a segment
}

// MemoryMetrics is the memory of a store by use, in bytes. Writers wait while Rows, Changes,
// Compactions and Transactions together are above half of Limit, and rows can be flushed.
type MemoryMetrics struct {
	Limit       int64 // Options.MemoryLimit
	Rows        int64 // not yet flushed
	Changes     int64 // of rows on disk, not yet flushed
	Compactions int64 // buffers of flushes and ingests
	Merges      int64 // of compactions; merges read a quarter of Limit together, or two rowsets each
	Scans       int64 // of goroutines of scans with Workers
	Reads       int64 // of blocks that are being read, at most a sixteenth of Limit or one block
	Cache       int64 // of cblocks, decoded chunks and rows, at most CacheMetrics.Limit

	Transactions int64 // what open transactions have read and written, at most a quarter of Limit

	// Collections is the number of garbage collections that the store has run before the runtime
	// would have, so that the process stays within its limit, see Options.MemoryLimit.
	Collections int64
}

// CacheMetrics describes the cache of cblocks, decoded chunks and rows. Its size is
// MemoryMetrics.Cache.
type CacheMetrics struct {
	Hits   int64 // lookups that found their value
	Misses int64 // lookups that did not
	Parts  int64 // reads of a part of a cblock instead of all of it, by marks in the cache
	Limit  int64 // in bytes, see Options.MemoryLimit; changes as rows in memory come and go
}

// StallMetrics describes how long writers waited because too much memory was in use.
type StallMetrics struct {
	Count    int64         // waits that have begun
	Waiting  int64         // writers that wait now
	Duration time.Duration // of the waits that have ended, added up
}

// CommitMetrics describes write batches that were committed, by Batch.Commit or by a bulk call. The
// duration of a bulk call's commit begins when its rows were read.
type CommitMetrics struct {
	Rows  int64 // that were changed
	Bytes int64 // of the write batches, as Batch.Bytes counts them

	NoSync Histogram // durations of successful commits with NoSync, waits for memory included
	Sync   Histogram // of those without
}

// GetSample is of how many calls of Get one is timed: reading the clock twice takes longer than all
// else that is counted.
const GetSample = 32

// ReadMetrics describes reads.
type ReadMetrics struct {
	Gets      int64     // calls of Get, GetCells and other reads of one row
	Get       Histogram // durations of one in 32 of these calls
	Keys      int64     // keys that calls of GetMany and GetManyCells looked up
	GetMany   Histogram // durations of these calls
	ScanBegin Histogram // durations from the begin of a scan to its first step: options, bounds, iterators
}

// PinMetrics describes what open reads and snapshots keep from being dropped.
type PinMetrics struct {
	Reads     int // open scans, cursors and other reads that pin history
	Snapshots int // open snapshots
	// Oldest is the oldest timestamp that one of them reads; 0 if there are none.
	Oldest mvcc.Timestamp

	// What was replaced or dropped and is still in use by reads that began before.
	RowSets int
	Blocks  int
	Bytes   int64 // of these blocks

	// UndoBytes is the size of undo files that are older than the history of their table and are
	// kept for open reads and snapshots only.
	UndoBytes int64
}

// TableMetrics describes a table.
type TableMetrics struct {
	Name       string
	LiveRows   int64 // at the newest state
	RowSets    int
	Bytes      int64   // of all files
	RedoBytes  int64   // the part of Bytes in redo files
	UndoBytes  int64   // the part of Bytes in undo files
	MemBytes   int64   // rows not yet flushed
	DeltaBytes int64   // changes in memory of rows on disk
	Depth      float64 // rowsets over a key; see Metrics.ReadAmplification
}
