package work

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/kv"
)

const incrementWriters = 32

// increments measures one counter of many writers.
func increments() harness.Workload {
	return harness.Workload{
		Name: "increment",
		About: fmt.Sprintf("%d writers add to one counter, every increment synced; oribi-update reads and writes it in "+
			"transactions, badger has a merge operator", incrementWriters),
		Unit: "commits/s", More: true, Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: incrementOribi(func(ctx context.Context, _ *kv.DB, b *kv.Bucket) error {
				_, err := b.Add(ctx, counterKey, 1)
				return err
			})},
			{Name: "oribi-update", Ours: true, Measure: incrementOribi(func(ctx context.Context, db *kv.DB, b *kv.Bucket) error {
				return db.Update(ctx, func(tx *kv.Tx) error {
					b := tx.Bucket(b.Name())
					value, err := b.Get(counterKey)
					if err != nil {
						return err
					}
					return b.Put(counterKey, addCounter(value, oneMore))
				})
			})},
			{Name: "badger", Measure: incrementBadger},
		},
		Floors: []harness.Floor{{Peer: "oribi", Against: "oribi-update", Ratio: 5, Least: true},
			{Peer: "oribi", Against: "badger", Ratio: 1, Least: true}},
	}
}

var (
	counterKey = []byte("counter")
	oneMore    = binary.BigEndian.AppendUint64(nil, 1)
)

// addCounter returns the sum of two counters, as Badger's merge functions do.
func addCounter(a, b []byte) []byte {
	return binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(a)+binary.BigEndian.Uint64(b))
}

func incrementOribi(
	increment func(ctx context.Context, db *kv.DB, b *kv.Bucket) error,
) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		ctx := context.Background()
		db, err := kv.Open(env.Path(storeDir), nil)
		if err != nil {
			return m, err
		}
		b, err := db.CreateBucketIfNotExists("counters")
		if err == nil {
			_, err = b.Add(ctx, counterKey, 0)
		}
		if err == nil {
			m, err = commits(env, incrementWriters, syncCount(env, 1), func(int, int) error { return increment(ctx, db, b) })
		}
		if err == nil {
			var n int64
			n, err = b.Add(ctx, counterKey, 0)
			m.Checksum = fmt.Sprint(n)
		}
		return m, closeAll(err, db)
	}
}

func incrementBadger(env *harness.Env) (m harness.Measurement, err error) {
	db, err := badger.Open(badger.DefaultOptions(env.Path(storeDir)).WithLogger(nil).WithSyncWrites(true))
	if err != nil {
		return m, err
	}
	counter := db.GetMergeOperator(counterKey, addCounter, 200*time.Millisecond)
	m, err = commits(env, incrementWriters, syncCount(env, 1), func(int, int) error { return counter.Add(oneMore) })
	if err == nil {
		var value []byte
		if value, err = counter.Get(); err == nil {
			m.Checksum = fmt.Sprint(binary.BigEndian.Uint64(value))
		}
	}
	counter.Stop()
	return m, closeAll(err, db)
}
