package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/invariant"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest"
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// toyProofs do no work; some of them fail.
var toyProofs = []prooftest.Proof{
	{Name: "good", Run: func(seed uint64, dir string) prooftest.Result {
		err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o666)
		return prooftest.Result{Err: err,
			Tallies: []prooftest.Tally{{N: 1, Unit: "things"},
				{N: int64(seed), Unit: "sums"}, {N: 0, Unit: "nothings"}}}
	}},
	{Name: "finite", Seeds: 20, Run: func(seed uint64, _ string) prooftest.Result {
		return prooftest.Result{Tallies: []prooftest.Tally{{N: 1, Unit: "things"}}}
	}},
	{Name: "wrong", Run: func(seed uint64, dir string) (r prooftest.Result) {
		if r.Tallies = []prooftest.Tally{{N: 1, Unit: "things"}}; seed == 18 {
			r.Err, r.Script = errors.New("18 is wrong"), &script.Script{}
		}
		return r
	}},
	{Name: "panics", Run: func(seed uint64, dir string) prooftest.Result {
		if seed == 3 { // where this goroutine cannot recover it
			go panic("3 panics")
			select {}
		}
		return prooftest.Result{Tallies: []prooftest.Tally{{N: 1, Unit: "things"}}}
	}},
}

// Worker processes run the test binary itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerName {
		os.Exit(run(context.Background(), os.Args[1:], toyProofs, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) (code int, log string) {
	t.Helper()
	var b bytes.Buffer
	code = run(context.Background(), args, toyProofs, io.Discard, &b)
	return code, b.String()
}

// tableOf returns the rows of the ledger's table, without its header.
func tableOf(t *testing.T, name string) string {
	t.Helper()
	page := must.Get(os.ReadFile(name))(t)
	_, table, _ := strings.Cut(string(page), tableLine+"\n")
	return table
}

func TestResumedCampaignContinuesAfterItsLedger(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.md")
	good := func(args ...string) (int, string) {
		return command(t, append([]string{"good", "--ledger", ledger, "--commit", "c"}, args...)...)
	}
	if code, log := good("--seeds", "20"); code != 0 {
		t.Fatal(log)
	}
	if code, log := good("--seeds", "1"); code != 2 || !strings.Contains(log, "--resume") {
		t.Errorf("seeds already in the ledger: %d, %s", code, log)
	}
	if code, log := good("--seeds", "5", "--resume"); code != 0 {
		t.Fatal(log)
	}
	if code, log := good("--seed", "100", "--seeds", "1", "--resume"); code != 0 {
		t.Fatal(log)
	}
	must.Equal(t, tableOf(t, ledger), "| c | good |  | 1–25, 100 | 26 things, 425 sums | no failure |\n")
	if code, log := good("--seeds", "1", "--resume", "--commit", "d"); code != 0 {
		t.Fatal(log)
	}
	if got := tableOf(t, ledger); !strings.HasSuffix(got, "| d | good |  | 101 | 1 things, 101 sums | no failure |\n") {
		t.Errorf("at another commit: %s", got)
	}
}

func TestCampaignEndsAfterLastSeedOfProof(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.md")
	for _, args := range [][]string{{"--seeds", "3"}, {"--resume"}, {"--resume"}, {"--commit", "d", "--seed", "19"},
		{"--commit", "e", "--seed", "21"}} {
		if code, log := command(t,
			append([]string{"finite", "--ledger", ledger, "--commit", "c"}, args...)...); code != 0 {
			t.Fatal(args, code, log)
		}
	}
	want := "| c | finite |  | 1–20 | 20 things | no failure |\n| d | finite |  | 19–20 | 2 things | no failure |\n"
	must.Equal(t, tableOf(t, ledger), want)
}

func TestLedgerRecordsFailuresWithSeeds(t *testing.T) {
	for _, c := range []struct{ proof, seed, before, says string }{
		{"wrong", "18", "1–18 | 17 things", "18 is wrong"},
		{"panics", "3", "1–3 | 2 things", "3 panics"},
	} {
		ledger := filepath.Join(t.TempDir(), "ledger.md")
		t.Setenv("TMPDIR", t.TempDir())
		t.Setenv("TMP", t.TempDir())
		code, log := command(t, c.proof, "--ledger", ledger, "--commit", "c")
		if code != 1 || !strings.Contains(log, c.says) ||
			!strings.Contains(log, "to repeat: go run ./internal/proof "+c.proof+" --seed "+c.seed+" --seeds 1") {
			t.Errorf("%s: exit code %d\n%s", c.proof, code, log)
		}
		must.Equal(t, tableOf(t, ledger), "| c | "+c.proof+" |  | "+c.before+" | fails: seed "+c.seed+" |\n")
	}
}

func TestCampaignStopsAtDeadlineOrInterrupt(t *testing.T) {
	ledger := filepath.Join(t.TempDir(), "ledger.md")
	if code, log := command(t, "good", "--ledger", ledger, "--commit", "c", "--for", "1ms"); code != 0 {
		t.Error(code, log)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	must.Equal(t, run(ctx, []string{"good", "--ledger", ledger, "--commit", "c", "--resume"}, toyProofs,
		io.Discard, io.Discard), 0, "interrupted")
}

func TestInvalidArgumentsAreReported(t *testing.T) {
	for _, args := range [][]string{{}, {"--for", "1s"}, {"none", "--ledger", ""}, {"good", "--fro", "1s"},
		{"good", "1s"}, {"fuzz", "--ledger", "", "--target", "cfile.FuzzNone"}} {
		if code, log := command(t, args...); code != 2 || log == "" {
			t.Errorf("%q: %d, %q", args, code, log)
		}
	}
}

// FuzzToyPlanted fails if PROOF_PLANTED is set.
func FuzzToyPlanted(f *testing.F) {
	f.Add([]byte("abc"))
	planted := os.Getenv("PROOF_PLANTED") != ""
	fuzztest.Run(f, func(t *testing.T, data []byte) {
		if planted && len(data) > 2 && data[1] == 0xff {
			t.Fatal("planted")
		}
	})
}

func toyCampaign(t *testing.T, log io.Writer) *campaign {
	c := &campaign{options: options{ledger: filepath.Join(t.TempDir(), "ledger.md"), commit: "c", resume: true},
		proof: fuzzName, log: log}
	return c
}

func TestFuzzCampaignCountsExecutionsBySeeds(t *testing.T) {
	program := must.Get(os.Executable())(t)
	var log bytes.Buffer
	c := toyCampaign(t, &log)
	toy := fuzzTarget{"internal/proof", "FuzzToyPlanted"}
	if invariant.Race {
		t.Skip("a million executions of one goroutine")
	}
	for _, n := range []int64{1000, executionsOfSeed + 500} {
		must.Do(t, c.executeTarget(context.Background(), toy, program, t.TempDir(), n), log.String())
	}
	want := "| c | fuzz | internal/proof.FuzzToyPlanted | 1–3 | 1,001,500 executions | no failure |\n"
	must.Equal(t, tableOf(t, c.ledger), want)
	must.Equal(t, must.Get(c.have(toy.String(), unitExecutions))(t), 1_001_500)
}

func TestFuzzCampaignFindsRepeatableFailure(t *testing.T) {
	program := must.Get(os.Executable())(t)
	t.Setenv("PROOF_PLANTED", "1")
	var log bytes.Buffer
	c, dir := toyCampaign(t, &log), t.TempDir()
	toy := fuzzTarget{"internal/proof", "FuzzToyPlanted"}
	must.Fail(t, c.executeTarget(context.Background(), toy, program, dir, executionsOfSeed), errFailed, log.String())
	if !regexp.MustCompile(`to repeat: go test \./internal/proof -run '\^FuzzToyPlanted\$' -fuzztest.seed 1 `).MatchString(log.String()) {
		t.Errorf("no replay:\n%s", log.String())
	}
	if got := tableOf(t, c.ledger); !strings.HasSuffix(got, "| fails: seed 1 |\n") {
		t.Error(got)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "testdata", "fuzz", toy.name, "*")); len(kept) != 1 {
		t.Errorf("kept inputs: %v", kept)
	}
	again := toyCampaign(t, io.Discard)
	must.Fail(t, again.executeTarget(context.Background(), toy, program, t.TempDir(),
		executionsOfSeed), errFailed, "the same seed does not fail again:")
}

// A target that passes its body to f.Fuzz directly would be missing from the campaigns.
func TestEveryFuzzTargetOfTheModuleIsFoundAndRunsThroughFuzztest(t *testing.T) {
	root := must.Get(moduleRoot())(t)
	targets, err := fuzzTargets(root, nil)
	if err != nil || len(targets) < 33 {
		t.Fatal(len(targets), err)
	}
	of := map[string]int{} // targets of each package
	for _, target := range targets {
		of[target.pkg]++
	}
	for _, pkg := range []string{"cfile", "bloom", "delta", "internal/encoding", "internal/wal", "internal/meta",
		"change", "internal/record", "internal/compress", "internal/coding"} {
		must.Equal(t, of[pkg] > 0, true, pkg, "has targets")
	}
	must.Equal(t, len(must.Get(fuzzTargets(root, []string{"cfile"}))(t)), of["cfile"], "targets of cfile")
	direct := regexp.MustCompile(`\bf\.Fuzz\(`)
	for pkg := range of {
		files := must.Get(filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*_test.go")))(t)
		for _, name := range files {
			must.Equal(t, direct.Match(must.Get(os.ReadFile(name))(t)), false, name, "calls f.Fuzz")
		}
	}
}
