package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

func metricsOf(t *testing.T, store *oribi.Store) oribi.Metrics {
	t.Helper()
	return must.Get(store.Metrics())(t)
}

// jobSums adds up events by kind.
type jobSums struct {
	mu    sync.Mutex
	jobs  map[compaction.Kind]oribi.JobMetrics
	begun map[uint64]compaction.Kind // by number, until the end
}

func (s *jobSums) add(e oribi.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Begin {
		s.begun[e.Job] = e.Kind
		return
	}
	if s.begun[e.Job] != e.Kind {
		e.Kind = "an end without a beginning"
	}
	delete(s.begun, e.Job)
	j := s.jobs[e.Kind]
	if j.Kind = e.Kind; e.Err != nil {
		j.Failed++
	} else {
		j.Done++
	}
	j.RowsRead += e.RowsRead
	j.RowsWritten += e.RowsWritten
	j.BytesRead += e.BytesRead
	j.BytesWritten += e.BytesWritten
	j.Duration += e.Duration
	s.jobs[e.Kind] = j
}

// The counts of jobs are the sums of their events; each kind of job is done once or more, and a
// merge fails. A listener may read when a job begins and write when it has ended.
func TestMetricsCountJobs(t *testing.T) {
	ctx := context.Background()
	sums := &jobSums{jobs: map[compaction.Kind]oribi.JobMetrics{}, begun: map[uint64]compaction.Kind{}}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var store *oribi.Store
	var table *oribi.Table
	store = must.Get(oribi.Open("/store",
		&oribi.Options{FS: vfs.NewMem(), Manual: true, History: time.Second, RowSetBytes: 1 << 13,
			Clock: mvcc.NewHybridClock(func() time.Time { return now }), Listener: func(e oribi.Event) {
				sums.add(e)
				if _, err := table.GetMany(ctx, []any{1}); err != nil {
					t.Error(err)
				}
				running := int64(0)
				for _, j := range metricsOf(t, store).Jobs {
					running += j.Running
				}
				if e.Begin != (running == 1) {
					t.Errorf("%d jobs run, begin %t", running, e.Begin)
				}
				if !e.Begin {
					putNumbers(t, store, table, 10, func(k int) int { return k })
				}
			}}))(t)
	defer store.Close()
	table = numbersTable(t, store, "t")
	putNumbers(t, store, table, 2000, func(k int) int { return k })
	steps := []func() error{
		func() error { return table.Flush(ctx) },
		func() error {
			return must.Err(table.UpdateWhere(ctx, oribi.Row{"v": 1}, oribi.Where(oribi.Lt("k", 9))))
		},
		func() error { return must.Err(table.FlushDeltas(ctx)) },
		func() error {
			return must.Err(table.UpdateWhere(ctx, oribi.Row{"v": 2}, oribi.Where(oribi.Lt("k", 9))))
		},
		func() error { return must.Err(table.FlushDeltas(ctx)) },
		func() error { return must.Err(table.CompactMinor(ctx)) },
		func() error { return must.Err(table.CompactMajor(ctx)) },
		func() error {
			err := table.Alter(ctx, oribi.SetCompression("v", schema.Dense))
			return errors.Join(err, must.Err(table.Recompress(ctx)))
		},
		func() error { now = now.Add(time.Hour); return must.Err(table.CollectUndos(ctx)) },
		func() error {
			_, _, err := table.Ingest(ctx, steps(nil, numbers(5000, 5001)))
			return err
		},
		func() error { return table.Merge(ctx, everything(table.Layout())) },
	}
	for i, do := range steps {
		must.Do(t, do(), "step", i)
	}
	must.Refuse(t, table.Merge(ctx, compaction.Choice{RowSets: []uint64{1 << 40, 1}}))
	m := metricsOf(t, store)
	must.Equal(t, len(sums.begun), 0, "jobs", sums.begun, "have not ended")
	must.Equal(t, len(m.Jobs), 8, "kinds")
	for _, j := range m.Jobs {
		if want := sums.jobs[j.Kind]; j != want || j.Done == 0 || (j.Failed > 0) != (j.Kind == compaction.Merge) {
			t.Errorf("%+v\nwant %+v", j, want)
		}
		switch j.Kind {
		case compaction.Merge, compaction.MinorDelta, compaction.MajorDelta, compaction.Recompress:
			if j.BytesRead == 0 || j.BytesWritten == 0 {
				t.Errorf("%+v", j)
			}
		case compaction.Flush, compaction.DeltaFlush, compaction.Ingest:
			if j.BytesRead != 0 || j.BytesWritten == 0 {
				t.Errorf("%+v", j)
			}
		}
	}
}

