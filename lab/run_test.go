package lab

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/oribi-db/oribi/compaction"
	"github.com/oribi-db/oribi/internal/must"
)

const smallSpec = `{"seed":7,"flush_bytes":"32KB","rowset_bytes":"16KB","workloads":[{"name":"uniform","keys":1500,"operations":4000},
	{"name":"zipf","keys":1500,"operations":4000},{"name":"time-series","operations":2000,"late":0.1,"series":3},
	{"name":"hot-updates","keys":1500,"operations":4000},{"name":"old-deletes","keys":1500,"operations":4000},{"name":"replay","layout":"testdata/ycsb-cut.tsv","merges":5}],
	"policies":[{"name":"none"},{"name":"overlap","budget":"256KB"},{"name":"budgeted","budget":"256KB"},{"name":"tiered","budget":"256KB"},{"name":"leveled","budget":"256KB"}]}`

func parsed(t testing.TB, text string) *Spec {
	t.Helper()
	return must.Get(ParseSpec([]byte(text)))(t)
}

func resultsOf(t testing.TB, s *Spec) []*Result {
	t.Helper()
	return must.Get(Results(t.Context(), s, nil))(t)
}

func csvOf(t testing.TB, s *Spec) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, WriteCSV(&out, resultsOf(t, s)))
	return out.Bytes()
}

// ORIBI_REWRITE=1 rewrites the golden file.
func TestRunsAreGolden(t *testing.T) {
	const golden = "testdata/runs.csv"
	s := parsed(t, smallSpec)
	got := csvOf(t, s)
	if os.Getenv("ORIBI_REWRITE") != "" {
		must.Do(t, os.WriteFile(golden, got, 0o644))
	}
	want := must.Get(os.ReadFile(golden))(t)
	must.Equal(t, got, want, golden, "see ORIBI_REWRITE")
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	for n := range 2 {
		runtime.GOMAXPROCS(n + 1)
		must.Equal(t, csvOf(t, s), got, "with", n+1, "processors the runs differ")
	}
	other := *s
	other.Seed++
	must.Equal(t, bytes.Equal(csvOf(t, &other), got), false, "the seed makes no difference")
}

func TestRunWritesAFolder(t *testing.T) {
	s := parsed(t,
		`{"flush_bytes":"16KB","workloads":[{"name":"uniform","operations":1000}],"policies":[{"name":"none"},{"name":"leveled"}]}`)
	out := filepath.Join(t.TempDir(), "out")
	last := int64(0)
	must.Do(t, Run(t.Context(), s, out, func(done, of int64) {
		if done < last || of != 2000 {
			t.Errorf("%d of %d after %d", done, of, last)
		}
		last = done
	}))
	must.Equal(t, last, 2000, "operations are reported")
	for _, name := range []string{"report.html", "runs.csv", "events.jsonl", "spec.json"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.Fail(t, Run(t.Context(), s, out, nil), fs.ErrExist, "into a folder that exists")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	out = filepath.Join(t.TempDir(), "out")
	must.Fail(t, Run(canceled, s, out, nil), context.Canceled, "canceled")
	must.Refuse(t, must.Err(os.Stat(out)), "a canceled run leaves a folder")
}

// A replay of the log of a run that merged nothing ends with the layout of that run, and with a
// policy that merges with a lower one.
func TestEventLogOfARunIsReplayed(t *testing.T) {
	spec := `{"seed":7,"flush_bytes":"32KB","rowset_bytes":"16KB","workloads":[{"name":"time-series","series":30,"operations":4000}],"policies":[{"name":"none"}]}`
	first := resultsOf(t, parsed(t, spec))[0]
	log := filepath.Join(t.TempDir(), "events.jsonl")
	must.Do(t, os.WriteFile(log, first.events.Bytes(), 0o666))
	s := &Spec{Workloads: []Workload{{Name: "replay", Events: log}},
		Policies: []Policy{{Name: "none"}, {Name: "leveled"}}}
	again := resultsOf(t, s)
	a, b, leveled := end(first), end(again[0]), end(again[1])
	if a.RowSets != b.RowSets || a.Height != b.Height || a.MaxHeight != b.MaxHeight ||
		a.WrittenBytes != b.WrittenBytes {
		t.Errorf("replayed %+v, want %+v", b, a)
	}
	if leveled.Height*2 > a.Height || leveled.Merges == 0 {
		t.Errorf("merged %+v, of %+v", leveled, a)
	}
	for _, text := range []string{"", "{}\n", `{"kind":"flush"}`} {
		must.Do(t, os.WriteFile(log, []byte(text), 0o666))
		must.Refuse(t, must.Err(Results(t.Context(), s, nil)), text, "is replayed")
	}
}

func end(r *Result) *Sample { return &r.Samples[len(r.Samples)-1] }

// The ratio bounds what merges write; one merge may exceed it.
func TestRewriteRatioBoundsMerges(t *testing.T) {
	for _, ratio := range []string{"1", "3"} {
		s := parsed(t, `{"flush_bytes":"32KB","rowset_bytes":"16KB","rewrite_ratio":`+ratio+`,
			"workloads":[{"name":"time-series","series":100,"operations":8000}],"policies":[{"name":"budgeted","budget":"64KB"}]}`)
		e := end(resultsOf(t, s)[0])
		if most := s.RewriteRatio + 1 + 0.2; e.WriteAmplification > most || e.WriteAmplification < most-0.8 {
			t.Errorf("ratio %s: write amplification %v", ratio, e.WriteAmplification)
		}
	}
}

// forever picks the same two rowsets whatever they are.
type forever struct{}

func (forever) Pick(l compaction.Layout, _ int64) (c compaction.Choice) {
	for _, r := range l.RowSets[:min(2, len(l.RowSets))] {
		c.RowSets = append(c.RowSets, r.ID)
	}
	return c
}

func TestMergesEndForAnyPolicy(t *testing.T) {
	s := parsed(t,
		`{"flush_bytes":"32KB","rowset_bytes":"16KB","workloads":[{"name":"uniform","operations":1000}],"policies":[{"name":"none"}]}`)
	w := &s.Workloads[0]
	x := &experiment{spec: s, workload: w, source: operations{w}, policy: forever{}, result: &Result{}}
	must.Do(t, x.run(t.Context(), func(int64) {}))
	if x.merges > 50 {
		t.Errorf("%d merges", x.merges)
	}
}
