package harness

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a table with one row per workload: our best peer, the best other peer, and
// the result of each floor. A second table compares our best peer with each other peer.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Scale %s, %d rounds, %s, started %s.\n\n", r.Scale, r.Rounds, r.Machine,
		r.Started.Format("2006-01-02 15:04"))
	b.WriteString("The ratio compares ours with the best other peer: above 1, ours is better, whatever the unit. The " +
		"range of the rounds is in parentheses.\n\n")
	b.WriteString("| workload | unit | ours | figure | best peer | figure | ratio | peak MiB | busy rounds | goals " +
		"|\n|---|---|---|---:|---|---:|---:|---:|---:|---|\n")
	for i := range r.Workloads {
		res := &r.Workloads[i]
		ours, other := res.best(true), res.best(false)
		row := []string{res.Workload, res.Unit, "", "", "", "", "", "", "", res.goals(r.Scale)}
		if ours != nil {
			row[2], row[3], row[7], row[8] = ours.Peer, number(ours.Median),
				mebibytes(ours.PeakBytes), fmt.Sprint(ours.busyRounds())
		}
		if other != nil {
			row[4], row[5] = other.Peer, number(other.Median)
		}
		if ours != nil && other != nil {
			row[6] = res.speed(ours, other).String()
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	r.writePeers(&b)
	r.writeFaults(&b)
	fmt.Fprintf(&b, "\n%s\n", r.took())
	_, err := io.WriteString(w, b.String())
	return err
}

// fewWorkloads is the minimum number of workloads of a peer with its own column.
const fewWorkloads = 3

// writePeers writes the table of all peers that take part in at least fewWorkloads workloads.
func (r *Report) writePeers(b *strings.Builder) {
	var names []string
	count := map[string]int{}
	for i := range r.Workloads {
		for k := range r.Workloads[i].Peers {
			p := &r.Workloads[i].Peers[k]
			if p.Ours || !p.measured() {
				continue
			}
			if count[p.Peer]++; count[p.Peer] == fewWorkloads {
				names = append(names, p.Peer)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(b, "\nThe same ratio for each peer, without the range.\n\n| workload | ours | %s |\n|---|---|%s\n",
		strings.Join(names, " | "), strings.Repeat("---:|", len(names)))
	for i := range r.Workloads {
		w := &r.Workloads[i]
		ours := w.best(true)
		if ours == nil {
			continue
		}
		row, any := make([]string, len(names)), false
		for k, name := range names {
			if p := w.peer(name); p != nil && p.measured() {
				row[k], any = number(w.speed(ours, p).Median), true
			}
		}
		if any {
			fmt.Fprintf(b, "| %s | %s | %s |\n", w.Workload, ours.Peer, strings.Join(row, " | "))
		}
	}
}

// writeFaults lists the failures, and the peers that did not run.
func (r *Report) writeFaults(b *strings.Builder) {
	var lines []string
	for i := range r.Workloads {
		lines = append(lines, r.Workloads[i].faults()...)
	}
	for _, m := range r.Missing {
		lines = append(lines, fmt.Sprintf("%s did not run: %s", m.Peer, m.Why))
	}
	if len(lines) > 0 {
		b.WriteString("\n- " + strings.Join(lines, "\n- ") + "\n")
	}
}

// goals describes a workload's floors briefly. Memory limits are included only if they are not met.
func (w *WorkloadResult) goals(scale string) string {
	var out []string
	for _, f := range w.Floors {
		if f.Met && strings.Contains(f.Floor, memoryFloor) {
			continue
		}
		out = append(out, strings.TrimSpace(strings.ToLower(verdict(f.Met, scale))+" "+f.Floor))
	}
	return strings.Join(out, "; ")
}
