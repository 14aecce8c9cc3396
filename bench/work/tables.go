package work

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/schema"
)

// Input files of the workloads on tables.
const (
	rowsFile     = "rows"
	shuffledFile = "rows-shuffled"
)

// tableGroup is the prepared state of the workloads that read lineitem: loaded in key order,
// compacted, closed.
const tableGroup = "lineitem"

// drivers returns the drivers that support all of can.
func drivers(all []peer.Driver, can peer.Can) (out []peer.Driver) {
	for _, d := range all {
		if d.Can&can == can {
			out = append(out, d)
		}
	}
	return out
}

// tableInputs makes the file of rows.
func tableInputs(env *harness.Env) error {
	text := env.Input(fmt.Sprintf("lineitem-%d.tbl", min(env.Scale.Table, inputs.LineitemRows)))
	if err := inputs.WriteLineitem(text, env.Corpus, env.Scale.Table); err != nil {
		return err
	}
	return inputs.WriteRows(env.Input(rowsFile), text, env.Scale.Table)
}

// shuffledInputs makes the file of rows, and one of the same rows in random order.
func shuffledInputs(env *harness.Env) error {
	if err := tableInputs(env); err != nil {
		return err
	}
	return inputs.Shuffle(env.Input(shuffledFile), env.Input(rowsFile))
}

// openTable opens the peer's lineitem.
func openTable(env *harness.Env, d *peer.Driver) (peer.Lineitem, error) {
	dir := env.Path(storeDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return d.Lineitem(dir)
}

// prepareTable loads lineitem and compacts it.
func prepareTable(d *peer.Driver) func(env *harness.Env) error {
	return func(env *harness.Env) error {
		l, err := openTable(env, d)
		if err != nil {
			return err
		}
		if err = l.Load(inputs.Rows(env.Input(rowsFile)), true); err == nil {
			err = l.FinishWork()
		}
		return closeAll(err, l)
	}
}

// tablePeers returns a peer for each driver that supports what a workload needs. The peers start
// from the prepared state.
func tablePeers(
	all []peer.Driver, can peer.Can, measure func(env *harness.Env, d *peer.Driver) (harness.Measurement, error),
) (out []harness.Peer) {
	for _, d := range drivers(all, can|peer.Sorted) {
		out = append(out, harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module, Prepare: prepareTable(&d),
			Measure: func(env *harness.Env) (harness.Measurement, error) { return measure(env, &d) }})
	}
	return out
}

// withTable measures work on the open table.
func withTable(
	env *harness.Env, d *peer.Driver, measure func(l peer.Lineitem) (harness.Measurement, error),
) (m harness.Measurement, err error) {
	l, err := openTable(env, d)
	if err != nil {
		return m, err
	}
	if r, ok := l.(peer.Remote); ok {
		env.Watch(r.Processes())
	}
	m, err = measure(l)
	return m, closeAll(err, l)
}

// changeTable times changes of a table, from opening the store to closing it; for a Remote, from
// the open store until the changes are durable. The checksum is computed by checkOnce; it is empty
// for peers that cannot be queried.
func changeTable(
	env *harness.Env, d *peer.Driver, change func(l peer.Lineitem) error,
) (took time.Duration, sum string, err error) {
	if d.Remote {
		_, err = withTable(env, d, func(l peer.Lineitem) (m harness.Measurement, err error) {
			took, err = env.Clock(func() error {
				if err := change(l); err != nil {
					return err
				}
				return l.(peer.Remote).Sync()
			})
			if err == nil && checked(env) {
				sum, err = openSum(l)
			}
			return m, err
		})
		return took, sum, err
	}
	took, err = env.Clock(func() error {
		l, err := openTable(env, d)
		if err != nil {
			return err
		}
		return closeAll(change(l), l)
	})
	if err == nil && d.Can&peer.Query != 0 {
		sum, err = checkOnce(env, d)
	}
	return took, sum, err
}

