package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/kv"
)

// txSteps is the number of steps in each transaction of the workloads tx-get-put and tx-pops.
const txSteps = 32_000

// ownWrites are workloads of transactions that read what they have written.
func ownWrites() []harness.Workload {
	return []harness.Workload{
		{
			Name: "tx-get-put",
			About: fmt.Sprintf("get and put one key %d times in one transaction, not synced; processor time of a step",
				txSteps),
			Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
			Peers: []harness.Peer{
				{Name: "oribi", Ours: true, Measure: measureTx(oribiPairTxs, addOne, 1)},
				{Name: "bbolt", Measure: measureTx(bboltPairTxs, addOne, 1)},
			},
			Floors: []harness.Floor{{Peer: "oribi", Against: "bbolt", Ratio: 3}},
		},
		{
			Name: "tx-pops",
			About: fmt.Sprintf("read and delete the first of %d keys, until all are deleted, in one transaction, not "+
				"synced; processor time of a step", txSteps),
			Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
			Peers: []harness.Peer{
				{Name: "oribi", Ours: true, Measure: measureTx(oribiPairTxs, pop, 1)},
				{Name: "bbolt", Measure: measureTx(bboltPairTxs, pop, 1)},
			},
			Floors: []harness.Floor{
				{Peer: "oribi", Against: "bbolt", Ratio: 3},
				{Peer: "oribi", Metric: "last/first tenth", Figure: 3},
			},
		},
		{
			Name: "tx-cursor",
			About: fmt.Sprintf("move a cursor to the next of %d keys and read it with its value, over and over, and put "+
				"each %dth of them, in one transaction, not synced; processor time of a move", txSteps, cursorMoves),
			Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
			Peers: []harness.Peer{
				{Name: "oribi", Ours: true, Measure: measureTx(oribiPairTxs, walk, cursorMoves)},
				{Name: "bbolt", Measure: measureTx(bboltPairTxs, walk, cursorMoves)},
			},
			Floors: []harness.Floor{{Peer: "oribi", Against: "bbolt", Ratio: 2}},
		},
	}
}

// cursorMoves is the number of moves of a step of the workload tx-cursor.
const cursorMoves = 64

// pairTx is a transaction over keys and values.
type pairTx interface {
	get(key []byte) ([]byte, error)
	put(key, value []byte) error
	delete(key []byte) error
	first() (key []byte, err error) // nil: there is no key
	// next moves a cursor to the next key and returns it with its value. After the last key comes the first.
	next() (key, value []byte, err error)
}

// pairDB runs transactions.
type pairDB struct {
	update func(func(pairTx) error) error
	close  func() error
}

// addOne adds 1 to the value of a key.
func addOne(tx pairTx, step int) error {
	key := numberKey(txSteps / 2)
	value, err := tx.get(key)
	if err != nil {
		return err
	}
	if got := binary.BigEndian.Uint64(value); got != uint64(txSteps/2+step) {
		return fmt.Errorf("step %d reads %d", step, got)
	}
	return tx.put(key, numberKey(txSteps/2+step+1))
}

// pop deletes the first key.
func pop(tx pairTx, step int) error {
	key, err := tx.first()
	if err == nil && string(key) != string(numberKey(step)) {
		err = fmt.Errorf("the first key of step %d is %x", step, key)
	}
	return errors.Join(err, tx.delete(key))
}

// walk moves over keys whose values equal them, and puts the last one.
func walk(tx pairTx, step int) error {
	for i := range cursorMoves {
		key, value, err := tx.next()
		if err != nil {
			return err
		}
		if want := uint64(step*cursorMoves+i) % txSteps; binary.BigEndian.Uint64(key) != want || string(value) != string(key) {
			return fmt.Errorf("step %d, move %d is at %x with the value %x, want %x", step, i, key, value, want)
		}
		if i == cursorMoves-1 {
			return tx.put(key, value)
		}
	}
	return nil
}

func numberKey(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }

