package work

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
)

const (
	cachedKeys  = 100 // few, so that everything they need is in the cache
	coldKeys    = 100
	manyKeys    = 64
	rangeRows   = 100
	deletedRows = 100_000
	fewRows     = 20
	missLine    = 8 // no order has line 8: such a key is between two keys in the table
)

var errNotThere = errors.New("a row is missing")

// getHit reads single rows, all 16 columns, that were read before. It also measures two other
// methods of the engine.
func getHit(all []peer.Driver) harness.Workload {
	w := harness.Workload{
		Name: "get",
		About: fmt.Sprintf("read one row of lineitem by key, 16 columns, %d evenly spaced keys in random order, cached",
			cachedKeys),
		Unit: "µs", MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs,
		Peers: tablePeers(all, peer.Point, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			return measureGets(env, d, cachedKeys, peer.CallGet, 0,
				func(l peer.Lineitem, key inputs.Key, into *inputs.Item) (int64, error) {
					found, err := l.Get(key, into)
					if err == nil && !found {
						err = errNotThere
					}
					return into.SuppKey, err
				})
		}),
		Floors: []harness.Floor{{Peer: "oribi", Figure: 4, Against: "pebble", Ratio: 0.33},
			{Peer: "oribi-row", Figure: 4, Against: "pebble", Ratio: 1.5}},
	}
	var faces []harness.Peer
	prepare := prepareTable(&peer.Oribi)
	for _, p := range []struct {
		name string
		make func(t table) (getter, error)
	}{{"oribi-row", getRow}, {"oribi-typed", getTyped}} {
		faces = append(faces, harness.Peer{Name: p.name, Ours: true, Store: peer.Oribi.Name, Prepare: prepare,
			Measure: storeGetter(cachedKeys, p.make)})
	}
	w.Peers = append(w.Peers[:1:1], append(faces, w.Peers[1:]...)...)
	return w
}

// getMiss looks up absent rows.
func getMiss(all []peer.Driver) harness.Workload {
	return harness.Workload{
		Name: "get-miss",
		About: fmt.Sprintf("look up an absent key of lineitem between existing ones, %d keys in random order",
			cachedKeys),
		Unit: "µs", MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs,
		Peers: tablePeers(all, peer.Point, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			return measureGets(env, d, cachedKeys, peer.CallMiss, missLine,
				func(l peer.Lineitem, key inputs.Key, into *inputs.Item) (int64, error) {
					found, err := l.Get(key, into)
					if found {
						err = errors.New("found a row that was never written")
					}
					return 1, err
				})
		}),
		Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 0.15}},
	}
}

// spreadKeys is so large that the decoded chunks of their cells exceed the engine's cache.
const spreadKeys = 1000

// getSpread reads more keys than the cache can serve.
func getSpread(all []peer.Driver) harness.Workload {
	return harness.Workload{
		Name: "get-spread",
		About: fmt.Sprintf("read one row of lineitem by key, 16 columns, %d keys in random order, each read twice "+
			"before", spreadKeys),
		Unit: "µs", MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs,
		Peers: tablePeers(local(all), peer.Point, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			return measureGets(env, d, spreadKeys, peer.CallGet, 0,
				func(l peer.Lineitem, key inputs.Key, into *inputs.Item) (int64, error) {
					found, err := l.Get(key, into)
					if err == nil && !found {
						err = errNotThere
					}
					return into.SuppKey, err
				})
		}),
	}
}

// local returns the drivers that work in this process. For the others, the communication takes most
// of the time of single reads, wherever the rows are.
func local(all []peer.Driver) []peer.Driver {
	return slices.DeleteFunc(slices.Clone(all), func(d peer.Driver) bool { return d.Remote })
}

// measureGets reads rows of the open table, or looks up another line number of their orders if line
// is not 0.
func measureGets(
	env *harness.Env, d *peer.Driver, n int, call peer.Call, line int32,
	get func(l peer.Lineitem, key inputs.Key, into *inputs.Item) (int64, error),
) (harness.Measurement, error) {
	keys, err := pickKeys(env, n)
	if err != nil {
		return harness.Measurement{}, err
	}
	if line != 0 {
		for i := range keys {
			keys[i].LineNumber = line
		}
	}
	return withTable(env, d, func(l peer.Lineitem) (harness.Measurement, error) {
		if r, ok := l.(peer.Remote); ok {
			return remoteCalls(env, r, call, keys, env.Scale.Gets, 1)
		}
		var into inputs.Item
		return calls(env, len(keys), env.Scale.Gets, 1, func(i int) (int64, error) { return get(l, keys[i], &into) })
	})
}