// tableSum returns the checksum of lineitem in a peer.
func tableSum(env *harness.Env, d *peer.Driver) (string, error) {
	l, err := openTable(env, d)
	if err != nil {
		return "", err
	}
	sum, err := openSum(l)
	return sum, closeAll(err, l)
}

// openSum returns the checksum of the answer to Q1, which depends on almost all rows and on all
// changed columns.
func openSum(l peer.Lineitem) (string, error) {
	a, err := l.Query(peer.Q1)
	if err != nil {
		return "", err
	}
	return a.String(), nil
}

// checkOnce is tableSum in the first round, in which the peers' answers are compared, and returns
// nothing in other rounds: reading all rows of each peer again would take as long as many
// measurements.
func checkOnce(env *harness.Env, d *peer.Driver) (string, error) {
	if !checked(env) {
		return "", nil
	}
	return tableSum(env, d)
}

// checked reports whether the round is the first.
func checked(env *harness.Env) bool { return env.Round == 0 }

// loadTable measures the bulk load of an empty table, from opening to closing. Then everything is
// durable.
func loadTable(all []peer.Driver, name, about, file string, rising bool) harness.Workload {
	can, fill, floors := peer.Load, shuffledInputs,
		[]harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1.3, Least: true}}
	if rising {
		can, fill = peer.Sorted, tableInputs
		floors = []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1.2, Least: true},
			{Peer: "oribi", Against: "duckdb-1", Ratio: 5, Least: true}}
	}
	w := harness.Workload{Name: name, About: about +
		": bulk load by each peer's fastest method, from opening an empty store to the closed, durable one",
		Unit: "rows/s", More: true, Fresh: true, MemoryLimit: peakLimit, Inputs: fill, Floors: floors}
	for _, d := range drivers(all, can) {
		w.Peers = append(w.Peers, harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module,
			Measure: func(env *harness.Env) (harness.Measurement, error) { return measureLoad(env, &d, file, rising) }})
	}
	return w
}

// Metrics of loads.
const (
	bytesByRow    = "bytes/row"
	writtenByByte = "written/byte" // bytes written to the disk per byte of key and value
)

func measureLoad(env *harness.Env, d *peer.Driver, file string, rising bool) (m harness.Measurement, err error) {
	info, err := os.Stat(env.Input(file))
	if err != nil {
		return m, err
	}
	took, sum, err := changeTable(env, d, func(l peer.Lineitem) error {
		return l.Load(inputs.Rows(env.Input(file)), rising)
	})
	if err != nil {
		return m, err
	}
	rows := float64(env.Scale.Table)
	m.Value, m.Checksum = rows/took.Seconds(), sum
	payload := float64(info.Size()) - 8*rows // without the lengths in the file
	m.Metrics = map[string]float64{bytesByRow: float64(env.DiskBytes()) / rows,
		writtenByByte: float64(env.Written()) / payload}
	return m, nil
}

// size measures the disk space of a row.
func size(all []peer.Driver) harness.Workload {
	return harness.Workload{Name: "size",
		About: "disk space of lineitem, loaded in key order, compacted and closed, by allocated blocks",
		Unit:  "bytes/row", Group: tableGroup, Inputs: tableInputs,
		Floors: []harness.Floor{{Peer: "oribi", Figure: 37}},
		Peers: tablePeers(all, peer.Query, func(env *harness.Env, d *peer.Driver) (m harness.Measurement, err error) {
			// measured before opening: space that a peer frees when it is opened again does not
			// count
			m.Checksum, err = checkOnce(env, d)
			m.Value = float64(env.DiskBytes()) / float64(env.Scale.Table)
			return m, err
		})}
}

