package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// reportVersion is the version of the JSON form. Reports of other versions are not read.
const reportVersion = 1

// Report is the result of a run.
type Report struct {
	Version   int              `json:"version"`
	Scale     string           `json:"scale"`
	Rounds    int              `json:"rounds"`
	Machine   string           `json:"machine"`
	Commit    string           `json:"commit,omitempty"` // of the program; ends in Changed if files differ from it
	Started   time.Time        `json:"started"`
	Seconds   float64          `json:"seconds"` // duration of all workloads, including work that is not timed
	Missing   []Missing        `json:"missing,omitempty"`
	Workloads []WorkloadResult `json:"workloads"`
}

// Missing is a peer, or a nested module with all its peers, that did not run.
type Missing struct {
	Peer   string `json:"peer"`
	Module string `json:"module,omitempty"`
	Why    string `json:"why"`
}

// WorkloadResult contains the results of a workload's peers and floors.
type WorkloadResult struct {
	Workload string        `json:"workload"`
	About    string        `json:"about"`
	Unit     string        `json:"unit"`
	More     bool          `json:"more"`    // more is better
	Seconds  float64       `json:"seconds"` // including inputs and preparation
	Differ   string        `json:"differ,omitempty"`
	Peers    []PeerResult  `json:"peers"`
	Floors   []FloorResult `json:"floors"`
}

// PeerResult contains the results of one peer.
type PeerResult struct {
	Peer      string  `json:"peer"`
	Ours      bool    `json:"ours"`
	Aside     bool    `json:"aside,omitempty"`
	Failed    string  `json:"failed,omitempty"` // why it did not complete all rounds
	Median    float64 `json:"median"`
	PeakBytes int64   `json:"peak_bytes"` // 0 = unknown
	// seconds to prepare the initial state of the rounds; 0 = prepared earlier, or in each round
	Prepare float64       `json:"prepare_seconds"`
	Seconds float64       `json:"rounds_seconds"` // seconds of all rounds, including work that is not timed
	Rounds  []Measurement `json:"rounds"`
}

// FloorResult reports whether a floor is met, by the figure or by the ratio.
type FloorResult struct {
	Floor string  `json:"floor"`
	Got   float64 `json:"got"`
	Ratio float64 `json:"ratio,omitempty"` // 0 = no such peer in this run
	Met   bool    `json:"met"`
}

// Met reports whether all floors are met.
func (r *Report) Met() bool {
	for i := range r.Workloads {
		if slices.ContainsFunc(r.Workloads[i].Floors, func(f FloorResult) bool { return !f.Met }) {
			return false
		}
	}
	return true
}

// compare computes the medians. It returns an error if two peers, or two rounds, gave different
// answers.
func (w *WorkloadResult) compare() error {
	for i := range w.Peers {
		w.Peers[i].Median = median(w.Peers[i].values(""))
	}
	first, who := "", ""
	for i := range w.Peers {
		for _, m := range w.Peers[i].Rounds {
			switch {
			case m.Checksum == "" || m.Checksum == first:
			case first != "":
				w.Differ = fmt.Sprintf("%s: %s answers %s, but %s answers %s", w.Workload,
					w.Peers[i].Peer, m.Checksum, who, first)
				return errors.New(w.Differ)
			default:
				first, who = m.Checksum, w.Peers[i].Peer
			}
		}
	}
	return nil
}

// measured reports whether the peer has any rounds.
func (p *PeerResult) measured() bool { return len(p.Rounds) > 0 }

// best returns the peer with the best median, of ours or of the others; nil if none was measured.
func (w *WorkloadResult) best(ours bool) (best *PeerResult) {
	for i := range w.Peers {
		p := &w.Peers[i]
		if p.Ours == ours && !p.Aside && p.measured() && (best == nil || w.More == (p.Median > best.Median)) {
			best = p
		}
	}
	return best
}

// speed returns the ratio of a to b, as the median of the rounds and its range: above 1, a is
// better.
func (w *WorkloadResult) speed(a, b *PeerResult) Spread {
	if !w.More {
		a, b = b, a
	}
	return spreadOf(ratios(a.values(""), b.values("")))
}

// Spread is the median of some rounds, with minimum and maximum.
type Spread struct{ Least, Median, Most float64 }

func spreadOf(v []float64) Spread {
	if len(v) == 0 {
		return Spread{}
	}
	return Spread{slices.Min(v), median(v), slices.Max(v)}
}

func (s Spread) String() string {
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.Least), number(s.Most))
}

// busyRounds returns the number of rounds measured on a busy machine.
func (p *PeerResult) busyRounds() (n int) {
	for _, m := range p.Rounds {
		if m.Busy {
			n++
		}
	}
	return n
}

// values returns a peer's values of all rounds, of its figure or of a metric.
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

// judge evaluates the workload's floors; r has the results of earlier workloads. It ignores floors
// that depend on a peer that did not run.
func (w *WorkloadResult) judge(def *Workload, r *Report) {
	for i := range def.Floors {
		f := &def.Floors[i]
		p := w.peer(f.Peer)
		if p == nil || !p.measured() || f.Figure == 0 && w.against(f, r) == nil {
			continue
		}
		w.Floors = append(w.Floors, w.judgeFloor(f, p, r))
	}
	for i := range w.Peers {
		p := &w.Peers[i]
		if p.Ours && def.MemoryLimit > 0 && p.PeakBytes > 0 {
			w.Floors = append(w.Floors,
				FloorResult{Floor: fmt.Sprintf("%s: %s ≤ %d MiB", p.Peer, memoryFloor, def.MemoryLimit>>20),
					Got: float64(p.PeakBytes >> 20), Met: p.PeakBytes <= def.MemoryLimit})
		}
	}
}

