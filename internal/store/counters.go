package store

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/metrics"
	"github.com/oribi-db/oribi/storeinfo"
)

// Counters contains the counters of an open store, for Store.Metrics. It is safe for concurrent
// use.
type Counters struct {
	opened time.Time

	gets    metrics.Counter
	getTime *metrics.Histogram // of one in storeinfo.GetSample calls
	keys    atomic.Int64       // of calls of GetMany
	getMany *metrics.Histogram // of these calls
	scans   *metrics.Histogram
	commits [2]*metrics.Histogram // without and with a sync

	rows  atomic.Int64 // changed by write batches
	bytes atomic.Int64 // of write batches, as Batch.Bytes counts them

	stalls    atomic.Int64 // that have begun
	stalled   atomic.Int64 // writers that wait now
	stallTime atomic.Int64 // nanoseconds, of those that have ended

	mu   sync.Mutex
	jobs []storeinfo.JobMetrics // in the order of jobKinds
}

// jobKinds are the kinds of jobs, in the order of Metrics.Jobs.
var jobKinds = []compaction.Kind{compaction.Flush, compaction.DeltaFlush, compaction.Merge, compaction.MinorDelta,
	compaction.MajorDelta, compaction.Recompress, compaction.UndoGC, compaction.Ingest}

func newCounters() *Counters {
	c := &Counters{opened: time.Now(), getTime: metrics.NewHistogram(), getMany: metrics.NewHistogram(),
		scans: metrics.NewHistogram()}
	for i := range c.commits {
		c.commits[i] = metrics.NewHistogram()
	}
	for _, kind := range jobKinds {
		c.jobs = append(c.jobs, storeinfo.JobMetrics{Kind: kind})
	}
	return c
}

// Now returns the time since the store was opened, from the monotonic clock alone: it takes half
// the time of time.Now.
func (c *Counters) Now() time.Duration { return time.Since(c.opened) }

// BeginGet counts a Get. It returns when the call began if it is to be timed, else 0.
func (c *Counters) BeginGet() time.Duration {
	if c.gets.Add(1)%storeinfo.GetSample != 0 {
		return 0
	}
	return c.Now()
}

// EndGet records a Get that has succeeded. begin is the result of BeginGet.
func (c *Counters) EndGet(begin time.Duration) {
	if begin != 0 {
		c.getTime.Record(c.Now() - begin)
	}
}

// BeganScan records how long a scan took to begin.
func (c *Counters) BeganScan(begin time.Time) { c.scans.Record(time.Since(begin)) }

// GotMany counts a GetMany of n keys that began at begin and has succeeded.
func (c *Counters) GotMany(begin time.Duration, n int) {
	c.keys.Add(int64(n))
	c.getMany.Record(c.Now() - begin)
}

// Committed counts a write batch whose commit began at begin and has succeeded.
func (c *Counters) Committed(begin time.Duration, rows int, bytes int64, sync bool) {
	i := 0
	if sync {
		i = 1
	}
	c.rows.Add(int64(rows))
	c.bytes.Add(bytes)
	c.commits[i].Record(c.Now() - begin)
}

// job counts an event of a job.
func (c *Counters) job(e *compaction.Event) {
	i := slices.Index(jobKinds, e.Kind)
	if i < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j := &c.jobs[i]
	if e.Begin {
		j.Running++
		return
	}
	j.Running--
	if e.Err != nil {
		j.Failed++
	} else {
		j.Done++
	}
	j.RowsRead += e.RowsRead
	j.RowsWritten += e.RowsWritten
	j.BytesRead += e.BytesRead
	j.BytesWritten += e.BytesWritten
	j.Duration += e.Duration
}

// jobMetrics returns the counts of each kind of job.
func (c *Counters) jobMetrics() []storeinfo.JobMetrics {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.jobs)
}
