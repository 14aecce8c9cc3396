package work

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/kv"
)

// loadUniform loads the table of events in random order.
func loadUniform() harness.Workload {
	peer := func(name string, ours bool, open func(dir string) (eventStore, error)) harness.Peer {
		return harness.Peer{Name: name, Ours: ours, Measure: func(env *harness.Env) (m harness.Measurement, err error) {
			e, err := open(env.Path(storeDir))
			if err != nil {
				return m, err
			}
			m, err = measureInserts(env, e)
			return m, closeAll(err, e)
		}}
	}
	return harness.Workload{
		Name: "load-uniform",
		About: "insert the rows of a table larger than memory in random order, in batches of 1,000, not synced; at the " +
			"end 10,000 rows are read",
		Unit: "rows/s", More: true, Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{peer("oribi", true, openOribiEvents), peer("pebble", false, openPebbleEvents)},
		Floors: []harness.Floor{
			{Peer: "oribi", Against: "pebble", Ratio: 1.3, Least: true},
			{Peer: "oribi", Metric: "p50 commit ms", Figure: 2},
		},
	}
}

func measureInserts(env *harness.Env, e eventStore) (m harness.Measurement, err error) {
	n := int64(env.Scale.Large)
	step := strideOf(n)
	var commits []time.Duration
	elapsed, err := env.Clock(func() error {
		keys := make([]int64, 0, batchRows)
		for i := int64(0); i < n; {
			for keys = keys[:0]; len(keys) < batchRows && i < n; i++ {
				keys = append(keys, 2*(i*step%n))
			}
			begin := time.Now()
			if err := e.insert(keys); err != nil {
				return err
			}
			commits = append(commits, time.Since(begin))
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	r, sum := rand.New(rand.NewPCG(1, 1)), uint64(0)
	for range 10_000 {
		got, err := e.get(randomKey(env, r))
		if err != nil {
			return m, err
		}
		sum += got
	}
	slices.Sort(commits)
	m.Value, m.Checksum = float64(n)/elapsed.Seconds(), fmt.Sprint(sum)
	m.Metrics = map[string]float64{"p50 commit ms": float64(commits[len(commits)/2].Microseconds()) / 1000}
	return m, nil
}

// strideOf returns a factor that has no divisor in common with n: multiples of it modulo n are all
// numbers below n, each once, far from one another.
func strideOf(n int64) int64 {
	step := n/8*5 | 1
	for a, b := step, n; ; a, b = step, n {
		for b != 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return step
		}
		step += 2
	}
}

const (
	pairValueBytes = 100
	pairBatch      = 100
)

// pairsUniform reads and replaces values of a bucket of pairs that is larger than the cache.
func pairsUniform() []harness.Workload {
	make := func(name, about string, puts bool) harness.Workload {
		peer := func(name string, ours bool, open func(dir string) (pairStore, error)) harness.Peer {
			return harness.Peer{Name: name, Ours: ours,
				Prepare: func(env *harness.Env) error {
					s, err := open(env.Path(storeDir))
					if err != nil {
						return err
					}
					return closeAll(s.load(int64(env.Scale.Large)), s)
				},
				Measure: func(env *harness.Env) (m harness.Measurement, err error) {
					s, err := open(env.Path(storeDir))
					if err != nil {
						return m, err
					}
					if puts {
						m, err = measurePairPuts(env, s)
					} else {
						m, err = measurePairGets(env, s)
					}
					return m, closeAll(err, s)
				}}
		}
		return harness.Workload{
			Name: name,
			About: about + "; keys of 16 bytes and values of 100, more than the cache holds, evenly chosen; processor " +
				"time of a pair",
			Unit: "CPU µs", MemoryLimit: peakLimit, Group: "pairs-uniform", Copies: puts,
			Peers:  []harness.Peer{peer("oribi", true, openOribiPairs), peer("pebble", false, openPebblePairs)},
			Floors: []harness.Floor{{Peer: "oribi", Against: "pebble", Ratio: 1.3}},
		}
	}
	return []harness.Workload{
		make("kv-get-uniform", "read a value by key", false),
		make("kv-put-uniform", "replace nine of ten values, in batches of 100, not synced; the last ninth", true),
	}
}

// pairStore is a peer's bucket.
type pairStore interface {
	load(n int64) error
	get(key []byte) ([]byte, error)
	put(keys, values [][]byte) error
	Close() error
}

// uniformKey returns key i of n: they ascend, and are spread evenly over all keys.
func uniformKey(i, n int64) []byte {
	x := uint64(i) * 0x9E3779B97F4A7C15
	key := binary.BigEndian.AppendUint64(nil, uint64(i)*(^uint64(0)/uint64(n)))
	return binary.BigEndian.AppendUint64(key, (x^x>>29)*0xBF58476D1CE4E5B9)
}

// uniformValue returns a value that does not compress.
func uniformValue(seed uint64) []byte {
	r := rand.NewPCG(seed, 7)
	var b []byte
	for len(b) < pairValueBytes {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:pairValueBytes]
}

func measurePairGets(env *harness.Env, s pairStore) (m harness.Measurement, err error) {
	r, n := rand.New(rand.NewPCG(uint64(env.Round), 1)), int64(env.Scale.Large)
	calls, sum := max(1, env.Scale.Gets/2), uint64(0)
	run := func() error {
		for range calls {
			v, err := s.get(uniformKey(r.Int64N(n), n))
			if err != nil {
				return err
			}
			sum += binary.LittleEndian.Uint64(v) + uint64(len(v))
		}
		return nil
	}
	if err := run(); err != nil { // fills the caches
		return m, err
	}
	if _, err := env.Clock(run); err != nil {
		return m, err
	}
	return harness.Measurement{Value: env.CPU() * 1e6 / float64(calls), Checksum: fmt.Sprint(sum)}, nil
}

func measurePairPuts(env *harness.Env, s pairStore) (m harness.Measurement, err error) {
	r, n := rand.New(rand.NewPCG(uint64(env.Round), 1)), int64(env.Scale.Large)
	part, next := max(n/10/pairBatch, 1), uint64(n)
	put := func() error {
		for range part {
			var keys, values [][]byte
			for range pairBatch {
				keys, values = append(keys, uniformKey(r.Int64N(n), n)), append(values, uniformValue(next))
				next++
			}
			if err := s.put(keys, values); err != nil {
				return err
			}
		}
		return nil
	}
	for range 8 {
		if err := put(); err != nil {
			return m, err
		}
	}
	if _, err := env.Clock(put); err != nil {
		return m, err
	}
	m.Value = env.CPU() * 1e6 / float64(part*pairBatch)
	sum := uint64(0)
	for range 10_000 {
		v, err := s.get(uniformKey(r.Int64N(n), n))
		if err != nil {
			return m, err
		}
		sum += binary.LittleEndian.Uint64(v)
	}
	m.Checksum = fmt.Sprint(sum)
	return m, nil
}

type oribiPairs struct {
	store  *oribi.Store
	db     *kv.DB
	bucket *kv.Bucket
}

func openOribiPairs(dir string) (pairStore, error) {
	store, err := oribi.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	s := &oribiPairs{store: store, db: kv.In(store)}
	if s.bucket, err = s.db.Bucket("pairs"); errors.Is(err, oribi.ErrNoTable) {
		s.bucket, err = s.db.CreateBucket("pairs")
	}
	if err != nil {
		return nil, closeAll(err, store)
	}
	return s, nil
}

func (s *oribiPairs) Close() error { return s.store.Close() }

func (s *oribiPairs) load(n int64) error {
	_, _, err := s.bucket.Load(context.Background(), func(yield func(kv.Pair, error) bool) {
		for i := range n {
			if !yield(kv.Pair{Key: uniformKey(i, n), Value: uniformValue(uint64(i))}, nil) {
				return
			}
		}
	})
	return err
}

func (s *oribiPairs) get(key []byte) ([]byte, error) { return s.bucket.Get(context.Background(), key) }

func (s *oribiPairs) put(keys, values [][]byte) error {
	b := s.db.NewBatch()
	for i := range keys {
		b.Put(s.bucket, keys[i], values[i])
	}
	_, err := b.Commit(context.Background(), oribi.NoSync)
	return err
}

type pebblePairs struct{ db *pebble.DB }

func openPebblePairs(dir string) (pairStore, error) {
	db, err := openPebbleWith(dir, false, storeMemory/2)
	if err != nil {
		return nil, err
	}
	return pebblePairs{db}, nil
}

func (s pebblePairs) Close() error { return s.db.Close() }

func (s pebblePairs) load(n int64) error {
	for i := int64(0); i < n; {
		b := s.db.NewBatch()
		for ; b.Count() < batchRows && i < n; i++ {
			if err := b.Set(uniformKey(i, n), uniformValue(uint64(i)), nil); err != nil {
				return err
			}
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			return err
		}
	}
	return s.db.Flush()
}

func (s pebblePairs) get(key []byte) ([]byte, error) {
	v, c, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(v), c.Close()
}

func (s pebblePairs) put(keys, values [][]byte) error {
	b := s.db.NewBatch()
	for i := range keys {
		if err := b.Set(keys[i], values[i], nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}
