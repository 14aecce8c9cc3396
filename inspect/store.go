package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/celltext"
)

var storePage = page{pattern: "/", name: "Store", template: "store.html", params: []string{"files"}, build: buildStore}

// How many elements of long lists the page shows.
const (
	tablesShown    = 100
	filesShown     = 20
	snapshotsShown = 100
)

// storeView is the page of the store.
type storeView struct {
	UUID    string `json:"uuid"`
	Format  int    `json:"format"`
	RowSets int    `json:"rowsets"` // of all tables

	Tables      []storeTable `json:"tables"`
	TablesShown pager        `json:"tables_shown"`

	Bytes      []part      `json:"bytes"` // add up to BytesTotal
	BytesTotal int64       `json:"bytes_total"`
	Files      []storeFile `json:"files"` // largest first
	FilesShown pager       `json:"files_shown"`

	Amplification []figure       `json:"amplification"`
	Recovery      []figure       `json:"recovery"`
	Clean         bool           `json:"recovery_clean"`
	Snapshots     []snapshotView `json:"snapshots"`
	SnapshotCount int            `json:"snapshot_count"`

	Memory      []part       `json:"memory"`
	MemoryLimit int64        `json:"memory_limit"`
	Work        *storeWork   `json:"work,omitempty"` // of a writer
	Reads       []figure     `json:"reads"`
	Latencies   []percentile `json:"latencies"`
	History     *history     `json:"history,omitempty"`

	Main string `json:"-"` // name of the largest table
}

// storeTable is a table in the list of tables.
type storeTable struct {
	Name      string    `json:"name"`
	Rows      int64     `json:"rows"`
	RowSets   int       `json:"rowsets"`
	Bytes     int64     `json:"bytes"`
	Share     float64   `json:"share"` // of the bytes of all tables
	RedoBytes int64     `json:"redo_bytes"`
	UndoBytes int64     `json:"undo_bytes"`
	MemBytes  int64     `json:"mem_bytes"` // rows and changes that are not flushed
	Depth     float64   `json:"depth"`
	Largest   *sizeView `json:"largest_column,omitempty"`
}

// sizeView is a column with its size.
type sizeView struct {
	Column string  `json:"column"`
	Bytes  int64   `json:"bytes"`
	Share  float64 `json:"share"` // of the bytes of all columns
}

// part is a part of a sum.
type part struct {
	Name    string  `json:"name"`
	Bytes   int64   `json:"bytes"`
	Share   float64 `json:"share"`
	Meaning string  `json:"meaning"`
}

// figure is a number that is not a number of bytes.
type figure struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Meaning string  `json:"meaning"`
}

type storeFile struct {
	Name      string `json:"name"` // within the store's directory
	Kind      string `json:"kind"`
	Length    int64  `json:"length"`
	Allocated int64  `json:"allocated"`
}

type snapshotView struct {
	Name string `json:"name"`
	At   moment `json:"at"`
}

// percentile describes the durations of one kind of call.
type percentile struct {
	Name   string  `json:"name"`
	Count  int64   `json:"count"`
	Median float64 `json:"median_us"`
	P99    float64 `json:"p99_us"`
}

// storeWork counts the background jobs of a writer.
type storeWork struct {
	Jobs    []jobView `json:"jobs"`
	Workers int       `json:"workers"`
	Running int       `json:"running"`
	Queued  int       `json:"queued"`
	Paused  bool      `json:"paused"`
}

type jobView struct {
	Kind         string  `json:"kind"`
	Running      int64   `json:"running"`
	Done         int64   `json:"done"`
	Failed       int64   `json:"failed"`
	RowsWritten  int64   `json:"rows_written"`
	BytesRead    int64   `json:"bytes_read"`
	BytesWritten int64   `json:"bytes_written"`
	Seconds      float64 `json:"seconds"`
}

func buildStore(_ context.Context, s *server, q *query) (any, error) {
	info, err := s.store.Info()
	if err != nil {
		return nil, err
	}
	m, err := s.store.Metrics()
	if err != nil {
		return nil, err
	}
	v := &storeView{UUID: info.UUID, Format: info.Format, RowSets: info.RowSets, MemoryLimit: m.Memory.Limit,
		SnapshotCount: len(info.Snapshots)}
	for _, sn := range info.Snapshots[:min(len(info.Snapshots), snapshotsShown)] {
		v.Snapshots = append(v.Snapshots, snapshotView{celltext.Printable(sn.Name), momentOf(sn.Timestamp)})
	}
	v.addTables(s, q, &m)
	if err := v.addUsage(s, q); err != nil {
		return nil, err
	}
	v.addRecovery(s.store.Recovery())
	v.addMetrics(s, &m)
	v.History = s.samples.history()
	return v, nil
}

