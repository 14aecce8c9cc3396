package work

import (
	"fmt"
	"time"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

// queries are the workloads that read columns of all rows.
func queries(all []peer.Driver) (out []harness.Workload) {
	const fourfold, eightfold = 4, 8
	for _, q := range []struct {
		question peer.Question
		about    string
		floor    float64 // × DuckDB with one thread
	}{
		{peer.Sum, "sum of l_partkey (int64, random)", fourfold},
		{peer.FewRows, "sum of l_extendedprice where l_partkey is one of 0.1 %", eightfold},
		{peer.SomeRows, "sum of l_extendedprice where l_partkey is one of 20 %", eightfold},
		{peer.NoRows, "sum of l_extendedprice where l_quantity is 12.50, which no row has though it lies between the least and the most", eightfold},
		{peer.Group, "count and sum of l_quantity by l_shipmode (7 values)", 0},
		{peer.Q1, "TPC-H Q1, in integers; where the peer has no SQL, added up over what its reads hand out", 0},
		{peer.Q6, "TPC-H Q6, likewise", 0},
	} {
		w := harness.Workload{Name: string(q.question), About: q.about + ", over all of lineitem, warm",
			Unit: "rows/s", More: true, MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs,
			Peers: tablePeers(all, peer.Query, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
				return withTable(env, d, func(l peer.Lineitem) (harness.Measurement, error) { return measureQuery(env, l, q.question) })
			})}
		if q.floor > 0 {
			w.Floors = []harness.Floor{{Peer: "oribi", Against: "duckdb-1", Ratio: q.floor, Least: true}}
		}
		out = append(out, w)
	}
	return out
}

// measureQuery asks once to warm, then again, at least twice, for enough time.
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
				return fmt.Errorf("the answer is %s, was %s", got, m.Checksum)
			}
		}
		return nil
	})
	m.Value = float64(env.Scale.Table) * float64(passes) / took.Seconds()
	return m, err
}