// everything merges all rowsets.
func everything(l compaction.Layout) (c compaction.Choice) {
	for _, r := range l.RowSets {
		c.RowSets = append(c.RowSets, r.ID)
	}
	return c
}

func TestMetricsCountCommitsAndReads(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	before := metricsOf(t, store)
	var bytes int64
	for i := range 5 {
		b := store.NewBatch()
		b.Insert(table, oribi.Row{"k": 2 * i, "v": 0})
		b.Insert(table, oribi.Row{"k": 2*i + 1, "v": 0})
		bytes += b.Bytes()
		var opts []oribi.CommitOption
		if i < 3 {
			opts = append(opts, oribi.NoSync)
		}
		must.Get(b.Commit(ctx, opts...))(t)
	}
	b := store.NewBatch()
	b.Insert(table, oribi.Row{"k": 1, "v": 0})
	if _, err := b.Commit(ctx); err == nil { // not counted
		t.Fatal("no error")
	}
	must.Do(t, table.Flush(ctx))
	const gets = 1000
	for i := range gets {
		must.Get(table.Get(ctx, i%10))(t)
	}
	for range table.Scan(ctx).Batches() {
	}
	must.Get(table.Count(ctx, oribi.Where(oribi.Gt("v", 0))))(t)
	m := metricsOf(t, store)
	if c := m.Commits; c.NoSync.Count != 3 || c.Sync.Count != 2 || c.Rows != 10 || c.Bytes != bytes || c.Sync.Sum <= 0 {
		t.Errorf("commits %+v, want 3 and 2, 10 rows, %d bytes", c, bytes)
	}
	// Of each shard every 32nd is timed.
	if r := m.Reads; r.Gets != gets || r.Get.Count > gets/32 || r.Get.Count < gets/32-32 || r.ScanBegin.Count != 2 {
		t.Errorf("%d gets, %d timed, %d scans", r.Gets, r.Get.Count, r.ScanBegin.Count)
	}
	if m.Cache.Hits < gets-20 || m.Cache.Misses == 0 || m.Memory.Cache == 0 || m.Memory.Cache > m.Cache.Limit {
		t.Errorf("cache %+v of %+v", m.Cache, m.Memory)
	}
	if m.Log.Syncs <= before.Log.Syncs || m.Log.BytesWritten <= before.Log.BytesWritten {
		t.Errorf("log %+v, before %+v", m.Log, before.Log)
	}
	info, err := store.Info()
	if err != nil || info.Bytes != m.Disk || m.Uptime <= 0 {
		t.Errorf("%+v, info %+v, %v", m.Disk, info, err)
	}
	must.Do(t, store.Close())
	must.Refuse(t, must.Err(store.Metrics()), "after Close")
}

// Calls that replace the whole content are one commit each, and a read of many keys is one read.
// What fails is not counted.
func TestMetricsCountBulkCallsAndReadsOfManyKeys(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	putNumbers(t, store, table, 10, func(k int) int { return k })
	full := store.Visible()
	before := metricsOf(t, store).Commits
	counted := func(rows, noSync, sync int64) {
		t.Helper()
		c := metricsOf(t, store).Commits
		if c.Rows-before.Rows != rows || c.NoSync.Count-before.NoSync.Count != noSync ||
			c.Sync.Count-before.Sync.Count != sync || rows > 0 && c.Bytes <= before.Bytes {
			t.Errorf("%+v, before %+v: want %d rows, %d and %d commits", c, before, rows, noSync, sync)
		}
		before = c
	}
	must.Get(table.Truncate(ctx, oribi.NoSync))(t)
	counted(10, 1, 0)
	must.Get(table.RestoreTo(ctx, full))(t)
	counted(10, 0, 1)
	must.Get(table.DeleteWhere(ctx, oribi.Where(oribi.Ge("v", 0)), oribi.PieceBytes(1)))(t)
	counted(10, 0, 10)
	must.Refuse(t, must.Err(table.RestoreTo(ctx, full+1<<40)), "restored to the future")
	counted(0, 0, 0)

	if rows, err := table.GetMany(ctx, []any{1, 2, 99}, oribi.AsOf(full)); err != nil ||
		rows[0] == nil || rows[2] != nil {
		t.Fatal(rows, err)
	}
	must.Get2(table.GetManyCells(ctx, []any{1, 1}))(t)
	must.Refuse(t, must.Err(table.GetMany(ctx, []any{"a"})), "a key of another type")
	if r := metricsOf(t, store).Reads; r.Keys != 5 || r.GetMany.Count != 2 || r.GetMany.Sum <= 0 || r.Gets != 0 {
		t.Errorf("%+v, want 5 keys of 2 calls", r)
	}
}

