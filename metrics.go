package oribi

import (
	"math"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/metrics"
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
	Workers int  // Options.MaintenanceWorkers: so many operations may run at once
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
	Compactions int64 // buffers of ingests
	Merges      int64 // what merges read, at most half of Limit or two rowsets each
	Scans       int64 // of goroutines of scans with Workers
	Reads       int64 // of blocks that are being read, at most a sixteenth of Limit or one block
	Cache       int64 // of cblocks, decoded chunks and rows, at most CacheMetrics.Limit

	Transactions int64 // what open transactions have read and written, at most a quarter of Limit
}

// CacheMetrics describes the cache of cblocks, decoded chunks and rows. Its size is
// MemoryMetrics.Cache.
type CacheMetrics struct {
	Hits   int64 // lookups that found their value
	Misses int64 // lookups that did not
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

// Histogram counts durations in buckets. A bucket is at most an eighth as wide as its upper bound.
type Histogram struct {
	Count int64
	Sum   time.Duration

	counts []int64 // by bucket; nil: all 0
}

func loadHistogram(h *metrics.Histogram) Histogram {
	counts, sum := h.Load()
	out := Histogram{Sum: sum, counts: counts}
	for _, n := range counts {
		out.Count += n
	}
	return out
}

// Buckets calls yield for each bucket that is not empty, in ascending order, until yield returns
// false. The bucket counts durations up to upper, inclusive, and above that of the bucket before.
// The upper bound of the last bucket, above 137 s, is math.MaxInt64. Its type is
// iter.Seq2[time.Duration, int64].
func (h Histogram) Buckets(yield func(upper time.Duration, count int64) bool) {
	for i, n := range h.counts {
		if n > 0 && !yield(metrics.Bound(i), n) {
			return
		}
	}
}

// Quantile returns a duration that at least the share q of all durations do not exceed: the upper
// bound of a bucket. q is from 0 to 1. It returns 0 if there are none.
func (h Histogram) Quantile(q float64) time.Duration {
	need := int64(math.Ceil(min(max(q, 0), 1) * float64(h.Count)))
	for i, n := range h.counts {
		if need -= n; need <= 0 && n > 0 {
			return metrics.Bound(i)
		}
	}
	return 0
}

// Metrics returns what the store has done and what it uses. It takes time in proportion to the
// number of blocks and rowsets, reads no file, and blocks no other call for longer than that.
func (s *Store) Metrics() (Metrics, error) {
	if err := s.enter(); err != nil {
		return Metrics{}, err
	}
	defer s.leave()
	c := s.counters
	m := Metrics{Uptime: c.now(), Disk: s.sizes()}
	if s.writer != nil {
		m.Log.BytesWritten, m.Log.Syncs = s.writer.Log.Written(), s.writer.Log.Syncs()
	}
	c.mu.Lock()
	m.Jobs = append(m.Jobs, c.jobs...)
	c.mu.Unlock()
	if s.background != nil {
		m.Maintenance = s.maintenanceMetrics()
	}
	used := s.core.Budget.UsedBy
	m.Memory = MemoryMetrics{Limit: s.opts.MemoryLimit, Rows: used(budget.MemRowSet), Changes: used(budget.Delta),
		Compactions: used(budget.Compaction), Merges: used(budget.Merge), Scans: used(budget.Scan),
		Reads: s.core.Reads.Used(), Cache: s.core.Cache.Used(), Transactions: used(budget.Transaction)}
	m.Cache = CacheMetrics{Limit: s.core.Cache.Limit()}
	m.Cache.Hits, m.Cache.Misses = s.core.Cache.Lookups()
	m.Stalls = StallMetrics{Count: c.stalls.Load(), Waiting: c.stalled.Load(),
		Duration: time.Duration(c.stallTime.Load())}
	m.Commits = CommitMetrics{Rows: c.rows.Load(), Bytes: c.bytes.Load(), NoSync: loadHistogram(c.commits[0]),
		Sync: loadHistogram(c.commits[1])}
	m.Reads = ReadMetrics{Gets: c.gets.Load(), Get: loadHistogram(c.getTime), Keys: c.keys.Load(),
		GetMany:   loadHistogram(c.getMany),
		ScanBegin: loadHistogram(c.scans)}
	m.Pins.Reads, m.Pins.Snapshots, m.Pins.Oldest = s.core.Pins.Count()
	pinned := s.core.Blocks.Pinned()
	m.Pins.Blocks, m.Pins.Bytes = pinned.Blocks, pinned.Bytes
	m.addTables(s.sortedTables())
	m.amplify()
	return m, nil
}

func (s *Store) maintenanceMetrics() MaintenanceMetrics {
	c := s.background.Counts()
	m := MaintenanceMetrics{Workers: s.opts.MaintenanceWorkers, Running: c.Running, Queued: c.Queued, Paused: c.Paused}
	for _, kind := range maintenance.Kinds() {
		n := c.Of(kind)
		m.Operations = append(m.Operations, OperationMetrics{Kind: string(kind), Running: n.Running, Done: n.Done,
			Failed:       n.Failed,
			BytesWritten: n.BytesWritten, Duration: n.Time})
	}
	return m
}

// addTables adds the tables, and what depends on their layouts.
func (m *Metrics) addTables(tables []*Table) {
	var covered, bytes, newest float64
	for _, t := range tables {
		layout := t.tab.Info()
		tm := TableMetrics{Name: t.Name(), LiveRows: t.tab.LiveRows(), RowSets: len(layout.RowSets)}
		tm.MemBytes, tm.DeltaBytes = t.tab.MemBytes()
		for _, span := range compaction.Spans(layout) {
			tm.Depth += span.Width()
		}
		for i := range layout.RowSets {
			r := &layout.RowSets[i]
			tm.Bytes += r.Bytes
			tm.RedoBytes += r.RedoBytes
			tm.UndoBytes += r.UndoBytes
			newest += float64(r.Bytes-r.RedoBytes-r.UndoBytes) * float64(r.LiveRows) / float64(max(r.Rows, 1))
		}
		covered += tm.Depth * float64(tm.Bytes)
		bytes += float64(tm.Bytes)
		m.Pins.RowSets += t.tab.RetiredRowSets()
		m.Pins.UndoBytes += t.store.core.Pins.UndoBytes(t.tab)
		m.Tables = append(m.Tables, tm)
	}
	m.ReadAmplification = ratio(covered, bytes)
	m.SpaceAmplification = ratio(float64(m.Disk.Live+m.Disk.Dead+m.Disk.Log+m.Disk.Metadata), newest)
}

// amplify computes WriteAmplification.
func (m *Metrics) amplify() {
	written, ingested := m.Log.BytesWritten, int64(0)
	for _, j := range m.Jobs {
		written += j.BytesWritten
		if j.Kind == compaction.Ingest {
			ingested = j.BytesWritten
		}
	}
	m.WriteAmplification = ratio(float64(written), float64(m.Commits.Bytes+ingested))
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
