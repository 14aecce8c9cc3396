package storeinfo

import (
	"io"
	"strconv"

	"github.com/oribi-db/oribi/internal/metrics"
)

// WriteTo writes the metrics to w in the text format of Prometheus, version 0.0.4, for a handler of
// an HTTP server that a Prometheus server reads:
//
//	http.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
//		m, err := store.Metrics()
//		if err != nil {
//			http.Error(w, err.Error(), http.StatusServiceUnavailable)
//			return
//		}
//		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
//		m.WriteTo(w)
//	})
//
// All names begin with oribi_. Durations are in seconds, sizes in bytes; names of counters end in
// _total. Counters begin at 0 when the store is opened. It calls w.Write once. It implements
// io.WriterTo.
func (m Metrics) WriteTo(w io.Writer) (n int64, err error) {
	t := new(metrics.Text)
	gauge := func(name, help string, value int64) {
		t.Family(name, "gauge", help)
		t.Int(value)
	}
	counter := func(name, help string, value int64) {
		t.Family(name, "counter", help)
		t.Int(value)
	}
	t.Family("oribi_uptime_seconds", "gauge", "Time since the store was opened.")
	t.Seconds(m.Uptime)
	m.writeJobs(t)
	m.Maintenance.write(t)

	counter("oribi_log_written_bytes_total", "Bytes of records appended to the log.", m.Log.BytesWritten)
	counter("oribi_log_syncs_total", "Syncs of the log.", m.Log.Syncs)

	gauge("oribi_memory_limit_bytes", "Options.MemoryLimit.", m.Memory.Limit)
	counter("oribi_memory_collections_total", "Garbage collections that the store has run early.",
		m.Memory.Collections)
	byUse(t, "oribi_memory_bytes", "Memory in use.", []use{{"rows", m.Memory.Rows}, {"changes", m.Memory.Changes},
		{"compactions", m.Memory.Compactions}, {"merges", m.Memory.Merges}, {"scans", m.Memory.Scans},
		{"transactions", m.Memory.Transactions}, {"reads", m.Memory.Reads}, {"cache", m.Memory.Cache}})
	counter("oribi_cache_hits_total", "Lookups in the cache that found their value.", m.Cache.Hits)
	counter("oribi_cache_misses_total", "Lookups in the cache that did not find their value.", m.Cache.Misses)
	counter("oribi_cache_parts_total", "Reads of a part of a cblock, by marks in the cache.", m.Cache.Parts)
	gauge("oribi_cache_limit_bytes", "Limit of the cache.", m.Cache.Limit)
	byUse(t, "oribi_disk_bytes",
		"Bytes in files: live blocks, dead blocks whose space is not reclaimed, the log, metadata.",
		[]use{{"live", m.Disk.Live}, {"dead", m.Disk.Dead}, {"log", m.Disk.Log}, {"metadata", m.Disk.Metadata}})

	t.Family("oribi_read_amplification", "gauge", "Rowsets over a key, on average.")
	t.Float(m.ReadAmplification)
	t.Family("oribi_write_amplification", "gauge",
		"Bytes written to the log and to blocks for each byte that was committed or ingested.")
	t.Float(m.WriteAmplification)
	t.Family("oribi_space_amplification", "gauge", "Bytes on disk for each byte of the newest rows in files.")
	t.Float(m.SpaceAmplification)

	counter("oribi_stalls_total", "Waits of writers for memory.", m.Stalls.Count)
	gauge("oribi_stalled_writers", "Writers that wait for memory.", m.Stalls.Waiting)
	t.Family("oribi_stall_seconds_total", "counter",
		"Time that writers waited for memory, without waits that have not ended.")
	t.Seconds(m.Stalls.Duration)

	counter("oribi_commit_rows_total", "Rows changed by committed write batches.", m.Commits.Rows)
	counter("oribi_commit_bytes_total", "Bytes of committed write batches.", m.Commits.Bytes)
	t.Family("oribi_commit_seconds", "histogram", "Durations of commits.")
	m.Commits.NoSync.write(t, "sync", "false")
	m.Commits.Sync.write(t, "sync", "true")
	counter("oribi_gets_total", "Reads of one row.", m.Reads.Gets)
	t.Family("oribi_get_seconds", "histogram", "Durations of one in "+strconv.Itoa(GetSample)+" reads of one row.")
	m.Reads.Get.write(t)
	counter("oribi_get_many_keys_total", "Keys that reads of several rows by key looked up.", m.Reads.Keys)
	t.Family("oribi_get_many_seconds", "histogram", "Durations of reads of several rows by key.")
	m.Reads.GetMany.write(t)
	t.Family("oribi_scan_begin_seconds", "histogram", "Durations of the beginnings of scans.")
	m.Reads.ScanBegin.write(t)

	gauge("oribi_open_reads", "Open scans and cursors.", int64(m.Pins.Reads))
	gauge("oribi_open_snapshots", "Open snapshots.", int64(m.Pins.Snapshots))
	t.Family("oribi_oldest_read_timestamp_seconds", "gauge",
		"Oldest timestamp of an open read or snapshot, as Unix time; 0 if there is none.")
	t.Float(m.Pins.oldestSeconds())
	gauge("oribi_pinned_rowsets", "Replaced rowsets that open reads use.", int64(m.Pins.RowSets))
	gauge("oribi_pinned_blocks", "Dropped blocks that open reads use.", int64(m.Pins.Blocks))
	gauge("oribi_pinned_bytes", "Size of the dropped blocks that open reads use.", m.Pins.Bytes)
	gauge("oribi_pinned_undo_bytes", "Size of the undo files that are kept for open reads and snapshots only.",
		m.Pins.UndoBytes)
	m.writeTables(t)

	written, err := w.Write(t.Bytes())
	return int64(written), err
}