func TestHistogramQuantiles(t *testing.T) {
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	for range 20 {
		putNumbers(t, store, table, 1, func(int) int { return 0 })
	}
	h := metricsOf(t, store).Commits.NoSync
	var uppers []time.Duration
	var counts []int64
	for upper, n := range h.Buckets {
		uppers, counts = append(uppers, upper), append(counts, n)
	}
	sum := int64(0)
	for i, n := range counts {
		sum += n
		must.Equal(t, h.Quantile(float64(sum)/float64(h.Count)), uppers[i], "quantile", sum, "of", h.Count)
	}
	if sum != h.Count || h.Count != 20 || h.Quantile(0) != uppers[0] || h.Quantile(2) != uppers[len(uppers)-1] ||
		h.Sum > uppers[len(uppers)-1]*20 {
		t.Errorf("%v %v: %d, %v", uppers, counts, h.Count, h.Sum)
	}
	must.Equal(t, (oribi.Histogram{}).Quantile(0.5), 0, "quantile of nothing")
}

// Two rowsets with the same bounds have depth 2, merged 1; an ingest writes each byte once.
func TestMetricsAmplification(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true, History: time.Second}))(t)
	defer store.Close()
	if m := metricsOf(t, store); m.ReadAmplification != 0 || m.WriteAmplification != 0 || m.SpaceAmplification != 0 {
		t.Errorf("empty: %v %v %v", m.ReadAmplification, m.WriteAmplification, m.SpaceAmplification)
	}
	table := numbersTable(t, store, "t")
	var bytes, written int64
	logged := metricsOf(t, store).Log.BytesWritten
	for i := range int64(2) {
		b := store.NewBatch()
		for k := range int64(1000) {
			b.Insert(table, oribi.Row{"k": 2*k + i, "v": k})
		}
		bytes += b.Bytes()
		must.Get(b.Commit(ctx, oribi.NoSync))(t)
		r := must.Get(table.FlushResult(ctx))(t)
		written += r.BytesWritten
	}
	m := metricsOf(t, store)
	if math.Abs(m.ReadAmplification-2) > 0.01 || m.Tables[0].Depth != m.ReadAmplification {
		t.Errorf("read amplification %v, want 2", m.ReadAmplification)
	}
	if want := float64(m.Log.BytesWritten+written) / float64(bytes); math.Abs(m.WriteAmplification-want) > 1e-9 ||
		m.Log.BytesWritten <= logged {
		t.Errorf("write amplification %v, want %v", m.WriteAmplification, want)
	}
	if m.SpaceAmplification <= 1 {
		t.Errorf("space amplification %v", m.SpaceAmplification)
	}
	// Without half of the rows, the same files have half the use.
	must.Get(table.DeleteWhere(ctx, oribi.Where(oribi.Lt("k", 1000))))(t)
	must.Do(t, table.Flush(ctx))
	if after := metricsOf(t, store); after.SpaceAmplification < 2*m.SpaceAmplification {
		t.Errorf("space amplification %v after half of the rows were deleted, %v before",
			after.SpaceAmplification, m.SpaceAmplification)
	}
	must.Do(t, table.Compact(ctx))
	if m := metricsOf(t, store); m.ReadAmplification != 1 || m.Tables[0].RowSets != 1 ||
		m.Tables[0].LiveRows != 1000 || m.Tables[0].Bytes == 0 {
		t.Errorf("%v %+v", m.ReadAmplification, m.Tables)
	}
	ingested := must.Get(oribi.Open("/ingested", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer ingested.Close()
	table = numbersTable(t, ingested, "t")
	must.Get2(table.Ingest(ctx, steps(nil, numbers(1, 2, 3))))(t)
	if m := metricsOf(t, ingested); m.WriteAmplification < 1 || m.WriteAmplification > 1.2 {
		t.Errorf("write amplification of an ingest %v", m.WriteAmplification)
	}
}

// A scan pins the files that a merge replaces; a snapshot pins undos that are older than the
// history.
func TestMetricsShowWhatReadsPin(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true, History: time.Second,
		Clock: mvcc.NewHybridClock(func() time.Time { return now })}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	oldest := putNumbers(t, store, table, 100, func(k int) int { return k })
	step := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	step(table.Flush(ctx))
	sn, err := store.Snapshot(ctx)
	step(err)
	putNumbers(t, store, table, 50, func(k int) int { return -k })
	step(must.Err(table.FlushDeltas(ctx)))
	for _, err := range table.Scan(ctx).Batches() {
		step(err)
		step(table.Compact(ctx))
		now = now.Add(time.Minute)
		p := metricsOf(t, store).Pins
		if p.Reads != 1 || p.Snapshots != 1 || p.Oldest != oldest || p.RowSets != 1 || p.Blocks == 0 ||
			p.Bytes == 0 || p.UndoBytes == 0 {
			t.Errorf("%+v", p)
		}
		if tm := metricsOf(t, store).Tables[0]; p.UndoBytes > tm.UndoBytes {
			t.Errorf("%d bytes of undos are pinned, the table has %d", p.UndoBytes, tm.UndoBytes)
		}
		break
	}
	p := metricsOf(t, store).Pins
	undos := p.UndoBytes
	p.UndoBytes = 0
	if undos == 0 || p != (oribi.PinMetrics{Snapshots: 1, Oldest: oldest}) {
		t.Errorf("after the scan: %+v, %d bytes of undos", p, undos)
	}
	step(sn.Close())
	must.Equal(t, metricsOf(t, store).Pins, (oribi.PinMetrics{}), "at the end")
}

