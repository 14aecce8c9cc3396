package cli

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/work"
	"github.com/oribi-db/oribi/internal/must"
)

// moduleDir is the directory of the engine's module.
var moduleDir = filepath.Join("..", "..")

// readRoot reads a file of the engine's module.
func readRoot(t *testing.T, name string) string {
	t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(moduleDir, filepath.FromSlash(name))))(t)
	return string(b)
}

// TestPagesHaveTheStoredFigures compares docs/performance.md and README.md with the results in
// testdata.
func TestPagesHaveTheStoredFigures(t *testing.T) {
	f := must.Get(readFigures(moduleDir))(t)
	for name, text := range map[string]string{figuresPage: f.page(), readmePage: f.readme()} {
		page := readRoot(t, name)
		want, err := withFigures(page, text)
		must.Do(t, err, name)
		if page != want {
			t.Errorf("%s does not have the figures of testdata: run go run -C bench . page", name)
		}
	}
	for _, h := range headline {
		if f.find(h.workload) == nil {
			t.Errorf("no figure of %s", h.workload)
		}
	}
}

// TestPerformancePageSaysWhereOribiIsSlower looks for each workload whose ratio is below 1 in the
// last section of the page, and for sections and pages that grow.
func TestPerformancePageSaysWhereOribiIsSlower(t *testing.T) {
	page := readRoot(t, figuresPage)
	if n := strings.Count(page, "\n"); n > 200 {
		t.Errorf("%s has %d lines, want at most 200", figuresPage, n)
	}
	_, slower, found := strings.Cut(page, "\n## Where Oribi is slower\n")
	if !found {
		t.Fatalf("%s has no section about what is slower", figuresPage)
	}
	var names []string
	for _, line := range strings.Split(slower, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || strings.HasPrefix(line, "|---") {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			names = append(names, m[1])
		}
		if n := strings.Count(cells[1], ". ") + 1; n > 3 {
			t.Errorf("%s: %d sentences, want at most 3", cells[0], n)
		}
	}
	f := must.Get(readFigures(moduleDir))(t)
	for i := range f.rows {
		r := &f.rows[i]
		var ratio float64
		if _, err := fmt.Sscan(r.Ratio, &ratio); err != nil || ratio >= 1 {
			continue
		}
		explained := false
		for _, name := range names {
			match := must.Get(path.Match(name, r.Workload))(t)
			explained = explained || match
		}
		if !explained {
			t.Errorf("%s does not say why %s is slower", figuresPage, r.Workload)
		}
	}
}

// complete returns the results of a run of all workloads with all peers.
func complete(all []harness.Workload) *harness.Report {
	r := &harness.Report{Version: 1, Scale: "hour", Rounds: leastRounds, Machine: "linux/amd64",
		Commit: "0123456789ab", Started: time.Unix(1_800_000_000, 0).UTC()}
	for _, w := range all {
		res := harness.WorkloadResult{Workload: w.Name, Unit: w.Unit, More: w.More}
		for i, p := range w.Peers {
			got := harness.PeerResult{Peer: p.Name, Ours: p.Ours}
			for range r.Rounds {
				got.Rounds = append(got.Rounds, harness.Measurement{Value: float64(i + 1)})
			}
			got.Median = float64(i + 1)
			res.Peers = append(res.Peers, got)
		}
		r.Workloads = append(r.Workloads, res)
	}
	return r
}

// TestPageOfACompleteRun writes the pages from results of one run: all workloads are there, and no
// row names a run.
func TestPageOfACompleteRun(t *testing.T) {
	all := work.All(nil)
	root := t.TempDir()
	for _, name := range []string{figuresPage, readmePage, keptResults} {
		name = filepath.Join(root, filepath.FromSlash(name))
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must.Do(t, os.WriteFile(name, []byte("a\n"+beginMark+"old\n"+endMark+"z\n"), 0o600))
	}
	results := filepath.Join(root, resultsFile)
	must.Do(t, writeFile(results, complete(all).WriteJSON))
	must.Do(t, keepResults(root, results, all))
	must.Do(t, writePages(root))
	text := must.Get(os.ReadFile(filepath.Join(root, filepath.FromSlash(figuresPage))))(t)
	page := string(text)
	if !strings.HasPrefix(page, "a\n"+beginMark+"\n### Twelve figures\n") ||
		!strings.HasSuffix(page, "\n"+endMark+"z\n") || strings.Contains(page, "\nold\n") {
		t.Errorf("the page is\n%s", page)
	}
	run := "- Run: commit 0123456789ab, scale hour, 3 rounds, linux/amd64, 2027-01-15 08:00\n"
	if strings.Contains(page, "| run |") || !strings.Contains(page, run) {
		t.Errorf("the page does not name its only run:\n%s", page)
	}
	if n := strings.Count(page, "\n"); n > 165 { // the rest of the page has 35, and the whole 200 at most
		t.Errorf("the tables take %d lines", n)
	}
	f := figuresOf(complete(all))
	f.page()
	for i := range f.rows {
		if r := &f.rows[i]; r.Ratio != "" && !f.used[r.Workload] {
			t.Errorf("%s is in no table", r.Workload)
		}
	}
	readme, err := os.ReadFile(filepath.Join(root, readmePage))
	want := "| read of a row by key, 16 columns, cached | 1 µs | pebble: 5 µs | 5 |\n"
	must.Do(t, err, "README.md")
	must.Contain(t, string(readme), want, "README.md")
}

func TestUnfitResultsAreNotPublished(t *testing.T) {
	all := work.All(nil)
	for name, c := range map[string]struct {
		spoil func(r *harness.Report)
		want  string
	}{
		"nothing wrong":   {func(*harness.Report) {}, ""},
		"small":           {func(r *harness.Report) { r.Scale = "small" }, "scale small"},
		"few rounds":      {func(r *harness.Report) { r.Rounds = 2 }, "2 rounds"},
		"no commit":       {func(r *harness.Report) { r.Commit = "" }, "commit"},
		"changed files":   {func(r *harness.Report) { r.Commit += harness.Changed }, "commit"},
		"lacks a peer":    {func(r *harness.Report) { w := &r.Workloads[3]; w.Peers = w.Peers[1:] }, all[3].Name},
		"failed peer":     {func(r *harness.Report) { r.Workloads[4].Peers[1].Failed = "killed" }, all[4].Name},
		"lacks a round":   {func(r *harness.Report) { p := &r.Workloads[5].Peers[0]; p.Rounds = p.Rounds[1:] }, all[5].Name},
		"lacks workloads": {func(r *harness.Report) { r.Workloads = r.Workloads[1:] }, all[0].Name},
	} {
		t.Run(name, func(t *testing.T) {
			r := complete(all)
			c.spoil(r)
			err := publishable(r, all)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestFiguresReplaceTextBetweenMarks(t *testing.T) {
	got, err := withFigures("a\n"+beginMark+"old\n"+endMark+"z\n", "| new |\n")
	if want := "a\n" + beginMark + "\n| new |\n\n" + endMark + "z\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, page := range []string{"", beginMark, endMark} {
		if got, err := withFigures(page, "| new |"); err == nil {
			t.Errorf("page %q without marks became %q", page, got)
		}
	}
}

func TestFloorsOfRatesAreMinimums(t *testing.T) {
	for _, w := range work.All(nil) {
		for _, f := range w.Floors {
			if f.Metric == "" && f.Workload == "" && f.Least != w.More {
				t.Errorf("%s: floor of %s against %s: Least is %t", w.Name, f.Peer, f.Against, f.Least)
			}
		}
	}
}
