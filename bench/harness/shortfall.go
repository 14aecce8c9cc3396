package harness

import "fmt"

// Shortfall is a workload in which our best peer is slower than another, or misses a goal.
type Shortfall struct {
	Workload string
	Peer     string // our best peer
	Why      string
}

// Shortfalls lists the workloads in which our best peer is slower than the best other peer, or a floor is
// not met.
func (r *Report) Shortfalls() (list []Shortfall) {
	for i := range r.Workloads {
		w := &r.Workloads[i]
		ours, other := w.best(true), w.best(false)
		if ours == nil {
			continue
		}
		why := ""
		if other != nil {
			if s := w.speed(ours, other); s.Median < 1 {
				why = fmt.Sprintf("%s is %v × as good as %s", ours.Peer, s, other.Peer)
			}
		}
		for _, f := range w.Floors {
			if f.Met {
				continue
			}
			if why != "" {
				why += "; "
			}
			why += f.Floor + " is not met"
		}
		if why != "" {
			list = append(list, Shortfall{w.Workload, ours.Peer, why})
		}
	}
	return list
}
