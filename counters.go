package oribi

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/metrics"
)

// counters contains the counters of an open store, for Metrics.
type counters struct {
	opened time.Time

	gets    metrics.Counter
	getTime *metrics.Histogram // of one in getSample calls
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
	jobs []JobMetrics // in the order of jobKinds
}

// jobKinds are the kinds of jobs, in the order of Metrics.Jobs.
var jobKinds = []compaction.Kind{compaction.Flush, compaction.DeltaFlush, compaction.Merge, compaction.MinorDelta,
	compaction.MajorDelta, compaction.Recompress, compaction.UndoGC, compaction.Ingest}

// getSample is of how many calls of Get one is timed: reading the clock twice takes longer than all
// else that is counted.
const getSample = 32

func newCounters() *counters {
	c := &counters{opened: time.Now(), getTime: metrics.NewHistogram(), getMany: metrics.NewHistogram(),
		scans: metrics.NewHistogram()}
	for i := range c.commits {
		c.commits[i] = metrics.NewHistogram()
	}
	for _, kind := range jobKinds {
		c.jobs = append(c.jobs, JobMetrics{Kind: kind})
	}
	return c
}

// now returns the time since the store was opened, from the monotonic clock alone: it takes half
// the time of time.Now.
func (c *counters) now() time.Duration { return time.Since(c.opened) }

// beginGet counts a Get. It returns when the call began if it is to be timed, else 0.
func (c *counters) beginGet() time.Duration {
	if c.gets.Add(1)%getSample != 0 {
		return 0
	}
	return c.now()
}

// gotMany counts a GetMany of n keys that began at begin and has succeeded.
func (c *counters) gotMany(begin time.Duration, n int) {
	c.keys.Add(int64(n))
	c.getMany.Record(c.now() - begin)
}

// committed counts a write batch whose commit began at begin and has succeeded.
func (c *counters) committed(begin time.Duration, rows int, bytes int64, sync bool) {
	i := 0
	if sync {
		i = 1
	}
	c.rows.Add(int64(rows))
	c.bytes.Add(bytes)
	c.commits[i].Record(c.now() - begin)
}

// job counts an event of a job.
func (c *counters) job(e *Event) {
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