// addTables adds the tables, and looks for the largest column of those whose columns are known
// soon.
func (v *storeView) addTables(s *server, q *query, m *oribi.Metrics) {
	var from, to int
	v.TablesShown, from, to = s.pageOf(q, len(m.Tables), tablesShown)
	total, most := int64(0), int64(-1)
	for i := range m.Tables {
		total += m.Tables[i].Bytes
		if m.Tables[i].Bytes > most {
			most, v.Main = m.Tables[i].Bytes, m.Tables[i].Name
		}
	}
	deadline := s.now().Add(countTime)
	for i := from; i < to; i++ {
		t := &m.Tables[i]
		row := storeTable{Name: t.Name, Rows: t.LiveRows, RowSets: t.RowSets, Bytes: t.Bytes,
			Share: share(t.Bytes, total), RedoBytes: t.RedoBytes, UndoBytes: t.UndoBytes,
			MemBytes: t.MemBytes + t.DeltaBytes, Depth: round(t.Depth, 2)}
		if table, err := s.store.Table(t.Name); err == nil {
			row.Largest = s.columns.largest(s, table, deadline)
		}
		v.Tables = append(v.Tables, row)
	}
}

// addUsage explains the bytes on disk.
func (v *storeView) addUsage(s *server, q *query) error {
	u, err := s.store.DiskUsage()
	if err != nil {
		return err
	}
	v.BytesTotal = u.Total
	for _, p := range usageParts(&u) {
		if p.Bytes != 0 {
			p.Share = share(p.Bytes, u.Total)
			v.Bytes = append(v.Bytes, p)
		}
	}
	at, err := q.Int("files", 0, 0, maxPageNumber)
	if err != nil {
		return err
	}
	slices.SortStableFunc(u.Files, func(a, b oribi.FileUsage) int { return cmp.Compare(b.Allocated, a.Allocated) })
	var from, to int
	v.FilesShown, from, to = s.partOf(q, "files", at, len(u.Files), filesShown)
	for _, f := range u.Files[from:to] {
		v.Files = append(v.Files, storeFile{Name: celltext.Printable(f.Name), Kind: f.Kind,
			Length: f.Length, Allocated: f.Allocated})
	}
	return nil
}

// usageParts are the parts of the disk usage, with their meanings.
func usageParts(u *oribi.DiskUsage) []part {
	return []part{
		{Name: "live", Bytes: u.Live, Meaning: "Blocks that the metadata names: the files of rowsets."},
		{Name: "log", Bytes: u.Log, Meaning: "Write batches that are not all in rowsets yet, kept so that a crash " +
			"loses none."},
		{Name: "reserved", Bytes: u.Reserved,
			Meaning: "Preallocated, so that writes need not wait for the file system; returned at Close."},
		{Name: "metadata", Bytes: u.Metadata,
			Meaning: "Which blocks exist and what they mean, and the reserve for a full disk."},
		{Name: "dead", Bytes: u.Dead, Meaning: "Dropped blocks whose space is not reclaimed yet."},
		{Name: "alignment", Bytes: u.Alignment,
			Meaning: "Zeros after blocks, so that each begins with a page of the file system."},
		{Name: "headers", Bytes: u.Headers, Meaning: "The first page of each container of blocks."},
		{Name: "torn", Bytes: u.Torn, Meaning: "Unfinished ends of the log after a crash, kept for inspection; you " +
			"may remove them."},
		{Name: "directories", Bytes: u.Directories, Meaning: "Directory entries."},
		{Name: "leftovers", Bytes: u.Leftovers, Meaning: "Files that a crash left; the next writer removes them."},
		{Name: "foreign", Bytes: u.Foreign, Meaning: "Files that do not belong to the store."},
		{Name: "other", Bytes: u.Other, Meaning: "Overhead of the file system; negative if it compresses."},
	}
}

