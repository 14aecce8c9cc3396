package store

import (
	"time"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/budget"
	"github.com/oribi-db/oribi/internal/maintenance"
	"github.com/oribi-db/oribi/internal/metrics"
	"github.com/oribi-db/oribi/storeinfo"
)

// Metrics returns what the store has done and what it uses.
func (s *Store) Metrics() storeinfo.Metrics {
	c := s.Counters
	m := storeinfo.Metrics{Uptime: c.Now(), Disk: s.sizes(), Jobs: c.jobMetrics(), Memory: s.memoryMetrics(),
		Reads: c.readMetrics(), Commits: c.commitMetrics()}
	if s.Writer != nil {
		m.Log.BytesWritten, m.Log.Syncs = s.Writer.Log.Written(), s.Writer.Log.Syncs()
	}
	if s.Background != nil {
		m.Maintenance = s.Background.metrics()
	}
	m.Cache = storeinfo.CacheMetrics{Limit: s.Cache.Limit()}
	m.Memory.Collections = s.pacer.collections.Load()
	m.Cache.Hits, m.Cache.Misses = s.Cache.Lookups()
	m.Cache.Parts = s.Cache.Parts()
	m.Stalls = storeinfo.StallMetrics{Count: c.stalls.Load(), Waiting: c.stalled.Load(),
		Duration: time.Duration(c.stallTime.Load())}
	m.Pins.Reads, m.Pins.Snapshots, m.Pins.Oldest = s.Pins.Count()
	pinned := s.Blocks.Pinned()
	m.Pins.Blocks, m.Pins.Bytes = pinned.Blocks, pinned.Bytes
	s.addTables(&m)
	amplify(&m)
	return m
}

func (c *Core) memoryMetrics() storeinfo.MemoryMetrics {
	used := c.Budget.UsedBy
	return storeinfo.MemoryMetrics{Limit: c.Options.MemoryLimit, Rows: used(budget.MemRowSet),
		Changes: used(budget.Delta), Compactions: used(budget.Compaction), Merges: used(budget.Merge),
		Scans: used(budget.Scan), Reads: c.Reads.Used(), Cache: c.Cache.Used(),
		Transactions: used(budget.Transaction)}
}

func (c *Counters) commitMetrics() storeinfo.CommitMetrics {
	return storeinfo.CommitMetrics{Rows: c.rows.Load(), Bytes: c.bytes.Load(), NoSync: loadHistogram(c.commits[0]),
		Sync: loadHistogram(c.commits[1])}
}

func (c *Counters) readMetrics() storeinfo.ReadMetrics {
	return storeinfo.ReadMetrics{Gets: c.gets.Load(), Get: loadHistogram(c.getTime), Keys: c.keys.Load(),
		GetMany: loadHistogram(c.getMany), ScanBegin: loadHistogram(c.scans)}
}

func loadHistogram(h *metrics.Histogram) storeinfo.Histogram { return storeinfo.NewHistogram(h.Load()) }

func (b *Background) metrics() storeinfo.MaintenanceMetrics {
	c := b.Counts()
	m := storeinfo.MaintenanceMetrics{Workers: b.o.workers(), Running: c.Running, Queued: c.Queued, Paused: c.Paused}
	if b.o.spare() {
		m.Workers++
	}
	for _, kind := range maintenance.Kinds() {
		n := c.Of(kind)
		m.Operations = append(m.Operations, storeinfo.OperationMetrics{Kind: string(kind), Running: n.Running,
			Done: n.Done, Failed: n.Failed, BytesWritten: n.BytesWritten, Duration: n.Time})
	}
	return m
}

// addTables adds the tables, and what depends on their layouts.
func (s *Store) addTables(m *storeinfo.Metrics) {
	var covered, bytes, newest float64
	names := map[uint32]string{}
	for _, t := range s.Tablets() {
		names[t.Number] = t.Name()
	}
	for _, t := range s.Tablets() {
		layout, name := t.Info(), t.Name()
		if x := t.Index(); x != nil {
			name = names[x.Of] + ", " + name
		}
		tm := storeinfo.TableMetrics{Name: name, LiveRows: t.LiveRows(), RowSets: len(layout.RowSets)}
		tm.MemBytes, tm.DeltaBytes = t.MemBytes()
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
		m.Pins.RowSets += t.RetiredRowSets()
		m.Pins.UndoBytes += s.Pins.UndoBytes(t)
		m.Tables = append(m.Tables, tm)
	}
	m.ReadAmplification = ratio(covered, bytes)
	m.SpaceAmplification = ratio(float64(m.Disk.Live+m.Disk.Dead+m.Disk.Log+m.Disk.Metadata), newest)
}

// amplify computes WriteAmplification.
func amplify(m *storeinfo.Metrics) {
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