// sizeAtRest measures the disk space of a row after background work has recompressed the table.
func sizeAtRest() harness.Workload {
	atRest := func(name string, changes ...oribi.Alteration) harness.Peer {
		return harness.Peer{Name: name, Ours: true, Store: peer.Oribi.Name, Prepare: prepareTable(&peer.Oribi),
			Measure: func(env *harness.Env) (m harness.Measurement, err error) {
				if err := recompress(env.Path(storeDir), changes...); err != nil {
					return m, err
				}
				m.Checksum, err = checkOnce(env, &peer.Oribi)
				m.Value = float64(env.DiskBytes()) / float64(env.Scale.Table)
				return m, err
			}}
	}
	return harness.Workload{Name: "size-recompressed",
		About: "disk space of lineitem as in size, after Table.Recompress; oribi-dense also makes l_comment dense",
		Unit:  "bytes/row", Group: tableGroup, Copies: true, Inputs: tableInputs,
		Floors: []harness.Floor{{Peer: "oribi", Figure: 34}, {Peer: "oribi-dense", Figure: 30}},
		Peers: []harness.Peer{atRest(peer.Oribi.Name),
			atRest("oribi-dense", oribi.SetCompression("l_comment", schema.Dense))}}
}

// recompress changes the table in dir and stores its columns harder.
func recompress(dir string, changes ...oribi.Alteration) (err error) {
	store, t, err := openLineitem(dir, &oribi.Options{MemoryLimit: peer.CacheBytes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	ctx := context.Background()
	if len(changes) > 0 {
		if err := t.Alter(ctx, changes...); err != nil {
			return err
		}
	}
	_, err = t.Recompress(ctx)
	return err
}

// changedPart of the rows is changed by upsert and update-column.
const changedPart = 10

// upsert writes existing rows in full.
func upsert(all []peer.Driver) harness.Workload {
	return harness.Workload{Name: "upsert",
		About: "upsert a tenth of lineitem's rows in full, in random order, 1,000 rows per batch, no sync; from the " +
			"first batch to the closed store",
		Unit: "rows/s", More: true, Group: tableGroup, Copies: true, MemoryLimit: peakLimit, Inputs: shuffledInputs,
		Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1.2, Least: true}},
		Peers: tablePeers(all, peer.Write, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			return measureChange(env, d, func(l peer.Lineitem, items []inputs.Item) error {
				for i := range items {
					items[i].Tax++
				}
				return l.Upsert(items)
			})
		})}
}

// updateColumn sets one column.
func updateColumn(all []peer.Driver) harness.Workload {
	return harness.Workload{Name: "update-column",
		About: "update l_tax in a tenth of lineitem's rows, in random order, 1,000 rows per batch, no sync; from the " +
			"first batch to the closed store",
		Unit: "rows/s", More: true, Group: tableGroup, Copies: true, MemoryLimit: peakLimit, Inputs: shuffledInputs,
		Floors: []harness.Floor{{Peer: "oribi", Against: "duckdb-1", Ratio: 10, Least: true}},
		Peers: tablePeers(all, peer.Write, func(env *harness.Env, d *peer.Driver) (harness.Measurement, error) {
			var keys []inputs.Key
			return measureChange(env, d, func(l peer.Lineitem, items []inputs.Item) error {
				keys = keys[:0]
				for i := range items {
					keys = append(keys, items[i].Key())
				}
				return l.UpdateTax(keys, 9)
			})
		})}
}

// some returns the first n rows of a file.
func some(name string, n int) iter.Seq2[*inputs.Item, error] {
	return func(yield func(*inputs.Item, error) bool) {
		i := 0
		for it, err := range inputs.Rows(name) {
			if i++; i > n || !yield(it, err) {
				return
			}
		}
	}
}

func measureChange(
	env *harness.Env, d *peer.Driver, change func(l peer.Lineitem, items []inputs.Item) error,
) (m harness.Measurement, err error) {
	rows := env.Scale.Table / changedPart
	took, sum, err := changeTable(env, d, func(l peer.Lineitem) error {
		return peer.EachChunk(some(env.Input(shuffledFile), rows), peer.Chunk, func(items []inputs.Item) error {
			return change(l, items)
		})
	})
	m.Value, m.Checksum = float64(rows)/took.Seconds(), sum
	return m, err
}

