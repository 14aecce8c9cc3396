package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

func TestRowsRoundTripThroughText(t *testing.T) {
	for _, r := range []row{
		{commit: "0123456789", proof: "model", seeds: spans{{1, 40}},
			counts: counts{{N: 40, Unit: "histories"}, {N: 1_234_567, Unit: "steps after recovery"}}},
		{commit: "c and changes", proof: "fuzz", target: "cfile.FuzzFile", seeds: spans{{3, 3}, {7, 9}},
			counts:   counts{{N: 999, Unit: "executions"}},
			failures: []string{"seed 9", "guided"}},
		{commit: "c", proof: "fuzz", target: "bloom.FuzzFile", failures: []string{"guided"}},
	} {
		must.Equal(t, must.Get(parseRow(r.String()))(t), r, &r, "became")
	}
}

func TestRowString(t *testing.T) {
	r := row{commit: "c", proof: "fuzz", target: "a.FuzzB", seeds: spans{{1, 10}, {12, 12}},
		counts: counts{{N: 10_000_000, Unit: "executions"}, {N: 7, Unit: "guided executions"}}}
	if got, want := r.String(),
		"| c | fuzz | a.FuzzB | 1–10, 12 | 10,000,000 executions, 7 guided executions | no failure |"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLedgerMergesRowsOfTheSameCommitAndProof(t *testing.T) {
	name := filepath.Join(t.TempDir(), "docs", "ledger.md")
	add := func(commit, target string, seeds span, n int64, failures ...string) {
		t.Helper()
		r := row{commit: commit, proof: "fuzz", target: target, seeds: spans{seeds},
			counts: counts{{N: n, Unit: "executions"}}, failures: failures}
		must.Do(t, addToLedger(name, r))
	}
	add("c1", "a", span{1, 2}, 10)
	add("c1", "b", span{1, 1}, 5)
	page := must.Get(os.ReadFile(name))(t)
	must.Do(t, os.WriteFile(name, []byte("# Another title\n"+string(page)+"\nAnd an end.\n"), 0o666))
	add("c1", "a", span{3, 3}, 100, "seed 3")
	add("c2", "a", span{4, 4}, 1)
	add("c1", "a", span{8, 9}, 1000, "seed 9", "seed 3")
	page = must.Get(os.ReadFile(name))(t)
	want := `
| c1 | fuzz | a | 1–3, 8–9 | 1,110 executions | fails: seed 3, seed 9 |
| c1 | fuzz | b | 1 | 5 executions | no failure |
| c2 | fuzz | a | 4 | 1 executions | no failure |

And an end.
`
	text := string(page)
	if !strings.HasSuffix(text, tableLine+want) || !strings.HasPrefix(text, "# Another title\n# Campaigns\n") {
		t.Errorf("the page is\n%s", text)
	}
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); len(files) != 1 {
		t.Errorf("files other than the ledger: %v", files)
	}
}

func TestDamagedLedgerIsNotChanged(t *testing.T) {
	good := newLedger + tableHead + "\n" + tableLine + "\n"
	for what, page := range map[string]string{
		"no table":   newLedger,
		"empty":      "",
		"cells":      good + "| c | fuzz | a | 1 | no failure |\n",
		"seeds":      good + "| c | fuzz | a | 1-2 | 3 executions | no failure |\n",
		"seeds fall": good + "| c | fuzz | a | 2–1 | 3 executions | no failure |\n",
		"count":      good + "| c | fuzz | a | 1 | many executions | no failure |\n",
		"result":     good + "| c | fuzz | a | 1 | 3 executions | fine |\n",
	} {
		name := filepath.Join(t.TempDir(), "ledger.md")
		must.Do(t, os.WriteFile(name, []byte(page), 0o666))
		must.Refuse(t, addToLedger(name, row{commit: "c"}), what)
		must.Equal(t, string(must.Get(os.ReadFile(name))(t)), page, what, "the file has changed")
	}
}

// The next campaign must be able to add to the ledger of this repository.
func TestLedgerOfTheRepositoryIsValid(t *testing.T) {
	root := must.Get(moduleRoot())(t)
	must.Do(t, must.Err(readLedger(filepath.Join(root, "docs", "safety.md"))))
}

func TestSpansJoin(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "1", "1"}, {"1", "2", "1–2"}, {"1–5", "3–9", "1–9"}, {"4", "1–2", "1–2, 4"},
		{"1–2, 6", "3–5", "1–6"}, {"1–9", "3", "1–9"},
	} {
		a, err1 := parseSpans(c.a)
		b, err2 := parseSpans(c.b)
		if got := a.plus(b).String(); err1 != nil || err2 != nil || got != c.want {
			t.Errorf("%s and %s: %s, want %s (%v, %v)", c.a, c.b, got, c.want, err1, err2)
		}
	}
}

func TestOnlyWorkerLinesAreCounted(t *testing.T) {
	seed, sum, ok := doneLine("fuzztest: seed 5: 1000000 executions\n")
	if !ok || seed != 5 || sum.of("executions") != 1_000_000 {
		t.Errorf("%d %v %v", seed, sum, ok)
	}
	for _, line := range []string{"", "PASS\n", "fuzztest: FuzzA: seed 5: execution 3 fails; again: x\n",
		"a: seed x: 1 b\n", "seed 5: 1 b\n", "a: seed 5: -1 b\n"} {
		if _, _, ok := doneLine(line); ok {
			t.Errorf("%q counts", line)
		}
	}
}
