package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is the outcome of a run.
type Report struct {
	Scale     string           `json:"scale"`
	Rounds    int              `json:"rounds"`
	Machine   string           `json:"machine"`
	Workloads []WorkloadResult `json:"workloads"`
}

// WorkloadResult is what a workload's peers did, and which floors are met.
type WorkloadResult struct {
	Workload string        `json:"workload"`
	About    string        `json:"about"`
	Unit     string        `json:"unit"`
	Peers    []PeerResult  `json:"peers"`
	Floors   []FloorResult `json:"floors"`
}

// PeerResult is what one peer did.
type PeerResult struct {
	Peer      string        `json:"peer"`
	Ours      bool          `json:"ours"`
	Median    float64       `json:"median"`
	PeakBytes int64         `json:"peak_bytes"` // 0 = unknown
	Rounds    []Measurement `json:"rounds"`
}

// FloorResult tells whether a floor is met: by the figure or by the ratio.
type FloorResult struct {
	Floor string  `json:"floor"`
	Got   float64 `json:"got"`
	Ratio float64 `json:"ratio,omitempty"` // 0 = there is no such peer in this run
	Met   bool    `json:"met"`
}

// Met tells whether all floors are met.
func (r *Report) Met() bool {
	for i := range r.Workloads {
		if slices.ContainsFunc(r.Workloads[i].Floors, func(f FloorResult) bool { return !f.Met }) {
			return false
		}
	}
	return true
}

// compare finds the medians, and an error when two peers, or two rounds, gave different answers.
func (w *WorkloadResult) compare() error {
	first := ""
	for i := range w.Peers {
		p := &w.Peers[i]
		p.Median = median(p.values(""))
		for _, m := range p.Rounds {
			switch {
			case m.Checksum == "" || m.Checksum == first:
			case first != "":
				return fmt.Errorf("%s: %s answers %s, others %s", w.Workload, p.Peer, m.Checksum, first)
			default:
				first = m.Checksum
			}
		}
	}
	return nil
}

// values are a peer's rounds, of the value or of a metric.
func (p *PeerResult) values(metric string) []float64 {
	out := make([]float64, len(p.Rounds))
	for i, m := range p.Rounds {
		if out[i] = m.Value; metric != "" {
			out[i] = m.Metrics[metric]
		}
	}
	return out
}

func (w *WorkloadResult) peer(name string) *PeerResult {
	for i := range w.Peers {
		if w.Peers[i].Peer == name {
			return &w.Peers[i]
		}
	}
	return nil
}

// judge compares with the workload's floors.
func (w *WorkloadResult) judge(def *Workload) {
	for i := range def.Floors {
		if p := w.peer(def.Floors[i].Peer); p != nil {
			w.Floors = append(w.Floors, w.judgeFloor(&def.Floors[i], p, def.Unit))
		}
	}
	for i := range w.Peers {
		p := &w.Peers[i]
		if p.Ours && def.MemoryLimit > 0 && p.PeakBytes > 0 {
			w.Floors = append(w.Floors, FloorResult{Floor: fmt.Sprintf("%s: peak of memory ≤ %d MiB", p.Peer, def.MemoryLimit>>20),
				Got: float64(p.PeakBytes >> 20), Met: p.PeakBytes <= def.MemoryLimit})
		}
	}
}

func (w *WorkloadResult) judgeFloor(f *Floor, p *PeerResult, unit string) FloorResult {
	than, name := "≤", f.Metric
	if f.Least {
		than = "≥"
	}
	if name == "" {
		name = unit
	}
	got := median(p.values(f.Metric))
	out := FloorResult{Got: got}
	var wanted []string
	reaches := func(got, want float64) bool { return f.Least && got >= want || !f.Least && got <= want }
	if f.Figure != 0 {
		wanted = append(wanted, fmt.Sprintf("%s %s %s", than, number(f.Figure), name))
		out.Met = reaches(got, f.Figure)
	}
	if f.Against != "" {
		wanted = append(wanted, fmt.Sprintf("%s %g × %s", than, f.Ratio, f.Against))
		if other := w.peer(f.Against); other != nil {
			out.Ratio = ratio(p.values(""), other.values(""))
			out.Met = out.Met || reaches(out.Ratio, f.Ratio)
		}
	}
	out.Floor = f.Peer + ": " + strings.Join(wanted, " or ")
	return out
}

// ratio is the median of the rounds' ratios: whatever else the machine did in a round fell on both.
func ratio(a, b []float64) float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return median(r)
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "scale %s, median of %d rounds, %s\n", r.Scale, r.Rounds, r.Machine)
	for i := range r.Workloads {
		res := &r.Workloads[i]
		fmt.Fprintf(w, "\n%s: %s\n", res.Workload, res.About)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "  peer\t%s\tleast\tmost\tcpu s\tpeak MiB\t\n", res.Unit)
		for _, p := range res.Peers {
			values := p.values("")
			var cpu []float64
			for _, m := range p.Rounds {
				cpu = append(cpu, m.CPU)
			}
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%.2f\t%s\t%s\n", p.Peer, number(p.Median), number(slices.Min(values)), number(slices.Max(values)),
				median(cpu), mebibytes(p.PeakBytes), metrics(&p))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, f := range res.Floors {
			fmt.Fprintf(w, "  %s %s: %s%s\n", verdict(f.Met, r.Scale), f.Floor, number(f.Got), ratioText(f.Ratio))
		}
	}
	return nil
}

// verdict is pass or fail; figures of a small run are no verdict.
func verdict(met bool, scale string) string {
	switch {
	case scale != "full":
		return "     "
	case met:
		return "pass "
	}
	return "FAIL "
}

func ratioText(r float64) string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf(", ratio %.2f", r)
}

// metrics are the medians of what a peer tells besides.
func metrics(p *PeerResult) string {
	var names []string
	for name := range p.Rounds[0].Metrics {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = name + " " + number(median(p.values(name)))
	}
	return strings.Join(names, ", ")
}

func mebibytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n >> 20)
}

// number writes a figure with three or four digits that count, thousands apart.
func number(v float64) string {
	switch {
	case math.Abs(v) >= 1000:
		s := fmt.Sprintf("%.0f", v)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case math.Abs(v) >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
