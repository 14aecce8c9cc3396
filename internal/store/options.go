package store

import (
	"log/slog"
	"runtime"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/storeinfo"
	"github.com/oribi-db/oribi/vfs"
)

// Options are the options of a store, checked and with defaults filled in.
type Options struct {
	FS       vfs.FS
	Clock    mvcc.Clock
	Logger   *slog.Logger
	ReadOnly bool
	Follow   bool // implies ReadOnly

	ErrorIfMissing bool
	ErrorIfExists  bool
	HistorySec     int64 // stored when the store is created, as in meta.Store
	HistoryChosen  bool  // HistorySec is not a default: Open warns if the store has another

	MemoryLimit         int64
	ReadAheadBytes      int64
	RowSetBytes         int64
	LogSegmentBytes     int64
	LogLimit            int64 // see LogTarget
	CompactionBandwidth int64 // bytes per second; 0 = no limit
	RecompressAfter     time.Duration
	FollowerLag         time.Duration
	Background          BackgroundOptions

	Progress func(table string, rows, of int64)
	Listener func(compaction.Event)

	// Face returns the handle with which package oribi hands out a table.
	Face func(*Table) any
}

// BackgroundOptions are the options of background work.
type BackgroundOptions struct {
	Manual     bool // only the metadata is confirmed, once a second
	Workers    int  // operations that run at once, at least 2; 0 = 2, and late merges have one more, see spare
	FlushBytes int64
	Policy     compaction.Policy
	// Schedule, unless it is nil, chooses one of the operations that may start next: it returns its
	// index, or a negative number for none.
	Schedule func([]storeinfo.BackgroundOp) int
}

const (
	leastWorkers = 2
	// spareProcessors is the number of processors from which on there is a spare worker: with fewer, it would
	// slow down writers and reads.
	spareProcessors = 3
)

func (o *BackgroundOptions) workers() int { return max(o.Workers, leastWorkers) }

// spare reports whether late merges have a worker of their own.
func (o *BackgroundOptions) spare() bool {
	return o.Workers == 0 && runtime.GOMAXPROCS(0) >= spareProcessors
}

// mostBatchBytes bounds a write batch, and what transactions have in common.
const mostBatchBytes = 256 << 20

// BatchLimit returns the bound of a write batch, which is lower in a store with little memory.
func (o *Options) BatchLimit() int64 { return min(mostBatchBytes, o.MemoryLimit/4) }
