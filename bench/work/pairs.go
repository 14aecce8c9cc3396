package work

import (
	"fmt"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
)

// pairSizes are the sizes of the values that key-value stores are compared with, in bytes. A
// million of the small ones fit in the cache, and of the large ones about a quarter.
var pairSizes = []int{100, 1024}

// maxPairs is the number of keys.
const maxPairs = 1_000_000

// pairWriters is the number of writers of the workload with synced commits.
const pairWriters = 16

// pairs returns the mixes A to F of YCSB on keys and values, for package kv and other key-value
// stores, and synced commits of many writers. Operations replace values as a whole.
func pairs(all []peer.Driver) (out []harness.Workload) {
	ds := drivers(all, peer.Pairs)
	for _, bytes := range pairSizes {
		for _, mix := range ycsbMixes {
			out = append(out, pairWorkload(ds, mix, bytes))
		}
	}
	w := harness.Workload{
		Name: fmt.Sprintf("kv-commit-sync-%d", pairWriters),
		About: fmt.Sprintf("%d writers, one key with a value of %d bytes per commit, every commit synced", pairWriters,
			commitValue),
		Unit: "commits/s", More: true, Fresh: true, MemoryLimit: peakLimit,
	}
	for _, d := range drivers(ds, peer.Shared) {
		w.Peers = append(w.Peers, syncPeer(d, pairWriters))
	}
	return append(out, w)
}

func pairWorkload(ds []peer.Driver, mix ycsbMix, bytes int) harness.Workload {
	choice := "zipf"
	if mix.kind == ycsbInsert && mix.base == ycsbRead {
		choice = "latest" // as YCSB defines D
	}
	w := harness.Workload{
		Name: fmt.Sprintf("kv-%s-%d", mix.letter, bytes),
		About: fmt.Sprintf("YCSB %s on a million keys with values of %d bytes, chosen %s; after a warm-up; one "+
			"thread, no sync", mix.letter, bytes, ycsbChoices[choice]),
		Unit: "operations/s", More: true, MemoryLimit: peakLimit,
		Group: fmt.Sprintf("kv-%d", bytes), Copies: mix.other > 0,
	}
	for _, d := range ds {
		w.Peers = append(w.Peers, harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module,
			Prepare: func(env *harness.Env) error { return preparePairs(env, &d, bytes) },
			Measure: func(env *harness.Env) (m harness.Measurement, err error) {
				warmUp, n := ycsbCounts(env, &mix, false)
				ops := ycsbOps(&mix, choice, warmUp+n, pairCount(env))
				r, err := openRecords(env, &d, false)
				if err != nil {
					return m, err
				}
				return runYCSB(env, r, ops, warmUp, bytes)
			}})
	}
	return w
}

func pairCount(env *harness.Env) int { return min(env.Scale.Table, maxPairs) }

func preparePairs(env *harness.Env, d *peer.Driver, bytes int) error {
	r, err := openRecords(env, d, false)
	if err != nil {
		return err
	}
	if err = putRecords(r, pairCount(env), bytes); err == nil {
		err = r.FinishWork()
	}
	return closeAll(err, r)
}