// family is one family of the text format.
type family struct {
	kind    string
	samples map[string]float64 // by name and labels, as written
}

var (
	metricName = regexp.MustCompile(`^oribi_[a-z][a-z_]*$`)
	sampleLine = regexp.MustCompile(
		`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)$`)
	labelText = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"`)
)

// parseMetrics parses the text format: HELP and TYPE once, before the samples of a family, which
// are together. It returns the families and their names.
func parseMetrics(text string) (families map[string]*family, err error) {
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line has no end")
	}
	families = map[string]*family{}
	var name string
	helped := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fail := func(why string) error { return fmt.Errorf("line %d: %s: %s", i+1, why, line) }
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			var help string
			if name, help, _ = strings.Cut(rest, " "); helped[name] || help == "" {
				return nil, fail("help")
			}
			helped[name] = true
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			typed, kind, _ := strings.Cut(rest, " ")
			if typed != name || families[name] != nil || kind != "counter" && kind != "gauge" && kind != "histogram" {
				return nil, fail("type")
			}
			families[name] = &family{kind, map[string]float64{}}
			continue
		}
		parts := sampleLine.FindStringSubmatch(line)
		f := families[name]
		if parts == nil || f == nil {
			return nil, fail("no sample")
		}
		value, err := strconv.ParseFloat(parts[4], 64)
		if err != nil {
			return nil, fail("no number")
		}
		suffix, ok := strings.CutPrefix(parts[1], name)
		if !ok || f.kind != "histogram" && suffix != "" ||
			f.kind == "histogram" && suffix != "_bucket" && suffix != "_sum" && suffix != "_count" {
			return nil, fail("sample of another family")
		}
		key := suffix + parts[2]
		if _, twice := f.samples[key]; twice {
			return nil, fail("sample twice")
		}
		f.samples[key] = value
	}
	return families, nil
}

// checkHistogram checks that the counts of the buckets rise with their bounds up to the count.
func (f *family) checkHistogram(labels string) error {
	last, lastCount := math.Inf(-1), -1.0
	for range f.samples {
		next, count := math.Inf(1), 0.0
		for key, n := range f.samples {
			rest, ok := strings.CutPrefix(key, "_bucket{"+labels)
			if !ok {
				continue
			}
			m := labelText.FindStringSubmatch(rest)
			if m == nil || m[1] != "le" {
				return fmt.Errorf("bucket %s", key)
			}
			le, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return err
			}
			if le > last && le <= next {
				next, count = le, n
			}
		}
		if count < lastCount {
			return fmt.Errorf("%v up to %v, %v up to %v", lastCount, last, count, next)
		}
		if last, lastCount = next, count; math.IsInf(last, 1) {
			break
		}
	}
	whole := ""
	if labels != "" {
		whole = "{" + strings.TrimSuffix(labels, ",") + "}"
	}
	if n, ok := f.samples["_count"+whole]; !ok || n != lastCount || !math.IsInf(last, 1) {
		return fmt.Errorf("%v up to %v, count %v", lastCount, last, n)
	}
	if _, ok := f.samples["_sum"+whole]; !ok {
		return fmt.Errorf("no sum")
	}
	return nil
}

