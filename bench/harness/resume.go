package harness

import (
	"fmt"
	"strings"
)

// Changed is the end of Report.Commit if files differ from that commit.
const Changed = "+changes"

// resume takes the results of an earlier, interrupted run of the same program on the same machine.
func (r *Report) resume(earlier *Report) error {
	for _, c := range []struct{ what, is, was string }{{"scale", r.Scale, earlier.Scale},
		{"commit", r.Commit, earlier.Commit}, {"machine", r.Machine, earlier.Machine}, {"rounds", fmt.Sprint(r.Rounds), fmt.Sprint(earlier.Rounds)}} {
		if c.is != c.was {
			return fmt.Errorf("resume: the %s is %q; in the earlier results it is %q", c.what, c.is, c.was)
		}
	}
	if r.Commit == "" || strings.HasSuffix(r.Commit, Changed) {
		return fmt.Errorf("resume: the commit is %q: commit all changes, so that all results are of one program",
			r.Commit)
	}
	r.Started, r.Seconds, r.Workloads = earlier.Started, earlier.Seconds, earlier.Workloads
	return nil
}

// Complete reports whether the workload was measured with all its peers in all rounds.
func (r *Report) Complete(w *Workload) bool {
	done := r.workload(w.Name)
	if done == nil || done.Differ != "" {
		return false
	}
	for i := range w.Peers {
		if p := done.peer(w.Peers[i].Name); p == nil || p.Failed != "" || len(p.Rounds) != r.Rounds {
			return false
		}
	}
	return true
}

// put adds a result, or replaces the workload's earlier one.
func (r *Report) put(result *WorkloadResult) {
	if earlier := r.workload(result.Workload); earlier != nil {
		*earlier = *result
		return
	}
	r.Workloads = append(r.Workloads, *result)
}
