package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	Main(fakes)
	os.Exit(m.Run())
}

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

// fake is a peer that notes its steps, and finds in its directory what Prepare left there.
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

var fakes = []Workload{
	{Name: "plain", Peers: []Peer{fake("a", "same"), fake("b", "same")}},
	{Name: "fresh", Fresh: true, Peers: []Peer{fake("a", "same"), commandPeer()}},
	{Name: "unequal", Peers: []Peer{fake("a", "one"), fake("b", "other")}},
	{Name: "failing", Peers: []Peer{{Name: "a", Measure: func(*Env) (Measurement, error) { return Measurement{}, errors.New("no such luck") }}}},
	{Name: "large", MemoryLimit: 1, Peers: []Peer{fake("a", "")}},
}

// runFake runs one of the fakes and gives its report and notes.
func runFake(t *testing.T, name string, rounds int) (*Report, string, error) {
	t.Helper()
	w, err := Find(fakes, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r, err := Run(t.Context(), w, Config{Dir: dir, Rounds: rounds})
	notes, _ := os.ReadFile(filepath.Join(dir, "inputs", "notes"))
	return r, strings.ReplaceAll(strings.TrimSpace(string(notes)), "\n", ", "), err
}

func TestRoundsOfPeersAreInterleaved(t *testing.T) {
	r, notes, err := runFake(t, "plain", 3)
	if err != nil {
		t.Fatal(err)
	}
	want := "prepare a, prepare b, measure a, measure b, measure a, measure b, measure a, measure b"
	if notes != want {
		t.Errorf("steps: %s\nwant:  %s", notes, want)
	}
	for _, p := range r.Workloads[0].Peers {
		if len(p.Rounds) != 3 || p.Median <= 0 {
			t.Errorf("%s: %d rounds, median %v", p.Peer, len(p.Rounds), p.Median)
		}
	}
}

func TestFreshWorkloadsPrepareEachRoundInAnEmptyDirectory(t *testing.T) {
	r, notes, err := runFake(t, "fresh", 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := "prepare a, measure a, prepare c, prepare a, measure a, prepare c"; notes != want {
		t.Errorf("steps: %s\nwant:  %s", notes, want)
	}
	if c := r.Workloads[0].Peers[1].Rounds[0]; c.Value <= 0 || c.Checksum != "same" {
		t.Errorf("the command's round: %+v", c)
	}
}

func TestPeersThatAnswerDifferentlyFailTheRun(t *testing.T) {
	if _, _, err := runFake(t, "unequal", 1); err == nil || !strings.Contains(err.Error(), "b answers other, others one") {
		t.Errorf("got %v", err)
	}
}

func TestFailureOfAPeerNamesItAndItsReason(t *testing.T) {
	if _, _, err := runFake(t, "failing", 1); err == nil || !strings.Contains(err.Error(), "failing/a: measure:") || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v", err)
	}
}

func TestPeakOfMemoryIsJudged(t *testing.T) {
	r, _, err := runFake(t, "large", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Workloads[0].Peers[0].PeakBytes == 0 {
		t.Skip("resident memory is not told here")
	}
	if r.Met() {
		t.Error("a process lives in one byte")
	}
}

func TestFloorIsMetByFigureOrByRatio(t *testing.T) {
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
		{Floor{Figure: 10, Least: true}, true, 0},
		{Floor{Figure: 11, Least: true}, false, 0},
		{Floor{Figure: 11, Against: "b", Ratio: 2, Least: true}, true, 2},
		{Floor{Figure: 11, Against: "b", Ratio: 2.1, Least: true}, false, 2},
		{Floor{Metric: "m", Figure: 3}, true, 0},
		{Floor{Metric: "m", Figure: 2}, false, 0},
	} {
		c.floor.Peer = "a"
		metric := map[string]float64{"m": 3}
		w := WorkloadResult{Peers: []PeerResult{
			{Peer: "a", Rounds: []Measurement{{Value: 10, Metrics: metric}, {Value: 4, Metrics: metric}, {Value: 40, Metrics: metric}}},
			{Peer: "b", Rounds: []Measurement{{Value: 5}, {Value: 2}, {Value: 20}}}}}
		w.judge(&Workload{Unit: "s", Floors: []Floor{c.floor}})
		if got := w.Floors[0]; got.Met != c.met || got.Ratio != c.ratio {
			t.Errorf("%+v: met %v, ratio %v; want %v, %v", c.floor, got.Met, got.Ratio, c.met, c.ratio)
		}
	}
}

func TestRatioIsThatOfRoundsWhichRanTogether(t *testing.T) {
	// The machine was ten times slower in the second round, for both.
	if got := ratio([]float64{2, 20, 2}, []float64{1, 10, 1}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := ratio([]float64{2}, nil); got != 0 {
		t.Errorf("got %v without a peer, want 0", got)
	}
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1.234: "1.23", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567.8: "1,234,568", -1234: "-1,234"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}

func TestSmallRunsGiveNoVerdict(t *testing.T) {
	floors := []FloorResult{{Floor: "a: ≤ 1 s", Got: 2}}
	peers := []PeerResult{{Peer: "a", Rounds: []Measurement{{Value: 2}}}}
	for scale, want := range map[string]bool{"full": true, "small": false} {
		r := Report{Scale: scale, Workloads: []WorkloadResult{{Workload: "w", Peers: peers, Floors: floors}}}
		var out bytes.Buffer
		if err := r.WriteTable(&out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "FAIL"); got != want {
			t.Errorf("scale %s: FAIL shown %v, want %v:\n%s", scale, got, want, &out)
		}
	}
}

func TestClockTellsTimeAndPeak(t *testing.T) {
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
