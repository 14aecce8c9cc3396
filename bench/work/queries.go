package work

import (
	"fmt"
	"slices"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

// queries returns the workloads that read columns of all rows.
func queries(all []peer.Driver) (out []harness.Workload) {
	for _, q := range []struct {
		question peer.Question
		about    string
		floor    float64 // ratio to DuckDB with as many threads
	}{
		{peer.Sum, "sum of l_partkey (int64, random)", 8},
		{peer.FewRows, "sum of l_extendedprice, with a condition on l_partkey that 0.1 % of the rows meet", 8},
		{peer.SomeRows, "sum of l_extendedprice, with a condition on l_partkey that 20 % of the rows meet", 6},
		{peer.NoRows, "sum of l_extendedprice where l_quantity is 12.50, which no row has although it is between " +
			"minimum and maximum", 8},
		{peer.Group, "count and sum of l_quantity by l_shipmode (7 values)", 5},
		{peer.Q1, "TPC-H Q1 in integers; for peers without SQL, computed from the rows that they read", 3},
		{peer.Q6, "TPC-H Q6 in integers; for peers without SQL, as in q1", 5},
	} {
		w := harness.Workload{Name: string(q.question), About: q.about + ", over all of lineitem, warm",
			Unit: "rows/s", More: true, MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs}
		measure := func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			return withTable(env, d, func(l peer.Lineitem) (harness.Measurement, error) {
				return measureQuery(env, l, q.question)
			})
		}
		w.Peers = tablePeers(all, peer.Query, measure)
		two := harness.Peer{Name: peer.OribiTwo.Name, Ours: true, Store: peer.Oribi.Name,
			Prepare: prepareTable(&peer.Oribi),
			Measure: func(env *harness.Env) (harness.Measurement, error) { return measure(env, &peer.OribiTwo) }}
		w.Peers = slices.Insert(w.Peers, 1, two)
		w.Floors = []harness.Floor{{Peer: "oribi", Against: "duckdb-1", Ratio: q.floor, Least: true},
			{Peer: two.Name, Against: "duckdb-2", Ratio: q.floor, Least: true}}
		out = append(out, w)
	}
	return out
}

// measureQuery runs the query once to warm up, then at least twice, for enough time.
func measureQuery(env *harness.Env, l peer.Lineitem, q peer.Question) (m harness.Measurement, err error) {
	first, err := l.Query(q)
	if err != nil {
		return m, err
	}
	m.Checksum = first.String()
	passes := 0
	took, err := env.Clock(func() error {
		for begin := time.Now(); passes < 2 || time.Since(begin) < enough(env); passes++ {
			a, err := l.Query(q)
			if err != nil {
				return err
			}
			if got := a.String(); got != m.Checksum {
				return fmt.Errorf("the answer is %s, but was %s", got, m.Checksum)
			}
		}
		return nil
	})
	m.Value = float64(env.Scale.Table) * float64(passes) / took.Seconds()
	return m, err
}