// getCold reads rows right after opening, with nothing of the store in memory.
func getCold(all []peer.Driver) harness.Workload {
	return harness.Workload{
		Name: "get-cold",
		About: fmt.Sprintf("read one row of lineitem by key, 16 columns, %d keys in random order, once each, right "+
			"after opening, with nothing in the page cache", coldKeys),
		Unit: "µs", MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs, Cold: true,
		Floors: []harness.Floor{{Peer: peer.OribiRows.Name, Against: "pebble", Ratio: 0.5}},
		Peers:  tablePeers(local(all), peer.Point, measureCold)}
}

func measureCold(env *harness.Env, d *peer.Driver) (m harness.Measurement, err error) {
	items, err := pick(env, coldKeys)
	if err != nil {
		return m, err
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return withTable(env, d, func(l peer.Lineitem) (m harness.Measurement, err error) {
		var into inputs.Item
		var sum int64
		took, err := env.Clock(func() error {
			for i := range items {
				found, err := l.Get(items[i].Key(), &into)
				if err == nil && !found {
					err = errNotThere
				}
				if err != nil {
					return err
				}
				sum += into.SuppKey
			}
			return nil
		})
		m.Value, m.Checksum = took.Seconds()*1e6/float64(len(items)), fmt.Sprint(sum)
		return m, err
	})
}

// getMany reads many keys in one call.
func getMany(all []peer.Driver) harness.Workload {
	return harness.Workload{
		Name: "get-64",
		About: fmt.Sprintf("read %d rows of lineitem by their keys, in one call if the peer has one, 16 columns, "+
			"cached", manyKeys),
		Unit: "µs/row", MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs,
		Peers: tablePeers(all, peer.Point, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			picked, err := pickKeys(env, cachedKeys*manyKeys/16)
			if err != nil {
				return harness.Measurement{}, err
			}
			var keys []inputs.Key // the keys of one call after the keys of another
			for i := range len(picked) / manyKeys {
				for k := range manyKeys {
					keys = append(keys, picked[(i+k*len(picked)/manyKeys)%len(picked)])
				}
			}
			return withTable(env, d, func(l peer.Lineitem) (harness.Measurement, error) {
				if r, ok := l.(peer.Remote); ok {
					return remoteCalls(env, r, peer.CallMany, keys, env.Scale.Gets/manyKeys, manyKeys)
				}
				return calls(env, len(keys)/manyKeys, env.Scale.Gets/manyKeys, manyKeys,
					func(i int) (sum int64, err error) {
						n := 0
						err = l.GetMany(keys[i*manyKeys:(i+1)*manyKeys], func(it *inputs.Item) {
							sum += it.SuppKey
							n++
						})
						if err == nil && n != manyKeys {
							err = fmt.Errorf("%d rows, want %d: %w", n, manyKeys, errNotThere)
						}
						return sum, err
					})
			})
		})}
}

// rangeScan reads consecutive rows.
func rangeScan(all []peer.Driver) harness.Workload {
	w := ranges("range", all, rangeRows)
	w.Floors = []harness.Floor{{Peer: "oribi", Against: "bbolt", Ratio: 1.2},
		{Peer: peer.OribiRows.Name, Against: "bbolt", Ratio: 1}}
	return w
}

// shortRange reads so few rows that the beginning of the scan takes most of the time. Peers in
// other processes only know ranges of rangeRows.
func shortRange(all []peer.Driver) harness.Workload {
	w := ranges("range-20", local(all), fewRows)
	w.Floors = []harness.Floor{{Peer: "oribi", Against: "bbolt", Ratio: 2}}
	return w
}

func ranges(name string, all []peer.Driver, n int) harness.Workload {
	return harness.Workload{
		Name: name,
		About: fmt.Sprintf("read %d consecutive rows of lineitem from a key on, 16 columns, %d keys in random order, "+
			"cached", n, cachedKeys),
		Unit: "µs", MemoryLimit: peakLimit, Group: tableGroup, Inputs: tableInputs,
		Peers: tablePeers(all, peer.Point, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			keys, err := pickKeys(env, cachedKeys)
			if err != nil {
				return harness.Measurement{}, err
			}
			return withTable(env, d, func(l peer.Lineitem) (harness.Measurement, error) {
				if r, ok := l.(peer.Remote); ok {
					return remoteCalls(env, r, peer.CallRange, keys, env.Scale.Gets/10, 1)
				}
				return calls(env, len(keys), env.Scale.Gets/10, 1, func(i int) (sum int64, err error) {
					err = l.Range(keys[i], n, func(it *inputs.Item) { sum += it.SuppKey + int64(len(it.Comment)) })
					return sum, err
				})
			})
		})}
}