func (v *storeView) addRecovery(r oribi.Recovery) {
	v.Clean = r.Clean
	v.Recovery = []figure{
		{"frames", float64(r.Frames), "Records of the log that were read."},
		{"batches", float64(r.Batches), "Write batches that were applied again, since they were not in rowsets."},
		{"torn bytes", float64(r.TornBytes),
			"Bytes of an unfinished write at the end of the log: no acknowledged write is in them."},
		{"repaired bits", float64(r.RepairedBits), "Single changed bits that the checksums allowed to repair."},
		{"stray containers", float64(r.StrayContainers), "Files of blocks that no metadata named, removed."},
		{"cut bytes", float64(r.CutBytes), "Bytes after the last named block of a container, cut off."},
		{"reclaimed blocks", float64(r.Reclaimed), "Dropped blocks whose space was reclaimed."},
	}
}

func (v *storeView) addMetrics(s *server, m *oribi.Metrics) {
	v.Amplification = []figure{
		{"read amplification", round(m.ReadAmplification, 2),
			"Rowsets over a key: 1 means that none overlap, so that a read by key looks into one."},
		{"space amplification", round(m.SpaceAmplification, 2),
			"Bytes on disk for each byte of the newest rows: the rest is history, log, and what waits for a " +
				"compaction."},
	}
	used := &m.Memory
	for _, p := range []part{
		{Name: "rows", Bytes: used.Rows, Meaning: "Rows that are not flushed yet."},
		{Name: "changes", Bytes: used.Changes, Meaning: "Changes of rows on disk that are not flushed yet."},
		{Name: "cache", Bytes: used.Cache, Meaning: "Cblocks, decoded chunks, and rows that were read."},
		{Name: "merges", Bytes: used.Merges, Meaning: "What merges read."},
		{Name: "compactions", Bytes: used.Compactions, Meaning: "Buffers of ingests."},
		{Name: "scans", Bytes: used.Scans, Meaning: "Goroutines of scans."},
		{Name: "reads", Bytes: used.Reads, Meaning: "Blocks that are being read."},
		{Name: "transactions", Bytes: used.Transactions, Meaning: "What open transactions have read and written."},
	} {
		if p.Bytes != 0 {
			p.Share = share(p.Bytes, used.Limit)
			v.Memory = append(v.Memory, p)
		}
	}
	v.Reads = []figure{
		{"reads by key", float64(m.Reads.Gets + m.Reads.Keys),
			"Rows read by key since the store was opened by this program."},
		{"cache hits", float64(m.Cache.Hits), "Lookups in the cache that found their value."},
		{"cache misses", float64(m.Cache.Misses), "Lookups that did not: each reads from disk or decodes."},
		{"parts of cblocks", float64(m.Cache.Parts), "Reads of a part of a cblock, by marks in the cache."},
		{"open reads", float64(m.Pins.Reads), "Scans and other reads that run now and keep history."},
		{"pinned rowsets", float64(m.Pins.RowSets), "Rowsets that were replaced and that open reads still use."},
	}
	if !s.store.ReadOnly() {
		v.Amplification = append(v.Amplification,
			figure{"write amplification", round(m.WriteAmplification, 2),
				"Bytes written to disk for each byte of a write batch since the store was opened."})
		v.Reads = append(v.Reads, figure{"stalled writers", float64(m.Stalls.Waiting),
			"Writers that wait for memory now: flushes are slower than writes."},
			figure{"stalls", float64(m.Stalls.Count), "Waits of writers for memory since the store was opened."})
	}
	for _, h := range []struct {
		name string
		h    oribi.Histogram
	}{{"commit, durable", m.Commits.Sync}, {"commit without sync", m.Commits.NoSync}, {"read by key",
		m.Reads.Get}, {"reads of many keys", m.Reads.GetMany}, {"begin of a scan", m.Reads.ScanBegin}} {
		if h.h.Count > 0 {
			v.Latencies = append(v.Latencies,
				percentile{h.name, h.h.Count, micros(h.h.Quantile(0.5)), micros(h.h.Quantile(0.99))})
		}
	}
	if s.store.ReadOnly() {
		return
	}
	v.Work = &storeWork{Workers: m.Maintenance.Workers, Running: m.Maintenance.Running,
		Queued: m.Maintenance.Queued, Paused: m.Maintenance.Paused}
	for _, j := range m.Jobs {
		if j.Done+j.Failed+j.Running > 0 {
			v.Work.Jobs = append(v.Work.Jobs,
				jobView{Kind: string(j.Kind), Running: j.Running, Done: j.Done,
					Failed: j.Failed, RowsWritten: j.RowsWritten,
					BytesRead: j.BytesRead, BytesWritten: j.BytesWritten, Seconds: round(j.Duration.Seconds(), 3)})
		}
	}
}

func micros(d time.Duration) float64 { return round(float64(d)/1e3, 1) }