func (m Metrics) writeJobs(t *metrics.Text) {
	family := func(name, kind, help string, sample func(j *JobMetrics)) {
		t.Family(name, kind, help)
		for i := range m.Jobs {
			sample(&m.Jobs[i])
		}
	}
	sum := func(name, help string, value func(j *JobMetrics) int64) {
		family(name, "counter", help, func(j *JobMetrics) { t.Int(value(j), "kind", string(j.Kind)) })
	}
	family("oribi_jobs_running", "gauge", "Flushes, compactions and ingests that run.",
		func(j *JobMetrics) { t.Int(j.Running, "kind", string(j.Kind)) })
	family("oribi_jobs_total", "counter", "Flushes, compactions and ingests that have ended.", func(j *JobMetrics) {
		t.Int(j.Done, "kind", string(j.Kind), "result", "done")
		t.Int(j.Failed, "kind", string(j.Kind), "result", "failed")
	})
	sum("oribi_job_rows_read_total", "Rows read by jobs.", func(j *JobMetrics) int64 { return j.RowsRead })
	sum("oribi_job_rows_written_total", "Rows written by jobs.", func(j *JobMetrics) int64 { return j.RowsWritten })
	sum("oribi_job_read_bytes_total", "Bytes of the files read by jobs.",
		func(j *JobMetrics) int64 { return j.BytesRead })
	sum("oribi_job_written_bytes_total", "Bytes of the files written by jobs.",
		func(j *JobMetrics) int64 { return j.BytesWritten })
	family("oribi_job_seconds_total", "counter", "Durations of jobs.",
		func(j *JobMetrics) { t.Seconds(j.Duration, "kind", string(j.Kind)) })
}

func (m *MaintenanceMetrics) write(t *metrics.Text) {
	gauge := func(name, help string, value int) {
		t.Family(name, "gauge", help)
		t.Int(int64(value))
	}
	gauge("oribi_maintenance_workers", "Operations that may run at once; see Options.MaintenanceWorkers.", m.Workers)
	gauge("oribi_maintenance_running", "Background operations that run.", m.Running)
	gauge("oribi_maintenance_queued", "Background operations that are due and wait.", m.Queued)
	paused := 0
	if m.Paused {
		paused = 1
	}
	gauge("oribi_maintenance_paused", "1 if background work is paused, else 0.", paused)
	t.Family("oribi_maintenance_operations_total", "counter", "Background operations that have ended.")
	for _, o := range m.Operations {
		t.Int(o.Done, "kind", o.Kind, "result", "done")
		t.Int(o.Failed, "kind", o.Kind, "result", "failed")
	}
	t.Family("oribi_maintenance_written_bytes_total", "counter", "Bytes of the files written by background operations.")
	for _, o := range m.Operations {
		t.Int(o.BytesWritten, "kind", o.Kind)
	}
	t.Family("oribi_maintenance_seconds_total", "counter", "Durations of background operations.")
	for _, o := range m.Operations {
		t.Seconds(o.Duration, "kind", o.Kind)
	}
}

func (m Metrics) writeTables(t *metrics.Text) {
	family := func(name, help string, value func(tm *TableMetrics) int64) {
		t.Family(name, "gauge", help)
		for i := range m.Tables {
			t.Int(value(&m.Tables[i]), "table", m.Tables[i].Name)
		}
	}
	family("oribi_table_rows", "Live rows.", func(tm *TableMetrics) int64 { return tm.LiveRows })
	family("oribi_table_rowsets", "Rowsets.", func(tm *TableMetrics) int64 { return int64(tm.RowSets) })
	family("oribi_table_bytes", "Size of all files.", func(tm *TableMetrics) int64 { return tm.Bytes })
	family("oribi_table_redo_bytes", "Size of the redo files.", func(tm *TableMetrics) int64 { return tm.RedoBytes })
	family("oribi_table_undo_bytes", "Size of the undo files.", func(tm *TableMetrics) int64 { return tm.UndoBytes })
	family("oribi_table_memory_bytes", "Rows that are not yet flushed.",
		func(tm *TableMetrics) int64 { return tm.MemBytes })
	family("oribi_table_delta_memory_bytes", "Changes in memory of rows on disk.",
		func(tm *TableMetrics) int64 { return tm.DeltaBytes })
	t.Family("oribi_table_depth", "gauge", "Rowsets over a key, on average.")
	for i := range m.Tables {
		t.Float(m.Tables[i].Depth, "table", m.Tables[i].Name)
	}
}

// use is how many bytes have one use.
type use struct {
	name  string
	bytes int64
}

func byUse(t *metrics.Text, name, help string, uses []use) {
	t.Family(name, "gauge", help)
	for _, u := range uses {
		t.Int(u.bytes, "use", u.name)
	}
}

func (p *PinMetrics) oldestSeconds() float64 {
	if p.Oldest == 0 {
		return 0
	}
	return float64(p.Oldest.Time().UnixMicro()) / 1e6
}
