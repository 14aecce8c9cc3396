package harness

// Figure is the result of a workload in one line: our best peer, and the best other peer.
type Figure struct {
	Workload, Unit string
	Ours, Value    string // peer and figure; empty if none was measured
	Other, Best    string // the same of the best other peer; empty if there is none
	Ratio          string // of ours to it: above 1, ours is better; empty without another peer
}

// Figures returns a figure for each workload.
func (r *Report) Figures() []Figure {
	figures := make([]Figure, len(r.Workloads))
	for i := range r.Workloads {
		w := &r.Workloads[i]
		f := &figures[i]
		f.Workload, f.Unit = w.Workload, w.Unit
		ours, other := w.best(true), w.best(false)
		if ours != nil {
			f.Ours, f.Value = ours.Peer, number(ours.Median)
		}
		if other != nil {
			f.Other, f.Best = other.Peer, number(other.Median)
		}
		if ours != nil && other != nil {
			f.Ratio = number(w.speed(ours, other).Median)
		}
	}
	return figures
}
