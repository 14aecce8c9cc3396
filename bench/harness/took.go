package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// tookShown is how many workloads, and how many peers of them, are told of a run's time.
const tookShown = 5

// took tells where the time of the run went, measured or not, in a line.
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
	return fmt.Sprintf("The run took %s; the longest workloads: %s; the longest peers of one: %s.", duration(r.Seconds), longest(workloads), longest(peers))
}

// duration is seconds for people.
func duration(seconds float64) string {
	unit := time.Second
	if seconds < 10 {
		unit = 100 * time.Millisecond
	}
	return time.Duration(seconds * float64(time.Second)).Round(unit).String()
}
