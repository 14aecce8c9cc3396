package work

import (
	"slices"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// stalls measures how long writers wait while the store rewrites rows.
func stalls() []harness.Workload {
	make := func(name, about string, step int) harness.Workload {
		return harness.Workload{Name: name, About: about + "; the slowest commit", Unit: "ms", Fresh: true,
			MemoryLimit: ratesMemory + peakLimit, Inputs: tableInputs, Peers: []harness.Peer{
				{Name: "oribi", Ours: true, Measure: func(env *harness.Env) (harness.Measurement, error) {
					return rateOribi(env, step, stall)
				}},
				{Name: "pebble", Measure: func(env *harness.Env) (harness.Measurement, error) {
					return ratePebble(env, step, stall)
				}}},
			Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1}}}
	}
	return []harness.Workload{
		make("write-stall", "one writer upserts rows of lineitem (at most 200,000), one per commit, without sync, "+
			"during a flush of all rows", flushStep),
		make("write-stall-merge", "one writer upserts rows of lineitem, one per commit, without sync, during a merge "+
			"of 8 overlapping flushes of all rows", mergeStep),
	}
}

// stall returns the time of the slowest single-row commit while work runs.
func stall(
	env *harness.Env, all []inputs.Item, put func([]inputs.Item) error, work func() error,
) (m harness.Measurement, err error) {
	took := make([]time.Duration, 0, 1<<20)
	_, err = env.Clock(func() error {
		done := make(chan error)
		go func() { done <- work() }()
		for i := 0; ; i = (i + 7919) % len(all) {
			select {
			case err := <-done:
				return err
			default:
			}
			start := time.Now()
			if err := put(all[i : i+1]); err != nil {
				<-done
				return err
			}
			took = append(took, time.Since(start))
		}
	})
	if err != nil || len(took) == 0 {
		return m, err
	}
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1e3 }
	m.Value = at(1)
	m.Metrics = map[string]float64{"ms p99.9": at(0.999), "ms p99": at(0.99), "ms median": at(0.5),
		"commits": float64(len(took))}
	return m, nil
}
