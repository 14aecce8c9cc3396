// Package harness measures workloads: each peer in a process of its own, rounds interleaved,
// medians, ratios in one run.
//
// A Workload is one piece of work that several peers do, the engine and what a user would take
// instead. Main is called first in the program: in a process that the harness started it does that
// process's step and never returns. Run does all rounds of a list of workloads and makes a Report.
//
//	round 1: peer A, peer B    round 2: peer A, peer B    …
//
// so that whatever else the machine does meanwhile falls on all peers alike. A ratio is the median
// of the rounds' ratios, a figure the median of the rounds. The peers of a workload answer the same
// question: their checksums must be equal, else the run fails. A peer that fails is reported and
// left out from there on; the others go on.
package harness

import (
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Workload is one piece of work with the peers that do it.
type Workload struct {
	Name  string
	About string // what is done, in a line: sizes, distribution, cold or warm
	Unit  string // of the figures: "rows/s", "µs"
	More  bool   // more is better
	Fresh bool   // each round begins with an empty directory and Prepare; else Prepare runs once
	// Group is set for workloads that start from one prepared state: what Prepare made for the
	// first of them serves all of a run.
	Group string
	// Copies has each round begin with a copy of the group's state. Without it a round leaves the
	// state as it is, or is Changing.
	Copies bool
	// Changing says that a round finds what those before it left: only answers of the same round
	// are compared.
	Changing bool
	// Of names a workload before this one that does the same work: where it ran with all peers of
	// this one, Derive makes of its rounds those of this, and nothing is done twice.
	Of     string
	Derive func(m Measurement) Measurement
	// Inputs makes, once, the files that the peers read, in env.Inputs.
	Inputs func(env *Env) error
	Peers  []Peer
	Floors []Floor
	// MemoryLimit bounds the peak of resident memory of the engine's own peers, bytes; 0 = none.
	MemoryLimit int64
}

// Peer is one way to do the work. Measure or Command is set; every step runs in a process of its
// own.
type Peer struct {
	Name string
	Ours bool
	// Store names the group's state that the peer starts from, where several peers of a workload
	// share one; empty = Name.
	Store string
	// Module is the directory, beside this module's go.mod, of the nested module whose program has
	// the peer's steps; empty = this program.
	Module string
	// Prepare makes in env.Dir what the measurement starts from. nil = nothing.
	Prepare func(env *Env) error
	// Measure does the work, with env.Clock around what counts.
	Measure func(env *Env) (Measurement, error)
	// Command is a process to be measured from its start to its end, in seconds: the work as
	// Measure does not see it. Its Stdout, if set, is closed then.
	Command func(env *Env) (*exec.Cmd, error)
	// Act is what a command made by env.Self does.
	Act func(env *Env) error
	// Check gives the checksum of what Command left behind.
	Check func(env *Env) (string, error)
	// Memory does the work once more without holding its inputs in memory, so that the peak of
	// resident memory is the engine's own. nil = the peak during Measure or Command is taken.
	Memory func(env *Env) error
}

// Measurement is the result of one round of one peer.
type Measurement struct {
	Value     float64            `json:"value"`              // in the workload's unit
	Checksum  string             `json:"checksum,omitempty"` // of the answer; equal for all peers of a workload
	PeakBytes int64              `json:"peak_bytes"`         // of resident memory; 0 = unknown
	CPU       float64            `json:"cpu_s"`              // processor seconds, user and system, while the clock ran
	Written   int64              `json:"written_bytes"`      // sent to the disk while the clock ran; 0 = none or unknown
	DiskBytes int64              `json:"disk_bytes"`         // allocated blocks of the peer's directory after the round
	Busy      bool               `json:"busy,omitempty"`     // others had the processors while the clock ran: see busy
	Metrics   map[string]float64 `json:"metrics,omitempty"`
}

// Floor is what a peer of ours has to reach: the figure, or the ratio to another peer in the same
// run.
type Floor struct {
	Peer     string
	Metric   string  // one of Measurement.Metrics; empty = Value
	Figure   float64 // 0 = none
	Against  string  // peer of the ratio, or BestPeer; empty = none
	Workload string  // of Against, one before this in the list; empty = the same
	Ratio    float64 // Value of Peer by Value of Against
	Least    bool    // at least Figure and Ratio; else at most
}

// BestPeer stands for whichever peer, not of ours, has the best median.
const BestPeer = "best"

// Scale says how much work is done.
type Scale struct {
	Name    string
	Rows    int  // of lineitem as text; 0 = all
	Table   int  // rows of lineitem over and over, and records of YCSB
	Nested  bool // peers of nested modules run without being named
	Commits int  // of the tree's history; 0 = all
	Inserts int  // into the MemRowSet
	Gets    int
	Sets    int // rowsets of the store that is opened
	Passes  int // of a scan, and openings
	Rounds  int // unless told otherwise
}

// Scales by name: hour and night give figures, small keeps the code from rotting.
var Scales = map[string]Scale{
	"small": {Name: "small", Rows: 3_000, Table: 2_000, Commits: 100, Inserts: 10_000, Gets: 2_000, Sets: 5, Passes: 2, Rounds: 1},
	"hour":  {Name: "hour", Table: 1_000_000, Nested: true, Inserts: 1_000_000, Gets: 200_000, Sets: 100, Passes: 20, Rounds: 5},
	"night": {Name: "night", Table: 50_000_000, Nested: true, Inserts: 1_000_000, Gets: 200_000, Sets: 100, Passes: 5, Rounds: 5},
}

// Figures tells whether the scale's figures mean something.
func (s *Scale) Figures() bool { return s.Name != "small" && s.Name != "tiny" }

// Find picks workloads by name, all if no name is given. A name may have * for any text.
func Find(all []Workload, names []string) ([]Workload, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []Workload
	taken := map[string]bool{}
	for _, name := range names {
		found := false
		for _, w := range all {
			match, err := path.Match(name, w.Name)
			if err != nil {
				return nil, fmt.Errorf("workload %q: %w", name, err)
			}
			if found = found || match; match && !taken[w.Name] {
				out, taken[w.Name] = append(out, w), true
			}
		}
		if !found {
			return nil, fmt.Errorf("no workload %q: see list", name)
		}
	}
	return out, nil
}

// Select leaves of each workload our own peers and those named: a name stands for the peers so
// called and for those whose names begin with it and a dash. Workloads without a named peer are
// left out. Without names, all stays.
func Select(all []Workload, names []string) ([]Workload, error) {
	if len(names) == 0 {
		return all, nil
	}
	var out []Workload
	known := map[string]bool{}
	for _, w := range all {
		var peers []Peer
		found := false
		for _, p := range w.Peers {
			named := false
			for _, name := range names {
				if p.Name == name || strings.HasPrefix(p.Name, name+"-") {
					named, known[name] = true, true
				}
			}
			if found = found || named; named || p.Ours {
				peers = append(peers, p)
			}
		}
		if w.Peers = peers; found {
			out = append(out, w)
		}
	}
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("no peer %q: see list", name)
		}
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

// Modules are the folders of bench, nested modules or not, with the programs that the peers of
// workloads need.
func Modules(workloads []Workload) (modules []string) {
	for _, w := range workloads {
		for _, p := range w.Peers {
			if p.Module != "" && !slices.Contains(modules, p.Module) {
				modules = append(modules, p.Module)
			}
		}
	}
	return modules
}

// HasPeer tells whether name, as Select takes it, stands for a peer of a nested module.
func HasPeer(workloads []Workload, module, name string) bool {
	for _, w := range workloads {
		for _, p := range w.Peers {
			if p.Module == module && (p.Name == name || strings.HasPrefix(p.Name, name+"-")) {
				return true
			}
		}
	}
	return false
}
