package harness

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Compare prints what became slower or faster from one run to another, for each of our peers. If
// both runs have the older run's best other peer, Compare uses the ratios to it, so that a slower
// machine does not look like a slower program; otherwise it uses the figures. A difference counts
// if all rounds of one run are outside the range of the other. The output includes the number of
// busy rounds, whose figures mean little. slower is the number of workloads and peers that became
// slower.
func Compare(w io.Writer, older, newer *Report) (slower int, err error) {
	if older.Scale != newer.Scale {
		return 0, fmt.Errorf("a run of scale %s and one of scale %s cannot be compared", older.Scale, newer.Scale)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "workload\tpeer\tagainst\tolder\tnewer\tbusy rounds\t\n")
	for i := range older.Workloads {
		a := &older.Workloads[i]
		b := newer.workload(a.Workload)
		if b == nil {
			fmt.Fprintf(t, "%s\t\t\t\t\t\tmissing in the newer run\n", a.Workload)
			continue
		}
		for k := range a.Peers {
			p := &a.Peers[k]
			q := b.peer(p.Peer)
			if !p.Ours || !p.measured() {
				continue
			}
			if q == nil || !q.measured() {
				fmt.Fprintf(t, "%s\t%s\t\t\t\t\tmissing in the newer run\n", a.Workload, p.Peer)
				continue
			}
			was, is, against := twoSpeeds(a, b, p, q)
			word := change(was, is)
			if word == "slower" {
				slower++
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%v\t%d, %d\t%s\n", a.Workload, p.Peer, against, was, is,
				p.busyRounds(), q.busyRounds(), word)
		}
	}
	return slower, t.Flush()
}

// twoSpeeds returns what one of our peers reached in two runs; more is better.
func twoSpeeds(a, b *WorkloadResult, p, q *PeerResult) (was, is Spread, against string) {
	if other := a.best(false); other != nil {
		if same := b.peer(other.Peer); same != nil && same.measured() {
			return a.speed(p, other), b.speed(q, same), other.Peer
		}
	}
	return a.goodness(p), b.goodness(q), "itself"
}

// goodness returns a peer's rounds as values of which more is better.
func (w *WorkloadResult) goodness(p *PeerResult) Spread {
	v := p.values("")
	if !w.More {
		for i := range v {
			if v[i] != 0 {
				v[i] = 1 / v[i]
			}
		}
	}
	return spreadOf(v)
}

// change returns "slower" or "faster" if the two ranges do not overlap, else "same".
func change(was, is Spread) string {
	switch {
	case is.Most < was.Least:
		return "slower"
	case is.Least > was.Most:
		return "faster"
	}
	return "same"
}
