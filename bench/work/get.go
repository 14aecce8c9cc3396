package work

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// How many keys are read again and again: few, so that all they need is in the cache; or so many that
// the chunks of their cells, decoded, are more than the cache holds, while Pebble's holds all of lineitem.
const (
	cachedKeys = 100
	spreadKeys = 1000
	spreadPart = 20 // of the gets that the scale asks for
)

// get reads single rows, all 16 columns. The keys are spread evenly over lineitem and asked for in random order; each
// is read twice before the clock starts.
func get() harness.Workload {
	return harness.Workload{
		Name: "get", About: fmt.Sprintf("one row of lineitem by key, 16 columns, %d keys at random, cached", cachedKeys),
		Unit: "µs", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Prepare: prepareStore, Measure: storeGetter(cachedKeys, 1, getRow)},
			{Name: "oribi-cells", Ours: true, Prepare: prepareStore, Measure: storeGetter(cachedKeys, 1, getCells)},
			{Name: "oribi-typed", Ours: true, Prepare: prepareStore, Measure: storeGetter(cachedKeys, 1, getTyped)},
			{Name: "pebble", Prepare: preparePebble, Measure: pebbleGetter(cachedKeys, 1)},
		},
		Floors: []harness.Floor{
			{Peer: "oribi", Figure: 4, Against: "pebble", Ratio: 1.5},
			{Peer: "oribi-cells", Figure: 4, Against: "pebble", Ratio: 1.5},
		},
	}
}

// getSpread is get with more keys than the cache can serve. It has no floor.
func getSpread() harness.Workload {
	return harness.Workload{
		Name: "get-spread", About: fmt.Sprintf("one row of lineitem by key, 16 columns, %d keys at random, whose chunks are more than the cache holds", spreadKeys),
		Unit: "µs", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{
			{Name: "oribi-cells", Ours: true, Prepare: prepareStore, Measure: storeGetter(spreadKeys, spreadPart, getCells)},
			{Name: "pebble", Prepare: preparePebble, Measure: pebbleGetter(spreadKeys, spreadPart)},
		},
	}
}

// pickItems is the rows that are read, evenly spread.
func pickItems(env *harness.Env, keys int) ([]inputs.Item, error) {
	var all []inputs.Item
	err := EachChunk(env, batchRows, func(items []inputs.Item) error {
		for i := range items {
			items[i].Comment = "" // a key is enough
		}
		all = append(all, items...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("lineitem is empty")
	}
	picked := make([]inputs.Item, keys)
	for i := range picked {
		picked[i] = all[i*len(all)/keys]
	}
	return picked, nil
}

// getter reads the row of an item and gives its supplier.
type getter func(it *inputs.Item) (int64, error)

// getPasses warms, then times n gets in random order. The checksum is the sum of the suppliers.
func getPasses(env *harness.Env, n int, items []inputs.Item, get getter) (harness.Measurement, error) {
	for range 2 {
		for i := range items {
			if _, err := get(&items[i]); err != nil {
				return harness.Measurement{}, err
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(r.IntN(len(items)))
	}
	var sum int64
	took, err := env.Clock(func() error {
		for _, i := range order {
			v, err := get(&items[i])
			if err != nil {
				return err
			}
			sum += v
		}
		return nil
	})
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(len(order)), Checksum: fmt.Sprint(sum)}, err
}

// storeGetter measures one way to get rows of the store: 1/part of the gets that the scale asks for.
func storeGetter(keys, part int, make func(t *oribi.Table) (getter, error)) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		items, err := pickItems(env, keys)
		if err != nil {
			return m, err
		}
		store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{ReadOnly: true})
		if err != nil {
			return m, err
		}
		defer store.Close()
		get, err := make(t)
		if err != nil {
			return m, err
		}
		return getPasses(env, env.Scale.Gets/part, items, get)
	}
}

func getRow(t *oribi.Table) (getter, error) {
	return func(it *inputs.Item) (int64, error) {
		row, err := t.Get(context.Background(), oribi.Key{it.OrderKey, it.LineNumber})
		if err != nil {
			return 0, err
		}
		return row["l_suppkey"].(int64), nil
	}, nil
}

func getCells(t *oribi.Table) (getter, error) {
	var key []byte
	return func(it *inputs.Item) (int64, error) {
		key = appendCells(key[:0], it)
		_, cells, err := t.GetCells(context.Background(), [][]byte{key[:8], key[8:]})
		if err != nil {
			return 0, err
		}
		return littleInt64(cells[3]), nil
	}, nil
}

func getTyped(t *oribi.Table) (getter, error) {
	typed, err := oribi.Typed[typedItem](t)
	if err != nil {
		return nil, err
	}
	return func(it *inputs.Item) (int64, error) {
		row, err := typed.Get(context.Background(), oribi.Key{it.OrderKey, it.LineNumber})
		return row.SuppKey, err
	}, nil
}

func pebbleGetter(keys, part int) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		items, err := pickItems(env, keys)
		if err != nil {
			return m, err
		}
		db, err := openPebble(env.Path(storeDir), true)
		if err != nil {
			return m, err
		}
		defer db.Close()
		var key []byte
		return getPasses(env, env.Scale.Gets/part, items, func(it *inputs.Item) (int64, error) {
			key = appendKey(key[:0], it)
			value, closer, err := db.Get(key)
			if err != nil {
				return 0, err
			}
			supplier := littleInt64(value[8:])
			return supplier, closer.Close()
		})
	}
}
