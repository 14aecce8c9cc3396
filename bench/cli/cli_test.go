package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/work"
)

func TestMain(m *testing.M) {
	harness.Main(work.All())
	os.Exit(m.Run())
}

var tiny = harness.Scale{Name: "tiny", Rows: 2500, Commits: 60, Inserts: 3000, Gets: 400, Sets: 3, Passes: 2, Rounds: 2}

// runTiny runs all workloads with a corpus, or without.
func runTiny(t *testing.T, scale harness.Scale, corpus func(root string) string) *harness.Report {
	t.Helper()
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := harness.Config{Dir: t.TempDir()}
	c.Env = harness.Env{Scale: scale, Root: root, Corpus: corpus(root), Tool: filepath.Join(c.Dir, "oribi"+exeSuffix())}
	if err := buildTool(t.Context(), root, c.Env.Tool); err != nil {
		t.Fatal(err)
	}
	r, err := harness.Run(t.Context(), work.All(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readsNothing are the workloads that only open what lies there.
var readsNothing = map[string]bool{"open": true, "open-many": true, "replay": true}

func TestEveryPeerOfEveryWorkloadRunsAndAnswersAlike(t *testing.T) {
	r := runTiny(t, tiny, inputs.Corpus)
	if len(r.Workloads) != len(work.All()) {
		t.Fatalf("%d workloads ran, want %d", len(r.Workloads), len(work.All()))
	}
	for _, w := range r.Workloads {
		for _, p := range w.Peers {
			if len(p.Rounds) != tiny.Rounds {
				t.Errorf("%s/%s: %d rounds, want %d", w.Workload, p.Peer, len(p.Rounds), tiny.Rounds)
			}
			for _, m := range p.Rounds {
				if m.Value <= 0 || m.Checksum == "" && !readsNothing[w.Workload] {
					t.Errorf("%s/%s: value %v, checksum %q", w.Workload, p.Peer, m.Value, m.Checksum)
				}
			}
			if other, _, _ := strings.Cut(p.Peer, "-"); p.Ours == (other == "pebble" || other == "btree") {
				t.Errorf("%s/%s: Ours is %v", w.Workload, p.Peer, p.Ours)
			}
		}
	}
	var table, text bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back harness.Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || len(back.Workloads) != len(r.Workloads) {
		t.Errorf("the JSON form does not read back: %v", err)
	}
	for _, w := range r.Workloads {
		if !strings.Contains(table.String(), "\n"+w.Workload+": ") {
			t.Errorf("the table has no %s:\n%s", w.Workload, &table)
		}
	}
}

func TestWithoutCorpusTheCutsInTheRepositoryAreUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("runs all workloads once more")
	}
	scale := harness.Scales["small"]
	scale.Rounds, scale.Passes, scale.Gets, scale.Inserts, scale.Commits = 1, 1, 40, 1000, 40
	r := runTiny(t, scale, func(string) string { return "" })
	for _, w := range r.Workloads {
		if w.Workload == "write" && !strings.HasPrefix(w.Peers[0].Rounds[0].Checksum, "3000 rows ") {
			t.Errorf("write answers %q, want the 3,000 rows of the cut", w.Peers[0].Rounds[0].Checksum)
		}
	}
}

func TestFlagsMayStandBehindNames(t *testing.T) {
	s, names, err := parse([]string{"get", "--scale", "small", "open", "--rounds=3"})
	if err != nil || s.scale != "small" || s.rounds != 3 || strings.Join(names, " ") != "get open" {
		t.Errorf("got %+v, %q, %v", s, names, err)
	}
	for _, bad := range [][]string{{"--scale", "huge"}, {"--format", "csv"}} {
		if _, _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
