package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	bolt "go.etcd.io/bbolt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
)

// queueRows is the number of rows in the queue at any time.
const queueRows = 1000

// queue pops the first row of a queue and pushes another one, in one write batch, 10,000 times at full
// scale: Pebble gets too slow for more. The value is the processor time of the last tenth, when most rows were popped.
func queue() harness.Workload {
	return harness.Workload{
		Name: "queue",
		About: "read and delete the first of 1,000 rows with an int64 key and an int64 value, and insert one after the " +
			"last, not synced; processor time in the last tenth of 10,000 times",
		Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: measureQueue(oribiQueue)},
			{Name: "bbolt", Measure: measureQueue(bboltQueue)},
			{Name: "pebble", Measure: measureQueue(pebbleQueue)},
		},
		Floors: []harness.Floor{
			{Peer: "oribi", Against: "bbolt", Ratio: 0.5},
			{Peer: "oribi", Metric: "last/first tenth", Figure: 2},
		},
	}
}

// queueStep removes the first row of a queue if pop is set, and returns its key. It adds n rows with
// the keys and values from next on.
type queueStep func(pop bool, next int64, n int) (key int64, err error)

func measureQueue(
	open func(env *harness.Env) (queueStep, func() error, error),
) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		step, done, err := open(env)
		if err != nil {
			return m, err
		}
		_, err = step(false, 0, queueRows)
		pops, tenth := int64(0), int64(max(200, env.Scale.Inserts/1000))
		run := func() error {
			for end := pops + tenth; pops < end; pops++ {
				key, err := step(true, queueRows+pops, 1)
				if err != nil || key != pops {
					return errors.Join(err, fmt.Errorf("row %d is first, want %d", key, pops))
				}
			}
			return nil
		}
		first, last, before := 0.0, 0.0, 0.0
		for i := 0; i < 10 && err == nil; i++ {
			_, err = env.Clock(run)
			last, before = env.CPU()-before, env.CPU()
			if i == 0 {
				first = last
			}
		}
		m.Value = last * 1e6 / float64(tenth)
		m.Metrics = map[string]float64{"last/first tenth": last / first}
		return m, errors.Join(err, done())
	}
}

func oribiQueue(env *harness.Env) (queueStep, func() error, error) {
	ctx := context.Background()
	store, err := oribi.Open(env.Path(storeDir), &oribi.Options{MemoryLimit: storeMemory})
	if err != nil {
		return nil, nil, err
	}
	t, err := createNumbersIn(store)
	if err != nil {
		return nil, nil, closeAll(err, store)
	}
	b, cells := store.NewBatch(), [][]byte{make([]byte, 8), make([]byte, 8)}
	return func(pop bool, next int64, n int) (key int64, err error) {
		b.Reset()
		if pop {
			for first, err := range t.Scan(ctx, oribi.Columns("k"), oribi.Limit(1)).Batches() {
				if err != nil {
					return 0, err
				}
				key = batch.Values[int64](first.Columns[0])[first.Selection.Next(0)]
			}
			binary.LittleEndian.PutUint64(cells[0], uint64(key))
			b.Cells(oribi.OpDelete, t, cells, []bool{true, false})
		}
		for k := next; k < next+int64(n); k++ {
			binary.LittleEndian.PutUint64(cells[0], uint64(k))
			binary.LittleEndian.PutUint64(cells[1], uint64(k))
			b.Cells(oribi.OpInsert, t, cells, nil)
		}
		_, err = b.Commit(ctx, oribi.NoSync)
		return key, err
	}, store.Close, nil
}

func bboltQueue(env *harness.Env) (queueStep, func() error, error) {
	db, err := bolt.Open(env.Path(storeDir), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		return nil, nil, err
	}
	name := []byte("queue")
	return func(pop bool, next int64, n int) (key int64, err error) {
		return key, db.Update(func(tx *bolt.Tx) error {
			rows, err := tx.CreateBucketIfNotExists(name)
			if err != nil {
				return err
			}
			if c := rows.Cursor(); pop {
				first, _ := c.First()
				key = int64(binary.BigEndian.Uint64(first))
				err = c.Delete()
			}
			for k := next; k < next+int64(n) && err == nil; k++ {
				cell := binary.BigEndian.AppendUint64(nil, uint64(k))
				err = rows.Put(cell, cell)
			}
			return err
		})
	}, db.Close, nil
}

func pebbleQueue(env *harness.Env) (queueStep, func() error, error) {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return nil, nil, err
	}
	return func(pop bool, next int64, n int) (key int64, err error) {
		b := db.NewBatch()
		defer b.Close()
		if pop {
			it, err := db.NewIter(nil)
			if err != nil {
				return 0, err
			}
			if it.First() {
				key = int64(binary.BigEndian.Uint64(it.Key()))
				err = b.Delete(it.Key(), nil)
			}
			if err = errors.Join(err, it.Close()); err != nil {
				return 0, err
			}
		}
		for k := next; k < next+int64(n) && err == nil; k++ {
			cell := binary.BigEndian.AppendUint64(nil, uint64(k))
			err = b.Set(cell, cell, nil)
		}
		return key, errors.Join(err, b.Commit(pebble.NoSync))
	}, db.Close, nil
}