// against returns the peer that a floor names, or nil if it was not measured.
func (w *WorkloadResult) against(f *Floor, r *Report) *PeerResult {
	in := w
	if f.Workload != "" {
		if in = r.workload(f.Workload); in == nil {
			return nil
		}
	}
	p := in.peer(f.Against)
	if f.Against == BestPeer {
		p = in.best(false)
	}
	if p == nil || !p.measured() {
		return nil
	}
	return p
}

func (r *Report) workload(name string) *WorkloadResult {
	for i := range r.Workloads {
		if r.Workloads[i].Workload == name {
			return &r.Workloads[i]
		}
	}
	return nil
}

func (w *WorkloadResult) judgeFloor(f *Floor, p *PeerResult, r *Report) FloorResult {
	than, name := "≤", f.Metric
	if f.Least {
		than = "≥"
	}
	if name == "" {
		name = w.Unit
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
		where := ""
		if f.Workload != "" {
			where = " in " + f.Workload
		}
		wanted = append(wanted, fmt.Sprintf("%s %g × %s%s", than, f.Ratio, f.Against, where))
		if other := w.against(f, r); other != nil {
			out.Ratio = p.ratio(other, f.Metric)
			out.Met = out.Met || reaches(out.Ratio, f.Ratio)
		}
	}
	out.Floor = f.Peer + ": " + strings.Join(wanted, " or ")
	return out
}

// ratio returns the ratio of a metric, if both peers have it, otherwise of the figures.
func (p *PeerResult) ratio(other *PeerResult, metric string) float64 {
	if _, ok := other.Rounds[0].Metrics[metric]; !ok {
		metric = ""
	}
	return ratio(p.values(metric), other.values(metric))
}

// memoryFloor is the name of a memory limit in reports.
const memoryFloor = "peak memory"

// ratio returns the median of the rounds' ratios.
func ratio(a, b []float64) float64 { return median(ratios(a, b)) }

// ratios returns the ratio of each round. Other load affects both peers of a round alike.
func ratios(a, b []float64) (r []float64) {
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return r
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

// ReadReport reads a report written by WriteJSON.
func ReadReport(in io.Reader) (*Report, error) {
	r := &Report{}
	if err := json.NewDecoder(in).Decode(r); err != nil {
		return nil, fmt.Errorf("not a report: %w", err)
	}
	if r.Version != reportVersion {
		return nil, fmt.Errorf("report version %d; this program reads version %d", r.Version, reportVersion)
	}
	return r, nil
}

// WriteTable writes the report as text.
func (r *Report) WriteTable(w io.Writer) error {
	fmt.Fprintf(w, "scale %s, median of %d rounds, %s\n", r.Scale, r.Rounds, r.Machine)
	for i := range r.Workloads {
		res := &r.Workloads[i]
		fmt.Fprintf(w, "\n%s: %s\n", res.Workload, res.About)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "  peer\t%s\tmin\tmax\tcpu s\tpeak MiB\twritten MiB\tdisk MiB\tbusy\t\n", res.Unit)
		for k := range res.Peers {
			p := &res.Peers[k]
			if !p.measured() {
				fmt.Fprintf(t, "  %s\tfailed\n", p.Peer)
				continue
			}
			values := p.values("")
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%.2f\t%s\t%s\t%s\t%d\t%s\n", p.Peer, number(p.Median),
				number(slices.Min(values)), number(slices.Max(values)),
				p.median(func(m *Measurement) float64 { return m.CPU }), mebibytes(p.PeakBytes),
				mebibytes(int64(p.median(func(m *Measurement) float64 { return float64(m.Written) }))),
				mebibytes(int64(p.median(func(m *Measurement) float64 {
					return float64(m.DiskBytes)
				}))), p.busyRounds(), metrics(p))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, f := range res.Floors {
			fmt.Fprintf(w, "  %s %s: %s%s\n", verdict(f.Met, r.Scale), f.Floor, number(f.Got), ratioText(f.Ratio))
		}
		for _, line := range res.faults() {
			fmt.Fprintf(w, "  FAIL  %s\n", line)
		}
	}
	for _, m := range r.Missing {
		fmt.Fprintf(w, "\nnot run: %s: %s\n", m.Peer, m.Why)
	}
	fmt.Fprintf(w, "\n%s\n", r.took())
	return nil
}

// faults lists the failures of peers and the difference between answers.
func (w *WorkloadResult) faults() (lines []string) {
	for i := range w.Peers {
		if w.Peers[i].Failed != "" {
			lines = append(lines, w.Peers[i].Failed)
		}
	}
	if w.Differ != "" {
		lines = append(lines, w.Differ)
	}
	return lines
}

// median returns the median over the rounds of a value.
func (p *PeerResult) median(of func(m *Measurement) float64) float64 {
	v := make([]float64, len(p.Rounds))
	for i := range p.Rounds {
		v[i] = of(&p.Rounds[i])
	}
	return median(v)
}

// verdict returns pass or fail; it is empty for small runs, whose figures mean nothing.
func verdict(met bool, scale string) string {
	s := Scale{Name: scale}
	switch {
	case !s.Figures():
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

// metrics formats the medians of a peer's additional metrics.
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

// number formats a figure with three or four significant digits, and commas between thousands.
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
	case math.Abs(v) < 0.1:
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.2f", v)
}
