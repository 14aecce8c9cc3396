// Package harness measures workloads: each peer in a process of its own, rounds interleaved, medians, ratios in one run.
//
// A Workload is one piece of work that several peers do, the engine and what a user would take instead. Main is
// called first in the program: in a process that the harness started it does that process's step and never
// returns. Run does all rounds of a list of workloads and makes a Report.
//
//	round 1: peer A, peer B    round 2: peer A, peer B    …
//
// so that whatever else the machine does meanwhile falls on all peers alike. A ratio is the median of the rounds' ratios,
// a figure the median of the rounds. The peers of a workload answer the same question: their checksums
// must be equal, else the run fails.
package harness

import (
	"fmt"
	"os/exec"
	"slices"
)

// Workload is one piece of work with the peers that do it.
type Workload struct {
	Name  string
	About string // what is done, in a line: sizes, distribution, cold or warm
	Unit  string // of the figures: "rows/s", "µs"
	More  bool   // more is better
	Fresh bool   // each round begins with an empty directory and Prepare; else Prepare runs once
	// Inputs makes, once, the files that the peers read, in env.Inputs.
	Inputs func(env *Env) error
	Peers  []Peer
	Floors []Floor
	// MemoryLimit bounds the peak of resident memory of the engine's own peers, bytes; 0 = none.
	MemoryLimit int64
}

// Peer is one way to do the work. Measure or Command is set; every step runs in a process of its own.
type Peer struct {
	Name string
	Ours bool
	// Prepare makes in env.Dir what the measurement starts from. nil = nothing.
	Prepare func(env *Env) error
	// Measure does the work, with env.Clock around what counts.
	Measure func(env *Env) (Measurement, error)
	// Command is a process to be measured from its start to its end, in seconds: the work as Measure does not see it. Its Stdout, if set,
	// is closed then.
	Command func(env *Env) (*exec.Cmd, error)
	// Act is what a command made by env.Self does.
	Act func(env *Env) error
	// Check gives the checksum of what Command left behind.
	Check func(env *Env) (string, error)
	// Memory does the work once more without holding its inputs in memory, so that the peak of resident memory is the
	// engine's own. nil = the peak during Measure or Command is taken.
	Memory func(env *Env) error
}

// Measurement is the result of one round of one peer.
type Measurement struct {
	Value     float64            `json:"value"`              // in the workload's unit
	Checksum  string             `json:"checksum,omitempty"` // of the answer; equal for all peers of a workload
	PeakBytes int64              `json:"peak_bytes"`         // of resident memory; 0 = unknown
	CPU       float64            `json:"cpu_s"`              // processor seconds, user and system, while the clock ran
	Metrics   map[string]float64 `json:"metrics,omitempty"`
}

// Floor is what a peer of ours has to reach: the figure, or the ratio to another peer in the same run.
type Floor struct {
	Peer    string
	Metric  string  // one of Measurement.Metrics; empty = Value
	Figure  float64 // 0 = none
	Against string  // peer of the ratio; empty = none
	Ratio   float64 // Value of Peer by Value of Against
	Least   bool    // at least Figure and Ratio; else at most
}

// Scale says how much work is done.
type Scale struct {
	Name    string
	Rows    int // of lineitem; 0 = all
	Commits int // of the tree's history; 0 = all
	Inserts int // into the MemRowSet
	Gets    int
	Sets    int // rowsets of the store that is opened
	Passes  int // of a scan, and openings
	Rounds  int // unless told otherwise
}

// Scales by name: full gives figures, small keeps the code from rotting.
var Scales = map[string]Scale{
	"small": {Name: "small", Rows: 20_000, Commits: 300, Inserts: 50_000, Gets: 20_000, Sets: 10, Passes: 5, Rounds: 2},
	"full":  {Name: "full", Inserts: 1_000_000, Gets: 200_000, Sets: 100, Passes: 20, Rounds: 5},
}

// Find picks workloads by name, all if no name is given.
func Find(all []Workload, names []string) ([]Workload, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []Workload
	for _, name := range names {
		i := slices.IndexFunc(all, func(w Workload) bool { return w.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no workload %q: see list", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (w *Workload) peer(name string) *Peer {
	for i := range w.Peers {
		if w.Peers[i].Name == name {
			return &w.Peers[i]
		}
	}
	return nil
}