func TestMetricsAsPrometheusText(t *testing.T) {
	ctx := context.Background()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
	defer store.Close()
	const odd = "a \"b\" \\ {c=\"d\"}, é"
	table := numbersTable(t, store, odd)
	numbersTable(t, store, "t")
	putNumbers(t, store, table, 100, func(k int) int { return k })
	must.Do(t, table.Flush(ctx))
	for k := range 100 {
		must.Get(table.Get(ctx, k))(t)
	}
	m := metricsOf(t, store)
	var out bytes.Buffer
	must.Equal(t, must.Get(m.WriteTo(&out))(t), int64(out.Len()), "bytes")
	families := must.Get(parseMetrics(out.String()))(t)
	for name, f := range families {
		if !metricName.MatchString(name) ||
			(f.kind == "counter") != strings.HasSuffix(name, "_total") || len(f.samples) == 0 {
			t.Errorf("%s: %s with %d samples", name, f.kind, len(f.samples))
		}
	}
	for name, labels := range map[string][]string{"oribi_get_seconds": {""}, "oribi_get_many_seconds": {""},
		"oribi_scan_begin_seconds": {""}, "oribi_commit_seconds": {`sync="true",`, `sync="false",`}} {
		for _, l := range labels {
			must.Do(t, families[name].checkHistogram(l), name, l)
		}
	}
	for name, want := range map[string]float64{
		`oribi_gets_total`: 100, `oribi_cache_hits_total`: float64(m.Cache.Hits), `oribi_memory_limit_bytes`: 256 << 20,
		`oribi_jobs_total{kind="flush",result="done"}`: 1, `oribi_jobs_total{kind="merge",result="failed"}`: 0,
		`oribi_job_rows_written_total{kind="flush"}`: 100, `oribi_disk_bytes{use="live"}`: float64(m.Disk.Live),
		`oribi_commit_seconds_count{sync="false"}`:          1,
		`oribi_commit_seconds_sum{sync="false"}`:            m.Commits.NoSync.Sum.Seconds(),
		`oribi_table_rows{table="a \"b\" \\ {c=\"d\"}, é"}`: 100, `oribi_table_rows{table="t"}`: 0,
		`oribi_write_amplification`: m.WriteAmplification, `oribi_uptime_seconds`: m.Uptime.Seconds(),
	} {
		if got, ok := find(families, name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// find returns the value of a sample.
func find(families map[string]*family, sample string) (float64, bool) {
	for name, f := range families {
		if rest, ok := strings.CutPrefix(sample, name); ok {
			if v, ok := f.samples[rest]; ok {
				return v, true
			}
		}
	}
	return 0, false
}

// Background work is counted: a table that has reached the size of a flush is flushed. A read-only
// store has none.
func TestMetricsCountBackgroundWork(t *testing.T) {
	ctx := context.Background()
	flushed := make(chan bool, 100)
	fsys := vfs.NewMem()
	store := must.Get(oribi.Open("/store", &oribi.Options{FS: fsys, FlushBytes: 1 << 10, Listener: func(e oribi.Event) {
		if e.Kind == compaction.Flush && !e.Begin {
			flushed <- true
		}
	}}))(t)
	defer store.Close()
	table := numbersTable(t, store, "t")
	putNumbers(t, store, table, 1000, func(k int) int { return k })
	within(t, minute, func() { <-flushed })
	resume, err := store.PauseBackgroundWork(ctx) // waits for the operation
	must.Do(t, err)
	m := metricsOf(t, store).Maintenance
	if !m.Paused || m.Running != 0 || m.Workers < 2 || len(m.Operations) < 7 {
		t.Errorf("%+v", m)
	}
	for _, o := range m.Operations {
		if o.Kind == string(compaction.Flush) && (o.Done == 0 || o.BytesWritten == 0 || o.Duration == 0) ||
			o.Running != 0 || o.Failed != 0 {
			t.Errorf("%+v", o)
		}
	}
	resume()
	if m := metricsOf(t, store).Maintenance; m.Paused {
		t.Errorf("%+v", m)
	}
	must.Do(t, store.Close())
	reader := must.Get(oribi.Open("/store", &oribi.Options{FS: fsys, ReadOnly: true}))(t)
	defer reader.Close()
	if m := metricsOf(t, reader); m.Maintenance.Workers != 0 || m.Disk.Log == 0 || len(m.Tables) != 1 {
		t.Errorf("%+v", m)
	}
	must.Do(t, must.Err(metricsOf(t, reader).WriteTo(io.Discard)))
}
