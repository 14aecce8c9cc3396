package work

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// write measures lineitem in key order, in batches of 1,000 rows. Rows are prepared before the
// clock starts, in the form that each peer takes; the clock stops when the last Commit returns.
// Flushes that become due are included; rows still in memory are not flushed. Encoding a row as key
// and value is part of Pebble's work, as encoding it is part of the store's.
func write() harness.Workload {
	return harness.Workload{
		Name: "write",
		About: "lineitem in write batches of 1,000 rows prepared in advance, no sync, default options, flushes " +
			"included",
		Unit: "rows/s", More: true, Fresh: true, MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{
			{Name: "oribi-rows", Ours: true, Measure: writer(prepareRows), Memory: streamer(prepareRows)},
			{Name: "oribi-typed", Ours: true, Measure: writer(prepareTyped), Memory: streamer(prepareTyped)},
			{Name: "oribi-vectors", Ours: true, Measure: writer(prepareVectors), Memory: streamer(prepareVectors)},
			{Name: "pebble", Measure: writePebble, Memory: streamPebble},
		},
		Floors: []harness.Floor{
			{Peer: "oribi-rows", Figure: 150_000, Against: "pebble", Ratio: 0.5, Least: true},
			{Peer: "oribi-typed", Figure: 300_000, Against: "pebble", Ratio: 0.5, Least: true},
			{Peer: "oribi-vectors", Against: "pebble", Ratio: 0.9, Least: true},
		},
	}
}

// preparer converts rows to the arguments of a batch, and returns a function that adds them to a
// batch. The conversion is not timed.
type preparer func(t *oribi.Table) (func(items []inputs.Item) func(b *oribi.Batch), error)

func prepareRows(t *oribi.Table) (func([]inputs.Item) func(*oribi.Batch), error) {
	return func(items []inputs.Item) func(*oribi.Batch) {
		rows := make([]oribi.Row, len(items))
		for i := range items {
			rows[i] = items[i].Row()
		}
		return func(b *oribi.Batch) {
			for _, row := range rows {
				b.Insert(t, row)
			}
		}
	}, nil
}

func prepareTyped(t *oribi.Table) (func([]inputs.Item) func(*oribi.Batch), error) {
	typed, err := oribi.Typed[typedItem](t)
	return func(items []inputs.Item) func(*oribi.Batch) {
		rows := make([]typedItem, len(items))
		for i := range items {
			rows[i] = typedOf(&items[i])
		}
		return func(b *oribi.Batch) { typed.InBatch(b).Insert(rows...) }
	}, err
}

func prepareVectors(t *oribi.Table) (func([]inputs.Item) func(*oribi.Batch), error) {
	return func(items []inputs.Item) func(*oribi.Batch) {
		columns := newVectors(t)
		vectorsOf(columns, items)
		return func(b *oribi.Batch) { b.Vectors(oribi.OpInsert, t, columns) }
	}, nil
}

// writer measures the store with all rows prepared in advance.
func writer(prepare preparer) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		var flushing atomic.Int64 // nanoseconds
		listener := func(e oribi.Event) { flushing.Add(int64(e.Duration)) }
		store, t, err := createLineitem(env.Path(storeDir), &oribi.Options{Listener: listener})
		if err != nil {
			return m, err
		}
		defer store.Close()
		make, err := prepare(t)
		if err != nil {
			return m, err
		}
		var adds []func(*oribi.Batch)
		rows := 0
		err = EachChunk(env, batchRows, func(items []inputs.Item) error {
			adds = append(adds, make(items))
			rows += len(items)
			return nil
		})
		if err != nil {
			return m, err
		}
		took, err := env.Clock(func() error {
			b := store.NewBatch()
			for _, add := range adds {
				add(b)
				if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return m, err
		}
		m.Value = float64(rows) / took.Seconds()
		m.Metrics = map[string]float64{"s in flushes": time.Duration(flushing.Load()).Seconds()}
		m.Checksum, err = checkStore(t)
		return m, err
	}
}

// streamer writes the same rows, preparing them batch by batch.
func streamer(prepare preparer) func(env *harness.Env) error {
	return func(env *harness.Env) error {
		store, t, err := createLineitem(env.Path(storeDir), nil)
		if err != nil {
			return err
		}
		defer store.Close()
		make, err := prepare(t)
		if err != nil {
			return err
		}
		b := store.NewBatch()
		return EachChunk(env, batchRows, func(items []inputs.Item) error {
			make(items)(b)
			_, err := b.Commit(context.Background(), oribi.NoSync)
			return err
		})
	}
}

func writePebble(env *harness.Env) (m harness.Measurement, err error) {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return m, err
	}
	defer db.Close()
	var all []inputs.Item
	if err = EachChunk(env, batchRows, func(items []inputs.Item) error {
		all = append(all, items...)
		return nil
	}); err != nil {
		return m, err
	}
	took, err := env.Clock(func() error {
		for from := 0; from < len(all); from += batchRows {
			if err := putItems(db, all[from:min(from+batchRows, len(all))]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	m.Value = float64(len(all)) / took.Seconds()
	m.Checksum, err = checkPebble(db)
	return m, err
}

func streamPebble(env *harness.Env) error {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return err
	}
	defer db.Close()
	return loadPebble(env, db)
}
