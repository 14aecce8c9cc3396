package lab

import (
	"math"
	"os"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// realSpec has workloads with inserts, updates and deletes.
const realSpec = `{"seed":7,"engine":"real","flush_bytes":"192KB","rowset_bytes":"192KB","workloads":[
	{"name":"uniform","keys":100000,"operations":22000},{"name":"old-deletes","keys":6000,"operations":16000,"history":2000}],
	"policies":[{"name":"overlap","budget":"1MB"},{"name":"leveled","budget":"1MB"}]}`

// The simulation agrees with stores. Tolerated is a ratio of 1.15 of each measure, which is the
// average over a run, or at its end for the write amplification. A difference in one choice of the
// policy makes the layouts of the rest of a run differ.
func TestSimulationAgreesWithStores(t *testing.T) {
	const tolerated = 1.15
	s := parsed(t, realSpec)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	stores := resultsOf(t, s)
	left := must.Get(os.ReadDir(temporary))(t)
	must.Equal(t, len(left), 0, "the stores leave", left)
	granular := fitted
	granular.Batch, granular.Buffer = 4096, 32<<10 // the writer of rowsets ends them between batches
	s.Engine = Simulated
	simulated := simulatedWith(t, s, granular)
	for i, r := range stores {
		for _, m := range measures {
			if m.bytes {
				continue // of a layout at one time
			}
			want, got := m.value(r), m.value(simulated[i])
			t.Logf("%-11s %-8s %-20s store %6.2f, simulation %6.2f", r.Workload, r.Policy, m.Title, want, got)
			if math.Max(want/got, got/want) > tolerated {
				t.Errorf("%s, %s: %s is %.2f, of a store %.2f", r.Workload, r.Policy, m.Title, got, want)
			}
		}
		if a, b := end(r).LiveRows, end(simulated[i]).LiveRows; a != b {
			t.Errorf("%s, %s: %d live rows, of a store %d", r.Workload, r.Policy, b, a)
		}
	}
}

// simulatedWith runs a spec with other costs than the fitted ones.
func simulatedWith(t *testing.T, s *Spec, c costs) (results []*Result) {
	t.Helper()
	for i := range s.Workloads {
		for k := range s.Policies {
			policy := must.Get(s.Policies[k].policy())(t)
			w := &s.Workloads[i]
			x := &experiment{spec: s, workload: w, source: priced{operations{w}, c}, policy: policy,
				budget: int64(s.Policies[k].Budget),
				result: &Result{Workload: w.Label, Policy: s.Policies[k].Label}}
			must.Do(t, x.run(t.Context(), func(int64) {}))
			results = append(results, x.result)
		}
	}
	return results
}

// priced is a source of operations on a simulation with other costs.
type priced struct {
	operations
	costs costs
}

func (p priced) prepare(s *simulation) { s.costs = p.costs }
