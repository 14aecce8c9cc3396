package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
)

func TestMain(m *testing.M) {
	Main(fakes, func(env *Env) error {
		if env.Corpus == lacking {
			return errors.New("a server is missing")
		}
		return nil
	})
	os.Exit(m.Run())
}

// lacking is the corpus directory of a run in which the program does not find what it needs.
const lacking = "lacking"

// note appends a line to a file that all peers share.
func note(env *Env, text string) error {
	f, err := os.OpenFile(env.Input("notes"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text + "\n")
	return err
}

// fake is a peer that records its steps, and checks that its directory contains what Prepare left.
func fake(name, checksum string) Peer {
	return Peer{Name: name, Ours: name == "a",
		Prepare: func(env *Env) error {
			if _, err := os.Stat(env.Path("left")); err == nil {
				return errors.New("the directory is not empty")
			}
			return errors.Join(note(env, "prepare "+name), os.WriteFile(env.Path("left"), nil, 0o600))
		},
		Measure: func(env *Env) (Measurement, error) {
			took, err := env.Clock(func() error { return note(env, "measure "+name) })
			return Measurement{Value: took.Seconds(), Checksum: checksum}, err
		}}
}

func commandPeer() Peer {
	p := fake("c", "")
	p.Measure = nil
	p.Command = func(env *Env) (*exec.Cmd, error) { return env.Self(context.Background()) }
	p.Act = func(env *Env) error { return os.WriteFile(env.Path("acted"), []byte("same"), 0o600) }
	p.Check = func(env *Env) (string, error) {
		b, err := os.ReadFile(env.Path("acted"))
		return string(b), err
	}
	return p
}

// dying is a peer that fails in the given round.
func dying(name string, round int) Peer {
	p := fake(name, "same")
	measure := p.Measure
	p.Measure = func(env *Env) (Measurement, error) {
		if env.Round == round {
			return Measurement{}, errors.New("no such luck")
		}
		return measure(env)
	}
	return p
}

// sharing is a peer that starts from another peer's state.
func sharing(name, store string) Peer {
	p := fake(name, "same")
	p.Store = store
	return p
}

// spoiling is a peer that removes what Prepare left.
func spoiling(name string) Peer {
	p := fake(name, "same")
	measure := p.Measure
	p.Measure = func(env *Env) (Measurement, error) {
		if err := os.Remove(env.Path("left")); err != nil {
			return Measurement{}, err
		}
		return measure(env)
	}
	return p
}

var fakes = []Workload{
	{Name: "plain", Peers: []Peer{fake("a", "same"), fake("b", "same")}},
	{Name: "fresh", Fresh: true, Peers: []Peer{fake("a", "same"), commandPeer()}},
	{Name: "unequal", Peers: []Peer{fake("a", "one"), fake("b", "other")}},
	{Name: "failing", Peers: []Peer{{Name: "a", Measure: func(*Env) (Measurement, error) {
		return Measurement{}, errors.New("no such luck")
	}}}},
	{Name: "large", MemoryLimit: 1, Peers: []Peer{fake("a", "")}},
	{Name: "idle", Peers: []Peer{{Name: "a", Measure: func(*Env) (Measurement, error) {
		return Measurement{Checksum: "same"}, nil
	}}}},
	{Name: "half", Peers: []Peer{dying("a", 1), fake("b", "same")}},
	{Name: "group-1", Group: "g", Peers: []Peer{fake("a", "same"), sharing("a2", "a")}},
	{Name: "group-2", Group: "g", Copies: true, Peers: []Peer{spoiling("a")}},
	{Name: "again", Of: "plain", Peers: []Peer{fake("a", "same")}, Derive: func(m Measurement) Measurement {
		m.Value = 7
		return m
	}},
	{Name: "full", Peers: []Peer{filling("a")}},
	{Name: "stuck", Peers: []Peer{{Name: "a", Act: stuck, Measure: func(env *Env) (m Measurement, err error) {
		c, err := env.Self(context.Background())
		if err == nil {
			_, err = c.Output()
		}
		return m, err
	}}}},
	{Name: "stuck-command", Peers: []Peer{{Name: "a", Act: stuck, Command: func(env *Env) (*exec.Cmd, error) {
		return env.Self(context.Background())
	}}}},
	{Name: "nested", Peers: []Peer{fake("a", ""), {Name: "far-1", Module: "far"}}},
}

// filling is a peer that finds the disk full.
func filling(name string) Peer {
	p := fake(name, "")
	p.Measure = func(env *Env) (Measurement, error) {
		return Measurement{}, fmt.Errorf("write %s: %w", env.Path("left"), syscall.ENOSPC)
	}
	return p
}

// stuckVariable contains the address to which a process that never ends by itself connects.
const stuckVariable = "ORIBI_BENCH_TEST_STUCK"

func stuck(*Env) error {
	c, err := net.Dial("tcp", os.Getenv(stuckVariable))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

// runFake runs one of the fakes and returns its report and notes.
func runFake(t *testing.T, name string, rounds int) (*Report, string, error) {
	t.Helper()
	return runFakes(t, []string{name}, rounds)
}

func runFakes(t *testing.T, names []string, rounds int) (*Report, string, error) {
	t.Helper()
	w := must.Get(Find(fakes, names))(t)
	dir := t.TempDir()
	r, err := Run(t.Context(), w, Config{Dir: dir, Rounds: rounds})
	notes, _ := os.ReadFile(filepath.Join(dir, "inputs", "notes"))
	onlyInputs(t, dir)
	return r, strings.ReplaceAll(strings.TrimSpace(string(notes)), "\n", ", "), err
}

// onlyInputs checks that a run left nothing else.
func onlyInputs(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "inputs" {
		t.Errorf("the run left %v, %v", left, err)
	}
}

func TestFullDiskEndsTheRunAndKeepsEarlierResults(t *testing.T) {
	r, notes, err := runFakes(t, []string{"plain", "full", "fresh"}, 1)
	if err == nil || !errors.Is(err, errFull) || strings.Contains(err.Error(), "\n") ||
		!strings.Contains(err.Error(), "full: the disk is full: full/a: measure") {
		t.Errorf("got %v", err)
	}
	must.Equal(t, len(r.Workloads), 1, r.Workloads)
	must.Equal(t, r.Workloads[0].Workload, "plain", r.Workloads)
	must.Equal(t, notes, "prepare a, prepare b, measure a, measure b, prepare a")
}

func TestCanceledRunEndsProcessesAndKeepsEarlierResults(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("child processes are not killed on this system")
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	t.Setenv(stuckVariable, l.Addr().String())
	for _, name := range []string{"stuck", "stuck-command"} {
		w := must.Get(Find(fakes, []string{"plain", name}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			c, err := l.Accept()
			cancel()
			if err == nil {
				io.Copy(io.Discard, c) // until the process at the other end is gone
			}
			ended <- err
		}()
		dir := t.TempDir()
		r, err := Run(ctx, w, Config{Dir: dir, Rounds: 1})
		must.Fail(t, err, context.Canceled, name)
		must.Equal(t, len(r.Workloads), 1, name)
		must.Do(t, <-ended, name)
		onlyInputs(t, dir)
	}
}

// A resumed run measures only workloads that lack a peer or a round, and keeps the others' results.
func TestResumedRunMeasuresWhatIsMissing(t *testing.T) {
	w := must.Get(Find(fakes, []string{"plain", "again"}))(t)
	run := func(workloads []Workload, commit string, earlier *Report) (*Report, string, error) {
		dir := t.TempDir()
		r, err := Run(t.Context(), workloads, Config{Dir: dir, Rounds: 1, Commit: commit, Resume: earlier})
		notes, _ := os.ReadFile(filepath.Join(dir, "inputs", "notes"))
		return r, strings.Join(strings.Fields(strings.ReplaceAll(string(notes), " ", "-")), " "), err
	}
	first, notes := must.Get2(run(w[:1], "c0ffee", nil))(t)
	must.Equal(t, notes, "prepare-a prepare-b measure-a measure-b")
	value := first.Workloads[0].Peers[0].Rounds[0].Value
	all, notes, err := run(w, "c0ffee", first)
	if err != nil || notes != "" || len(all.Workloads) != 2 { // again has the rounds of plain
		t.Fatalf("%s, %d workloads, %v", notes, len(all.Workloads), err)
	}
	must.Equal(t, all.Workloads[0].Peers[0].Rounds[0].Value, value)
	all.Workloads[0].Peers[1].Failed = "killed"
	all, notes, err = run(w, "c0ffee", all)
	if err != nil || notes != "prepare-a prepare-b measure-a measure-b" || len(all.Workloads) != 2 || !all.Complete(&w[0]) {
		t.Errorf("after a failure: %s, %d workloads, %v", notes, len(all.Workloads), err)
	}
	for _, commit := range []string{"decade", "", "c0ffee" + Changed} {
		all.Commit = commit
		if commit == "decade" {
			commit = "c0ffee"
		}
		if _, notes, err := run(w, commit, all); err == nil || notes != "" {
			t.Errorf("results of %q continued by a program of %q: %s, %v", all.Commit, commit, notes, err)
		}
	}
}

func TestDerivedWorkloadUsesTheRoundsOfAnother(t *testing.T) {
	r, notes, err := runFakes(t, []string{"plain", "again"}, 2)
	must.Do(t, err)
	must.Equal(t, notes, "prepare a, prepare b, measure a, measure b, measure a, measure b")
	if p := r.Workloads[1].Peers[0]; len(p.Rounds) != 2 || p.Median != 7 || p.Rounds[0].Checksum != "same" {
		t.Errorf("derived: %+v", p)
	}
	if _, notes, err = runFake(t, "again", 1); err != nil || notes != "prepare a, measure a" {
		t.Errorf("alone: %s, %v", notes, err)
	}
}

func TestReportNamesTheLongestWorkloads(t *testing.T) {
	r, _ := must.Get2(runFakes(t, []string{"plain", "fresh"}, 2))(t)
	all := 0.0
	for _, w := range r.Workloads {
		for _, p := range w.Peers {
			if p.Seconds <= 0 || (p.Prepare > 0) != (w.Workload == "plain") {
				t.Errorf("%s/%s: prepared in %v s, measured in %v s", w.Workload, p.Peer, p.Prepare, p.Seconds)
			}
			all += p.Prepare + p.Seconds
		}
	}
	if all > r.Seconds || r.Seconds <= 0 {
		t.Errorf("peers took %v s of %v", all, r.Seconds)
	}
	r.Seconds, r.Workloads[0].Seconds, r.Workloads[1].Seconds = 4000, 1.25, 100
	if got, want := r.took(),
		"The run took 1h6m40s. Longest workloads: fresh 1m40s, plain 1.3s. Longest peers: "; !strings.HasPrefix(got,
		want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRoundsOfPeersAreInterleaved(t *testing.T) {
	r, notes := must.Get2(runFake(t, "plain", 3))(t)
	want := "prepare a, prepare b, measure a, measure b, measure a, measure b, measure a, measure b"
	must.Equal(t, notes, want)
	for _, p := range r.Workloads[0].Peers {
		if len(p.Rounds) != 3 || p.Median <= 0 {
			t.Errorf("%s: %d rounds, median %v", p.Peer, len(p.Rounds), p.Median)
		}
	}
}

func TestFreshWorkloadsPrepareEachRoundInAnEmptyDirectory(t *testing.T) {
	r, notes := must.Get2(runFake(t, "fresh", 2))(t)
	must.Equal(t, notes, "prepare a, measure a, prepare c, prepare a, measure a, prepare c")
	if c := r.Workloads[0].Peers[1].Rounds[0]; c.Value <= 0 || c.Checksum != "same" {
		t.Errorf("the command's round: %+v", c)
	}
}

func TestDifferentAnswersFailTheRun(t *testing.T) {
	must.Contain(t, fmt.Sprint(must.Err2(runFake(t, "unequal", 1))), "b answers other, but a answers one")
}

func TestFailureOfAPeerNamesItAndItsReason(t *testing.T) {
	if _, _, err := runFake(t, "failing", 1); err == nil || !strings.Contains(err.Error(), "failing/a: measure:") ||
		!strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v", err)
	}
}

func TestFailedPeerKeepsItsRoundsAndOthersContinue(t *testing.T) {
	r, _, err := runFake(t, "half", 3)
	must.Contain(t, fmt.Sprint(err), "half/a")
	a, b := &r.Workloads[0].Peers[0], &r.Workloads[0].Peers[1]
	if len(a.Rounds) != 1 || !strings.Contains(a.Failed, "no such luck") || len(b.Rounds) != 3 || b.Failed != "" {
		t.Errorf("a has %d rounds and failed by %q, b has %d and %q", len(a.Rounds), a.Failed, len(b.Rounds), b.Failed)
	}
	for name, write := range map[string]func(io.Writer) error{"table": r.WriteTable,
		"markdown": r.WriteMarkdown, "page": r.WritePage} {
		var out bytes.Buffer
		if err := write(&out); err != nil || !strings.Contains(out.String(), "no such luck") {
			t.Errorf("%s does not report the failure: %v\n%s", name, err, &out)
		}
	}
}

func TestTableHasAColumnForEachFrequentPeer(t *testing.T) {
	r := &Report{Rounds: 3}
	rounds := func(peer string, ours bool, values ...float64) PeerResult {
		p := PeerResult{Peer: peer, Ours: ours}
		for _, v := range values {
			p.Rounds = append(p.Rounds, Measurement{Value: v})
		}
		p.Median = median(values)
		return p
	}
	for _, w := range []string{"one", "two", "three"} {
		peers := []PeerResult{rounds("us", true, 10, 20, 30), rounds("often", false, 20, 10, 30)}
		if w != "two" {
			peers = append(peers, rounds("seldom", false, 1, 2, 3))
		}
		r.Workloads = append(r.Workloads,
			WorkloadResult{Workload: w, More: w != "three",
				Peers: append(peers, rounds("never", false), rounds("best", false, 40, 80, 90))})
	}
	var out strings.Builder
	must.Do(t, r.WriteMarkdown(&out))
	want := "| workload | ours | often | best |\n|---|---|---:|---:|\n" +
		"| one | us | 1 | 0.25 |\n| two | us | 1 | 0.25 |\n| three | us | 1 | 4 |\n"
	must.Contain(t, out.String(), want)
}

func TestGroupIsPreparedOnceAndCopiesDoNotChangeIt(t *testing.T) {
	r, notes := must.Get2(runFakes(t, []string{"group-1", "group-2"}, 2))(t)
	must.Equal(t, notes, "prepare a, measure a, measure a2, measure a, measure a2, measure a, measure a")
	must.Equal(t, len(r.Workloads), 2)
}

func TestSelectKeepsOurPeers(t *testing.T) {
	for _, c := range []struct{ peers, want string }{
		{"b", "plain a b, unequal a b, half a b"},
		{"far", "nested a far-1"},
	} {
		got := must.Get(Select(fakes, []string{c.peers}))(t)
		var names []string
		for _, w := range got {
			name := w.Name
			for _, p := range w.Peers {
				name += " " + p.Name
			}
			names = append(names, name)
		}
		must.Equal(t, strings.Join(names, ", "), c.want, c.peers, names)
	}
	must.Refuse(t, must.Err(Select(fakes, []string{"nobody"})), "an unknown peer was accepted")
	if got := Leave(fakes, []Missing{{Peer: "far", Module: "far"}}); len(got[len(got)-1].Peers) != 1 {
		t.Errorf("a module that is missing runs: %+v", got[len(got)-1])
	}
}

// timed returns a report of one workload with two peers, given the values of the rounds.
func timed(more bool, ours, other []float64) *Report {
	rounds := func(v []float64) (out []Measurement) {
		for _, x := range v {
			out = append(out, Measurement{Value: x})
		}
		return out
	}
	w := WorkloadResult{Workload: "w", More: more,
		Peers: []PeerResult{{Peer: "oribi", Ours: true, Rounds: rounds(ours)}}}
	if other != nil {
		w.Peers = append(w.Peers, PeerResult{Peer: "other", Rounds: rounds(other)})
	}
	w.compare()
	return &Report{Scale: "hour", Workloads: []WorkloadResult{w}}
}

func TestCompareReportsOnlyRangesThatDoNotOverlap(t *testing.T) {
	ten := []float64{10, 11, 12}
	for _, c := range []struct {
		name         string
		older, newer *Report
		want         string
	}{
		{"the machine is half as fast, for both", timed(false, ten, ten),
			timed(false, []float64{20, 22, 24}, []float64{20, 22, 24}), "same"},
		{"ours takes twice the time", timed(false, ten, ten), timed(false, []float64{20, 22, 24}, ten), "slower"},
		{"ours does twice as much", timed(true, ten, ten), timed(true, []float64{20, 22, 24}, ten), "faster"},
		{"rounds overlap", timed(true, ten, ten), timed(true, []float64{8, 9, 12}, ten), "same"},
		{"no other peer", timed(false, ten, nil), timed(false, []float64{13, 14, 15}, nil), "slower"},
	} {
		var out bytes.Buffer
		slower := must.Get(Compare(&out, c.older, c.newer))(t)
		must.Contain(t, out.String(), c.want, c.name, slower)
		must.Equal(t, slower == 1, c.want == "slower", c.name, slower)
	}
	busy := timed(false, ten, ten)
	busy.Workloads[0].Peers[0].Rounds[1].Busy = true
	var out bytes.Buffer
	if _, err := Compare(&out, timed(false, ten, ten), busy); err != nil || !strings.Contains(out.String(), "0, 1") {
		t.Errorf("one busy round of the newer run: %v\n%s", err, &out)
	}
	other := timed(false, ten, ten)
	other.Scale = "night"
	must.Refuse(t, must.Err(Compare(io.Discard, other, timed(false, ten, ten))),
		"runs of different scales were compared")
}

func TestPageComparesOursWithTheBestPeer(t *testing.T) {
	r := timed(false, []float64{1, 2, 3}, []float64{4, 5, 6})
	var page, table bytes.Buffer
	must.Do(t, errors.Join(r.WritePage(&page), r.WriteMarkdown(&table)))
	for _, want := range []string{"<svg", "2.50 × other, by oribi", `id="w"`} {
		must.Contain(t, page.String(), want)
	}
	if strings.Contains(page.String(), "http") || strings.Contains(page.String(), "NaN") {
		t.Error("the page refers to other files, or has no numbers")
	}
	must.Contain(t, table.String(), "| w |  | oribi | 2 | other | 5 | 2.50 (2–4) |")
}

func TestPeerThatMeasuresNothingFails(t *testing.T) {
	must.Contain(t, fmt.Sprint(must.Err2(runFake(t, "idle", 1))), "idle/a: measured 0")
}

func TestPeakOfMemoryIsJudged(t *testing.T) {
	r, _ := must.Get2(runFake(t, "large", 1))(t)
	if r.Workloads[0].Peers[0].PeakBytes == 0 {
		t.Skip("resident memory is unknown on this system")
	}
	if r.Met() {
		t.Error("a process met a memory limit of one byte")
	}
}

func TestFloorIsMetByFigureOrRatio(t *testing.T) {
	for _, c := range []struct {
		floor Floor
		met   bool
		ratio float64
	}{
		{Floor{Figure: 10}, true, 0},
		{Floor{Figure: 9}, false, 0},
		{Floor{Figure: 9, Against: "b", Ratio: 2}, true, 2},
		{Floor{Figure: 9, Against: "b", Ratio: 1.9}, false, 2},
		{Floor{Against: "b", Ratio: 2}, true, 2},
		{Floor{Figure: 9, Against: "absent", Ratio: 2}, false, 0},
		{Floor{Figure: 10, Against: "absent", Ratio: 2}, true, 0},
		{Floor{Figure: 10, Least: true}, true, 0},
		{Floor{Figure: 11, Least: true}, false, 0},
		{Floor{Figure: 11, Against: "b", Ratio: 2, Least: true}, true, 2},
		{Floor{Figure: 11, Against: "b", Ratio: 2.1, Least: true}, false, 2},
		{Floor{Metric: "m", Figure: 3}, true, 0},
		{Floor{Metric: "m", Figure: 2}, false, 0},
		{Floor{Metric: "m", Against: "c", Ratio: 0.5}, true, 0.5},
		{Floor{Metric: "m", Against: "b", Ratio: 2}, true, 2}, // b has no such metric
	} {
		c.floor.Peer = "a"
		metric := map[string]float64{"m": 3}
		w := WorkloadResult{Unit: "s", Peers: []PeerResult{
			{Peer: "a", Rounds: []Measurement{{Value: 10, Metrics: metric}, {Value: 4, Metrics: metric},
				{Value: 40, Metrics: metric}}},
			{Peer: "b", Rounds: []Measurement{{Value: 5}, {Value: 2}, {Value: 20}}},
			{Peer: "c", Rounds: []Measurement{{Value: 1, Metrics: map[string]float64{"m": 6}}}}}}
		w.judge(&Workload{Floors: []Floor{c.floor}}, &Report{})
		if got := w.Floors[0]; got.Met != c.met || got.Ratio != c.ratio {
			t.Errorf("%+v: met %v, ratio %v; want %v, %v", c.floor, got.Met, got.Ratio, c.met, c.ratio)
		}
	}
}

func TestFloorsOfMissingPeersAreIgnored(t *testing.T) {
	peers := []PeerResult{{Peer: "a", Rounds: []Measurement{{Value: 10}}}}
	for floor, want := range map[Floor]int{{Peer: "a", Against: "absent", Ratio: 2}: 0,
		{Peer: "a", Figure: 9, Against: "absent", Ratio: 2}: 1, {Peer: "absent", Figure: 9}: 0} {
		w := WorkloadResult{Peers: peers}
		w.judge(&Workload{Floors: []Floor{floor}}, &Report{})
		must.Equal(t, len(w.Floors), want, floor)
	}
}

func TestFloorMayReferToTheBestPeerOrAnotherWorkload(t *testing.T) {
	before := WorkloadResult{Workload: "before", Peers: []PeerResult{{Peer: "a", Rounds: []Measurement{{Value: 5}}}}}
	w := WorkloadResult{More: true,
		Peers: []PeerResult{{Peer: "a", Ours: true, Median: 10, Rounds: []Measurement{{Value: 10}}},
			{Peer: "b", Median: 4, Rounds: []Measurement{{Value: 4}}},
			{Peer: "c", Median: 8, Rounds: []Measurement{{Value: 8}}}}}
	w.judge(&Workload{Floors: []Floor{{Peer: "a", Against: BestPeer, Ratio: 1, Least: true},
		{Peer: "a", Against: "a", Workload: "before", Ratio: 3, Least: true}}},
		&Report{Workloads: []WorkloadResult{before}})
	if len(w.Floors) != 2 || w.Floors[0].Ratio != 1.25 || !w.Floors[0].Met ||
		w.Floors[1].Ratio != 2 || w.Floors[1].Met {
		t.Errorf("got %+v", w.Floors)
	}
}

func TestRatioComparesRoundsThatRanTogether(t *testing.T) {
	// The machine is ten times slower in the second round, for both peers.
	must.Equal(t, ratio([]float64{2, 20, 2}, []float64{1, 10, 1}), 2)
	must.Equal(t, ratio([]float64{2}, nil), 0)
}

func TestNumbersHaveThreeOrFourSignificantDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.003456: "0.0035", 1.234: "1.23", 12.34: "12.3", 123.4: "123",
		1234: "1,234", 1234567.8: "1,234,568", -1234: "-1,234"} {
		must.Equal(t, number(v), want, v)
	}
}

func TestSmallRunsHaveNoVerdict(t *testing.T) {
	floors := []FloorResult{{Floor: "a: ≤ 1 s", Got: 2}}
	peers := []PeerResult{{Peer: "a", Rounds: []Measurement{{Value: 2}}}}
	for scale, want := range map[string]bool{"hour": true, "small": false} {
		r := Report{Scale: scale, Workloads: []WorkloadResult{{Workload: "w", Peers: peers, Floors: floors}}}
		var out bytes.Buffer
		must.Do(t, r.WriteTable(&out))
		must.Equal(t, strings.Contains(out.String(), "FAIL"), want, scale, out.String())
	}
}

func TestClockMeasuresTimeAndPeak(t *testing.T) {
	var env Env
	took, err := env.Clock(func() error {
		block := make([]byte, 64<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		return nil
	})
	if err != nil || took <= 0 || took > time.Hour {
		t.Errorf("took %v, %v", took, err)
	}
	if env.used.peak != 0 && env.used.peak < 64<<20 {
		t.Errorf("the peak is %d bytes, 64 MiB were written", env.used.peak)
	}
}

func TestClockMeasuresOtherProcesses(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Skip("no other process to watch: ", err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	peak := func(processes ...int) int64 {
		var env Env
		env.Watch(processes)
		must.Get(env.Clock(func() error { return nil }))(t)
		return env.used.peak
	}
	alone, both := peak(other.Process.Pid), peak(other.Process.Pid, os.Getpid())
	if both == 0 {
		t.Skip("resident memory is unknown on this system")
	}
	if alone <= 0 || alone >= both {
		t.Errorf("the other process takes %d bytes, together with this one %d", alone, both)
	}
	var env Env
	env.Watch([]int{os.Getpid()})
	exact := (&Env{}).cpuSeconds
	for begin := exact(); exact() < begin+0.1; {
	}
	if got, want := env.cpuSeconds(), exact(); got < want-0.1 || got > want+0.1 {
		t.Errorf("this process used %v s by clock ticks, %v s by getrusage", got, want)
	}
}

func TestProgramReportsWhatIsMissing(t *testing.T) {
	self := must.Get(os.Executable())(t)
	must.Do(t, Ready(t.Context(), self, Env{}))
	must.Equal(t, fmt.Sprint(Ready(t.Context(), self, Env{Corpus: lacking})), "a server is missing")
}

func TestLostListsSlowerWorkloadsAndMissedGoals(t *testing.T) {
	ahead, behind, missed := timed(false, []float64{1, 2}, []float64{4, 5}),
		timed(true, []float64{1, 2}, []float64{4, 5}), timed(false, []float64{1, 2}, nil)
	missed.Workloads[0].Floors = []FloorResult{{Floor: "oribi: ≤ 0.5 s"}}
	for i, c := range []struct {
		r    *Report
		want string
	}{{ahead, ""}, {behind, "oribi is 0.33 (0.25–0.40) × as good as other"}, {missed, "oribi: ≤ 0.5 s is not met"}} {
		lost := c.r.Shortfalls()
		if len(lost) > 1 || len(lost) == 0 && c.want != "" || len(lost) == 1 && lost[0].Why != c.want {
			t.Errorf("case %d: got %+v, want %q", i, lost, c.want)
		}
	}
}

func TestPeersAsideAreNotTheFigure(t *testing.T) {
	round := []Measurement{{Value: 1}}
	w := WorkloadResult{Peers: []PeerResult{
		{Peer: "key", Ours: true, Aside: true, Median: 1, Rounds: round},
		{Peer: "index", Ours: true, Median: 2, Rounds: round},
	}}
	must.Equal(t, w.best(true).Peer, "index")
}
