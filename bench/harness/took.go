package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// tookShown is the number of workloads, and of peers in them, in the summary of a run's time.
const tookShown = 5

// took describes in one line which workloads and peers took the longest, including work that is not
// timed.
func (r *Report) took() string {
	type part struct {
		name    string
		seconds float64
	}
	var workloads, peers []part
	for i := range r.Workloads {
		w := &r.Workloads[i]
		workloads = append(workloads, part{w.Workload, w.Seconds})
		for k := range w.Peers {
			p := &w.Peers[k]
			peers = append(peers, part{w.Workload + "/" + p.Peer, p.Prepare + p.Seconds})
		}
	}
	longest := func(parts []part) string {
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.seconds, a.seconds) })
		var texts []string
		for _, p := range parts[:min(len(parts), tookShown)] {
			texts = append(texts, p.name+" "+duration(p.seconds))
		}
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("The run took %s. Longest workloads: %s. Longest peers: %s.", duration(r.Seconds),
		longest(workloads), longest(peers))
}

// duration formats seconds.
func duration(seconds float64) string {
	unit := time.Second
	if seconds < 10 {
		unit = 100 * time.Millisecond
	}
	return time.Duration(seconds * float64(time.Second)).Round(unit).String()
}
