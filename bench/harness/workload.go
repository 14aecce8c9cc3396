// Package harness measures workloads. Each peer runs in its own process, rounds are interleaved,
// and ratios compare peers within one run.
//
// A Workload is work that several peers can do: the engine, and the systems that a user might
// choose instead. The program calls Main first: in a process that the harness started, Main runs
// that process's step and does not return. Run performs all rounds of a list of workloads and
// returns a Report.
//
//	round 1: peer A, peer B    round 2: peer A, peer B    …
//
// Interleaving makes other load affect all peers alike. A ratio is the median of the rounds'
// ratios, a figure the median of the rounds. The peers of a workload answer the same question:
// their checksums must be equal, else the run fails. A peer that fails is reported and takes no
// further part; the others continue.
package harness

import (
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Workload is work, with the peers that do it.
type Workload struct {
	Name  string
	About string // one line: sizes, distribution, cold or warm
	Unit  string // of the figures: "rows/s", "µs"
	More  bool   // more is better
	Fresh bool   // each round begins with an empty directory and Prepare; otherwise Prepare runs once
	// Group is shared by workloads that start from one prepared state: the result of Prepare for
	// the first of them is used for all workloads of a run.
	Group string
	// Copies makes each round begin with a copy of the group's state. Without it, a round must not
	// change the state.
	Copies bool
	// Cold means that the page cache contains nothing of the peer's directory when a round begins.
	// Otherwise it contains all of it, as far as it fits.
	Cold bool
	// Of names an earlier workload that does the same work. If that ran with all peers of this one,
	// Derive computes the rounds of this workload from its rounds, and nothing runs twice.
	Of     string
	Derive func(m Measurement) Measurement
	// Inputs makes the files that the peers read, in env.Inputs, once.
	Inputs func(env *Env) error
	Peers  []Peer
	Floors []Floor
	// MemoryLimit bounds the peak resident memory of our own peers, in bytes; 0 = no limit.
	MemoryLimit int64
}

// Peer is one way to do the work. Either Measure or Command is set. Each step runs in a separate
// process.
type Peer struct {
	Name string
	Ours bool
	// Aside means that only goals compare with the peer: the figure of the workload is another's.
	Aside bool
	// Store names the group's state from which the peer starts, if several peers of a workload
	// share one; empty = Name.
	Store string
	// Module is the directory of the nested module, next to this module's go.mod, whose program
	// runs the peer's steps; empty = this program.
	Module string
	// Prepare makes the initial state of the measurement in env.Dir. nil = nothing to prepare.
	Prepare func(env *Env) error
	// Measure does the work; env.Clock times the part that counts.
	Measure func(env *Env) (Measurement, error)
	// Command returns a process that is measured from start to end, in seconds, instead of Measure.
	// If its Stdout is set, it is closed at the end.
	Command func(env *Env) (*exec.Cmd, error)
	// Act runs in a command made by env.Self.
	Act func(env *Env) error
	// Check returns the checksum of the data that Command left.
	Check func(env *Env) (string, error)
	// Memory repeats the work without its inputs in memory, so that the peak resident memory is the
	// engine's alone. If it is nil, the peak during Measure or Command is used.
	Memory func(env *Env) error
}

// Measurement is the result of one round of one peer.
type Measurement struct {
	Value float64 `json:"value"` // in the workload's unit
	// checksum of the answer; must be equal for all peers of a workload
	Checksum  string  `json:"checksum,omitempty"`
	PeakBytes int64   `json:"peak_bytes"` // peak resident memory, bytes; 0 = unknown
	CPU       float64 `json:"cpu_s"`      // CPU seconds, user and system, while Clock ran
	// bytes written to the disk while Clock ran; 0 = none or unknown
	Written   int64              `json:"written_bytes"`
	DiskBytes int64              `json:"disk_bytes"`     // allocated disk space of the peer's directory after the round
	Busy      bool               `json:"busy,omitempty"` // other processes used the CPUs while Clock ran; see busy
	Metrics   map[string]float64 `json:"metrics,omitempty"`
}

// Floor is the goal of one of our peers: a figure, or a ratio to another peer in the same run.
type Floor struct {
	Peer     string
	Metric   string  // one of Measurement.Metrics; empty = Value
	Figure   float64 // 0 = none
	Against  string  // peer to compare with, or BestPeer; empty = none
	Workload string  // workload of Against, earlier in the list; empty = the same
	Ratio    float64 // Value, or Metric if both have it, of Peer / of Against
	Least    bool    // Figure and Ratio are minimums; otherwise maximums
}

// BestPeer means the peer with the best median that is not ours.
const BestPeer = "best"

// Scale determines the amount of work.
type Scale struct {
	Name    string
	Rows    int  // rows of lineitem as text; 0 = all
	Table   int  // rows of lineitem, repeated; records of YCSB
	Large   int  // rows of the table that is larger than the cache, unless the command line sets it
	Nested  bool // peers of nested modules run unless others are named
	Commits int  // commits of the tree's history; 0 = all
	Inserts int  // inserts into the MemRowSet
	Gets    int
	Sets    int // rowsets of the store to open
	Passes  int // number of scans, and of opens
	Rounds  int // unless the command line sets it
}

// Scales contains the scales by name: hour and night are for figures, small checks that the code
// still runs.
var Scales = map[string]Scale{
	"small": {Name: "small", Rows: 3_000, Table: 2_000, Large: 4_000, Commits: 100, Inserts: 10_000, Gets: 2_000,
		Sets: 5, Passes: 2, Rounds: 1},
	"hour": {Name: "hour", Table: 1_000_000, Large: 4_000_000, Nested: true, Inserts: 1_000_000, Gets: 200_000,
		Sets: 100, Passes: 20, Rounds: 5},
	"night": {Name: "night", Table: 50_000_000, Large: 64_000_000, Nested: true, Inserts: 1_000_000, Gets: 200_000,
		Sets: 100, Passes: 5, Rounds: 5},
}

// Figures reports whether figures of this scale are meaningful.
func (s *Scale) Figures() bool { return s.Name != "small" && s.Name != "tiny" }

// Find returns the workloads with the given names, or all without names. * in a name matches any
// text.
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

// Select keeps our own peers and the named ones in each workload. A name selects the peer with that
// name and those whose names begin with it and a dash. Select removes workloads without a named
// peer. Without names it keeps everything.
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

// Modules returns the directories in bench with the programs that the peers of workloads need.
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

// HasPeer reports whether name, as in Select, selects a peer of a nested module.
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
