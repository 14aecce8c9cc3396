package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/work"
	"github.com/oribi-db/oribi/internal/must"
)

func TestMain(m *testing.M) {
	harness.Main(work.All(nil))
	os.Exit(m.Run())
}

var tiny = harness.Scale{Name: "tiny", Rows: 2500, Table: 1500, Commits: 60, Inserts: 3000, Gets: 400,
	Sets: 3, Passes: 2, Rounds: 1}

// all returns the workloads with the peers that need no nested module.
func all(t *testing.T, names ...string) []harness.Workload {
	t.Helper()
	workloads := must.Get(harness.Find(work.All(nil), names))(t)
	var nested []harness.Missing
	for _, module := range harness.Modules(workloads) {
		nested = append(nested, harness.Missing{Peer: module, Module: module})
	}
	return harness.Leave(workloads, nested)
}

// runTiny runs workloads with or without a corpus.
func runTiny(
	t *testing.T, workloads []harness.Workload, scale harness.Scale, corpus func(root string) string,
) *harness.Report {
	t.Helper()
	root := must.Get(moduleRoot(t.Context()))(t)
	c := harness.Config{Dir: t.TempDir()}
	c.Env = harness.Env{Scale: scale, Root: root, Corpus: corpus(root), Tool: filepath.Join(c.Dir, "oribi"+exeSuffix())}
	must.Do(t, buildTool(t.Context(), root, c.Env.Tool))
	return must.Get(harness.Run(t.Context(), workloads, c))(t)
}

// CI runs all workloads at small scale; this test runs some of each kind.
func TestPeersGiveEqualAnswers(t *testing.T) {
	workloads := all(t, "load-random", "get", "range", "filter-none", "q1", "update-column", "ycsb-d-latest",
		"travel-4", "commit-sync", "open", "apply",
		"kudu-scan-lineitem", "kudu-scan-large-column")
	if testing.Short() {
		workloads = all(t, "get", "q1", "ycsb-d-latest")
	}
	r := runTiny(t, workloads, tiny, inputs.Corpus)
	must.Equal(t, len(r.Workloads), len(workloads))
	for _, w := range r.Workloads {
		for _, p := range w.Peers {
			must.Equal(t, len(p.Rounds), tiny.Rounds, w.Workload, p.Peer)
			for _, m := range p.Rounds {
				if m.Value <= 0 || m.Checksum == "" {
					t.Errorf("%s/%s: value %v, checksum %q", w.Workload, p.Peer, m.Value, m.Checksum)
				}
			}
		}
	}
	dir := t.TempDir()
	s := settings{out: dir}
	must.Do(t, s.keep(r))
	for _, name := range []string{"table.md", "page.html"} {
		text := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		for _, w := range r.Workloads {
			must.Contain(t, string(text), w.Workload, name)
		}
	}
	f := must.Get(os.Open(filepath.Join(dir, "results.json")))(t)
	defer f.Close()
	must.Equal(t, len(must.Get(harness.ReadReport(f))(t).Workloads), len(r.Workloads), "reading the JSON report")
}

func TestRunsUseBundledInputsWithoutCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("repeats some workloads")
	}
	scale := harness.Scales["small"]
	scale.Passes, scale.Gets, scale.Inserts, scale.Commits, scale.Table = 1, 40, 1000, 40, 7000
	r := runTiny(t, all(t, "size", "write", "apply", "load-packages"), scale, func(string) string { return "" })
	for _, w := range r.Workloads {
		if w.Workload == "write" && !strings.HasPrefix(w.Peers[0].Rounds[0].Checksum, "3000 rows ") {
			t.Errorf("write answers %q, want 3,000 rows", w.Peers[0].Rounds[0].Checksum)
		}
	}
}

func TestProgramsOfAllPeersExist(t *testing.T) {
	for _, module := range harness.Modules(work.All(nil)) {
		must.Get(os.Stat(filepath.Join("..", module, "main.go")))(t)
	}
}

func TestFlagsMayFollowNames(t *testing.T) {
	s, err := parse([]string{"get", "--scale", "small", "open", "--rounds=3", "--workload",
		"size,sum", "--peer", "bbolt"})
	if err != nil || s.scale != "small" || s.rounds != 3 ||
		s.workloads.String() != "get,open,size,sum" || s.peers.String() != "bbolt" {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, bad := range [][]string{{"--scale", "huge"}, {"--format", "csv"}} {
		must.Refuse(t, must.Err(parse(bad)), bad)
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "use list, run, compare or page"},
		{[]string{"go"}, `unknown command "go"`},
		{[]string{"run", "nothing"}, `no workload "nothing"`},
		{[]string{"run", "--workload", "nothing-*"}, `no workload "nothing-*"`},
		{[]string{"run", "get", "--peer", "oracle"}, `no peer "oracle"`},
		{[]string{"run", "--scale", "full"}, `no scale "full"`},
		{[]string{"compare", "one"}, "OLD NEW"},
		{[]string{"compare", "none.json", "none.json"}, "none.json"},
	} {
		must.Contain(t, fmt.Sprint(command(t.Context(), work.All(nil), c.args)), c.want, c.args)
	}
}

func TestReportsOfAnotherVersionAreRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.json")
	must.Do(t, os.WriteFile(name, []byte(`{"version":99}`), 0o600))
	err := command(t.Context(), nil, []string{"compare", name, name})
	must.Contain(t, fmt.Sprint(err), name)
	must.Contain(t, fmt.Sprint(err), "version 99")
}

func TestFailedWriteKeepsOldResults(t *testing.T) {
	dir := t.TempDir()
	s := settings{out: dir}
	must.Do(t, s.keep(&harness.Report{Scale: "old"}))
	name := filepath.Join(dir, "results.json")
	err := writeFile(name, func(w io.Writer) error {
		w.Write([]byte("half of a report"))
		return syscall.ENOSPC
	})
	must.Fail(t, err, syscall.ENOSPC)
	if text, err := os.ReadFile(name); err != nil || !strings.Contains(string(text), `"scale": "old"`) {
		t.Errorf("the old results are gone: %q, %v", text, err)
	}
	must.Fail(t, must.Err(os.Stat(name+".part")), os.ErrNotExist, "an incomplete file is left")
	s.out = name // a file
	must.Contain(t, fmt.Sprint(s.keep(&harness.Report{})), "keep results", "results in a directory that is a file")
}

func TestTopLineSummarizesAProfile(t *testing.T) {
	const printed = "File: bench\nType: cpu\nShowing nodes\n      flat  flat%   sum%        cum   cum%\n     0.77s " +
		"16.18% 16.18%      2.97s 62.39%  github.com/oribi-db/oribi/delta.parseBlock\n" +
		"     0.02s  5.13%  46.15%     0.02s  5.13%  internal/encoding.swap8 (inline)\n         0     0% 100%      " +
		"2s 50%  runtime.main\n"
	must.Equal(t, topLine([]byte(printed)), "16.18% delta.parseBlock, 5.13% internal/encoding.swap8 (inline)")
	must.Equal(t, topLine([]byte("Showing nodes accounting for 0, 0% of 0 total\n")),
		"nothing", "for an empty profile")
}