// measureTx returns a measurement of steps in one transaction: the processor time of each of their parts.
func measureTx(open func(env *harness.Env) (*pairDB, error),
	step func(tx pairTx, i int) error, parts int) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		db, err := open(env)
		if err != nil {
			return m, err
		}
		err = db.update(func(tx pairTx) error {
			for i := range txSteps {
				if err := tx.put(numberKey(i), numberKey(i)); err != nil {
					return err
				}
			}
			return nil
		})
		var tenths [10]time.Duration
		if err == nil {
			_, err = env.Clock(func() error {
				return db.update(func(tx pairTx) error {
					for t := range tenths {
						begin := time.Now()
						for i := range txSteps / 10 {
							if err := step(tx, t*txSteps/10+i); err != nil {
								return err
							}
						}
						tenths[t] = time.Since(begin)
					}
					return nil
				})
			})
		}
		m.Value = env.CPU() * 1e6 / txSteps / float64(parts)
		m.Metrics = map[string]float64{"last/first tenth": float64(tenths[9]) / float64(max(tenths[0], 1))}
		return m, errors.Join(err, db.close())
	}
}

type oribiPairTx struct {
	kv.TxBucket
	cursor *kv.Cursor
}

func (tx oribiPairTx) get(key []byte) ([]byte, error) { return tx.Get(key) }
func (tx oribiPairTx) put(key, value []byte) error    { return tx.Put(key, value) }
func (tx oribiPairTx) delete(key []byte) error        { return tx.Delete(key) }

func (tx oribiPairTx) next() (key, value []byte, err error) {
	if c := tx.cursor; c.Next() || c.First() {
		return c.Key(), c.Value(), nil
	}
	return nil, nil, tx.cursor.Err()
}

func (tx oribiPairTx) first() ([]byte, error) {
	for key, err := range tx.Keys() {
		return key, err
	}
	return nil, nil
}

func oribiPairTxs(env *harness.Env) (*pairDB, error) {
	ctx := context.Background()
	db, err := kv.Open(env.Path(storeDir), &oribi.Options{MemoryLimit: storeMemory})
	if err != nil {
		return nil, err
	}
	if _, err = db.CreateBucketIfNotExists("pairs"); err != nil {
		return nil, closeAll(err, db)
	}
	return &pairDB{close: db.Close, update: func(f func(pairTx) error) error {
		return db.Update(ctx, func(tx *kv.Tx) error {
			rows := tx.Bucket("pairs")
			return f(oribiPairTx{rows, rows.Cursor()})
		}, oribi.NoSync)
	}}, nil
}

type bboltPairTx struct {
	*bolt.Bucket
	cursor *bolt.Cursor // nil: before the first key
}

func (tx *bboltPairTx) get(key []byte) ([]byte, error) { return tx.Get(key), nil }

// put moves the cursor to the key, since bbolt requires that after a write.
func (tx *bboltPairTx) put(key, value []byte) error {
	err := tx.Put(key, value)
	if tx.cursor != nil {
		tx.cursor.Seek(key)
	}
	return err
}

func (tx *bboltPairTx) delete(key []byte) error { return tx.Delete(key) }

func (tx *bboltPairTx) next() (key, value []byte, err error) {
	if tx.cursor != nil {
		if key, value = tx.cursor.Next(); key != nil {
			return key, value, nil
		}
	}
	tx.cursor = tx.Cursor()
	key, value = tx.cursor.First()
	return key, value, nil
}

func (tx *bboltPairTx) first() ([]byte, error) {
	key, _ := tx.Cursor().First()
	return key, nil
}

func bboltPairTxs(env *harness.Env) (*pairDB, error) {
	db, err := bolt.Open(env.Path(storeDir), 0o600, &bolt.Options{NoSync: true})
	if err != nil {
		return nil, err
	}
	return &pairDB{close: db.Close, update: func(f func(pairTx) error) error {
		return db.Update(func(tx *bolt.Tx) error {
			rows, err := tx.CreateBucketIfNotExists([]byte("pairs"))
			if err != nil {
				return err
			}
			return f(&bboltPairTx{Bucket: rows})
		})
	}}, nil
}
