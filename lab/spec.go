package lab

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/oribi-db/oribi/compaction"
)

// Engine names what runs a workload.
type Engine string

// The engines.
const (
	Simulated Engine = "simulated" // bounds and sizes of rowsets, no rows
	Real      Engine = "real"      // a store in a temporary directory
)

// Spec describes experiments. ParseSpec reads a Spec and fills in the defaults, for fields that are
// absent or 0.
type Spec struct {
	Seed   uint64 `json:"seed"` // of the workloads' random numbers
	Engine Engine `json:"engine"`
	// FlushBytes is how many bytes of rows are written between two flushes. Default 1 MiB.
	FlushBytes Size `json:"flush_bytes"`
	// RowSetBytes is the size at which a flush or merge starts a new rowset. Default 1 MiB.
	RowSetBytes Size `json:"rowset_bytes"`
	// RewriteRatio is how many bytes merges may write per byte that flushes write. A merge may
	// exceed it, which is subtracted from the bytes that later merges may write. 0 means no limit.
	RewriteRatio float64 `json:"rewrite_ratio"`

	Workloads []Workload `json:"workloads"`
	Policies  []Policy   `json:"policies"`
}

// Size is a number of bytes. In JSON it is a string such as "16MB", in powers of 1024.
type Size int64

// MarshalJSON returns the size in the largest unit that gives an integer.
func (s Size) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

func (s Size) String() string {
	unit := 0
	for ; unit < 3 && s != 0 && s%1024 == 0; unit++ {
		s /= 1024
	}
	return strconv.FormatInt(int64(s), 10) + [...]string{"B", "KB", "MB", "GB"}[unit]
}

// Workload is a sequence of operations. Workloads lists the names. A field that a workload does not
// have is 0.
type Workload struct {
	Name  string `json:"name"`
	Label string `json:"label"` // in the report; default: the name

	Keys       int64 `json:"keys,omitempty"`        // distinct ones, or rows that are live at a time
	Operations int64 `json:"operations,omitempty"`  // inserts, updates and deletes
	ValueBytes int64 `json:"value_bytes,omitempty"` // of a row, besides its key of 8 bytes
	// History is the number of operations for which old versions are kept; 0 = forever, for
	// old-deletes a tenth of the operations.
	History int64 `json:"history,omitempty"`

	Theta  float64 `json:"theta,omitempty"`  // zipf: the exponent
	Hot    float64 `json:"hot,omitempty"`    // hot-updates: share of the keys that get nine tenths of the updates
	Late   float64 `json:"late,omitempty"`   // time-series: share of the rows that are inserted late
	Series int64   `json:"series,omitempty"` // time-series: number of series; their rows are apart

	Versions int64 `json:"versions,omitempty"` // versions: of each row

	Layout string `json:"layout,omitempty"` // replay: file of a layout
	Events string `json:"events,omitempty"` // replay: file of an event log
	Table  string `json:"table,omitempty"`  // replay of an event log: the table; default: the first one
	Merges int64  `json:"merges,omitempty"` // replay of a layout: number of merges at most
}

// Policy is a policy of package compaction with its options. A field of value 0 means the default
// of the policy.
type Policy struct {
	Name   string `json:"name"`
	Label  string `json:"label"`  // in the report; default: the name
	Budget Size   `json:"budget"` // of a merge; default 16 MiB

	Depth        int64   `json:"depth,omitempty"`         // overlap
	SmallRowSets float64 `json:"small_rowsets,omitempty"` // budgeted
	MinQuality   float64 `json:"min_quality,omitempty"`   // budgeted
	Runs         int64   `json:"runs,omitempty"`          // tiered
	Ratio        float64 `json:"ratio,omitempty"`         // tiered, leveled
}

// About describes a policy or a workload in one sentence.
type About struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// Policies lists the policies.
func Policies() []About {
	return []About{
		{"none", "merges nothing"},
		{"overlap", "merges the smallest rowsets over the deepest key, if at least four are over it"},
		{"budgeted", "merges the set that lowers the depth most for the bytes of the budget, as Kudu does"},
		{"tiered", "merges four rowsets of similar size per key over one key"},
		{"leveled", "merges what overlaps within a level, until nothing does"},
	}
}

// policy returns the policy with its options.
func (p *Policy) policy() (compaction.Policy, error) {
	var policy compaction.Policy
	switch p.Name {
	case "none":
		policy = compaction.None{}
	case "overlap":
		policy = compaction.Overlap{Depth: int(p.Depth)}
	case "budgeted":
		policy = compaction.Budgeted{SmallRowSets: p.SmallRowSets, MinQuality: p.MinQuality}
	case "tiered":
		policy = compaction.Tiered{Runs: int(p.Runs), Ratio: p.Ratio}
	case "leveled":
		policy = compaction.Leveled{Ratio: p.Ratio}
	default:
		return nil, fmt.Errorf("unknown policy %q", p.Name)
	}
	return policy, compaction.Validate(policy)
}