// writeAmplification measures the bytes that random inserts write to the disk. It derives its
// results from the loads of load-random.
func writeAmplification(all []peer.Driver) harness.Workload {
	w := harness.Workload{Name: "write-amp",
		About: "bytes written to the disk per byte of key and value, for inserts of lineitem in random order, 1,000 " +
			"rows per batch, no sync, until the store is closed: the loads of load-random",
		Unit: "bytes/byte", Fresh: true, MemoryLimit: peakLimit, Inputs: shuffledInputs,
		Of: loadRandom, Derive: amplification}
	for _, d := range drivers(all, peer.Write|peer.KV) { // other peers do not insert single rows efficiently
		w.Peers = append(w.Peers, harness.Peer{Name: d.Name, Ours: d.Ours, Module: d.Module,
			Measure: func(env *harness.Env) (harness.Measurement, error) {
				m, err := measureLoad(env, &d, shuffledFile, false)
				return amplification(m), err
			}})
	}
	return w
}

// loadRandom is the workload whose loads write-amp uses.
const loadRandom = "load-random"

// amplification converts a round of load-random to one of write-amp.
func amplification(load harness.Measurement) harness.Measurement {
	m := load
	m.Value = load.Metrics[writtenByByte]
	m.Metrics = map[string]float64{"rows/s": load.Value}
	return m
}

// pick returns n rows of the file of rows, evenly spaced.
func pick(env *harness.Env, n int) ([]inputs.Item, error) {
	n = min(n, env.Scale.Table)
	out := make([]inputs.Item, 0, n)
	i := 0
	for it, err := range inputs.Rows(env.Input(rowsFile)) {
		if err != nil {
			return nil, err
		}
		if len(out) < n && i == len(out)*env.Scale.Table/n {
			out = append(out, *it)
		}
		i++
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("lineitem is empty")
	}
	return out, nil
}

// enough is the minimum duration of repeated work: long enough for figures, or zero if figures do
// not matter.
func enough(env *harness.Env) time.Duration {
	if env.Scale.Figures() {
		return time.Second / 2
	}
	return 0
}

// calls times calls at random among the different ones: n of them at small scale, otherwise for
// enough time. It first makes each different call twice, which also returns the checksum. The value
// is µs per call, divided by per.
func calls(
	env *harness.Env, different, n, per int, call func(i int) (int64, error),
) (m harness.Measurement, err error) {
	r := rand.New(rand.NewPCG(1, 2))
	order := make([]int32, 1<<16)
	for i := range order {
		order[i] = int32(r.IntN(different))
	}
	var sum int64
	for range 2 {
		sum = 0
		for i := range different {
			v, err := call(i)
			if err != nil {
				return m, err
			}
			sum += v
		}
	}
	done := 0
	took, err := env.Clock(func() error {
		if env.Scale.Figures() {
			n = 16
		}
		for begin := time.Now(); done < n || done%16 != 0 || time.Since(begin) < enough(env); done++ {
			if _, err := call(int(order[done%len(order)])); err != nil {
				return err
			}
		}
		return nil
	})
	m.Value = took.Seconds() * 1e6 / float64(done*per)
	m.Checksum = fmt.Sprint(sum)
	return m, err
}

// remoteCalls is calls for a peer whose calls are made by other processes, each for per keys. The
// value is µs per key.
func remoteCalls(
	env *harness.Env, r peer.Remote, call peer.Call, keys []inputs.Key, n, per int,
) (m harness.Measurement, err error) {
	// longer than for other peers: a JIT compiler may have to warm up
	sum, err := r.Warm(call, keys, per, 2*enough(env))
	if err != nil {
		return m, err
	}
	if env.Scale.Figures() {
		n = 16
	}
	done, took := 0, time.Duration(0)
	_, err = env.Clock(func() (err error) {
		done, took, err = r.Run(n, enough(env))
		return err
	})
	m.Value = took.Seconds() * 1e6 / float64(done*per)
	m.Checksum = fmt.Sprint(sum)
	return m, err
}

// pickKeys returns the keys of n rows, evenly spaced.
func pickKeys(env *harness.Env, n int) ([]inputs.Key, error) {
	items, err := pick(env, n)
	keys := make([]inputs.Key, len(items))
	for i := range items {
		keys[i] = items[i].Key()
	}
	return keys, err
}
