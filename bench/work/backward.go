package work

import (
	"context"
	"encoding/binary"
	"iter"
	"math/rand/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/mvcc"
)

// shortRows is the number of rows of a short scan.
const shortRows = 20

// backward compares scans in descending key order with ascending ones.
func backward() harness.Workload {
	w := harness.Workload{
		Name: "scan-backward",
		About: "200,000 rows of an int64 key in key order, forward and backward: all; as of before each was changed; " +
			"on keys and values of 100 bytes; 20 rows from random keys on, of both; warm",
		Unit: "ns/row", MemoryLimit: peakLimit,
	}
	for _, name := range []string{"rows", "past", "kv", "short", "kv-short"} {
		for _, back := range []bool{false, true} {
			c := directionCase{pairs: name == "kv" || name == "kv-short", past: name == "past",
				short: name == "short" || name == "kv-short", back: back}
			p := name
			if back {
				p += "-backward"
				w.Floors = append(w.Floors, harness.Floor{Peer: p, Against: name, Ratio: 1.2})
			}
			w.Peers = append(w.Peers, harness.Peer{Name: p, Ours: true, Prepare: c.prepare, Measure: c.measure})
		}
	}
	return w
}

// directionCase says which scan a peer of backward scans runs.
type directionCase struct {
	pairs bool // of package kv
	past  bool
	short bool
	back  bool
}

func (c directionCase) prepare(env *harness.Env) error {
	ctx, n := context.Background(), env.Scale.Inserts/5
	store, t, err := createNumbers(env.Path(storeDir), oribi.Options{History: oribi.HistoryForever})
	if err != nil {
		return err
	}
	if c.pairs {
		return closeAll(loadPairs(ctx, store, n), store)
	}
	value := func(shift int64) func(k int) int64 { return func(k int) int64 { return int64(k) + shift } }
	last, err := putNumbers(store, t, oribi.OpInsert, n, 1, value(0))
	if err == nil {
		err = noteTime(env, uint64(last))
	}
	if err == nil && c.past {
		if err = t.Flush(ctx); err == nil {
			_, err = putNumbers(store, t, oribi.OpUpsert, n, 1, value(1))
		}
	}
	if err == nil {
		err = t.Compact(ctx)
	}
	return closeAll(err, store)
}

// loadPairs loads a bucket with the keys of putNumbers, big-endian, and values that begin with the
// same number.
func loadPairs(ctx context.Context, store *oribi.Store, n int) error {
	b, err := kv.In(store).CreateBucket("pairs")
	if err != nil {
		return err
	}
	_, _, err = b.Load(ctx, func(yield func(kv.Pair, error) bool) {
		key, value := make([]byte, 8), make([]byte, 100)
		for k := range n {
			binary.BigEndian.PutUint64(key, uint64(k))
			binary.LittleEndian.PutUint64(value, uint64(k))
			if !yield(kv.Pair{Key: key, Value: value}, nil) {
				return
			}
		}
	})
	return err
}

func (c directionCase) measure(env *harness.Env) (m harness.Measurement, err error) {
	store, err := oribi.Open(env.Path(storeDir), &oribi.Options{ReadOnly: true})
	if err != nil {
		return m, err
	}
	defer store.Close()
	scan, err := c.scanner(env, store)
	if err != nil {
		return m, err
	}
	n := int64(env.Scale.Inserts / 5)
	m, err = sumPasses(env, func() (sum, rows int64, err error) {
		add := func(from, to int64) error {
			for v, err := range scan(from, to) {
				if err != nil {
					return err
				}
				sum, rows = sum+v, rows+1
			}
			return nil
		}
		if !c.short {
			return sum, rows, add(0, n)
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range n / shortRows {
			from := r.Int64N(n - shortRows)
			if err := add(from, from+shortRows); err != nil {
				return 0, 0, err
			}
		}
		return sum, rows, nil
	})
	m.Checksum = "" // full and short scans have different checksums
	m.Value = 1e9 / m.Value
	return m, err
}

// scanner returns a function that yields the numbers of the rows whose keys are in [from, to).
func (c directionCase) scanner(
	env *harness.Env, store *oribi.Store,
) (func(from, to int64) iter.Seq2[int64, error], error) {
	ctx := context.Background()
	var shared []oribi.ScanOption
	if c.back {
		shared = append(shared, oribi.Desc())
	}
	if c.past {
		ts, err := notedTime(env)
		if err != nil {
			return nil, err
		}
		shared = append(shared, oribi.AsOf(mvcc.Timestamp(ts)))
	}
	// A short scan has one bound and a limit, as a program has that reads the next rows of a list.
	bounds := func(from, to any) []oribi.ScanOption {
		switch {
		case !c.short:
			return shared
		case c.back:
			return append(shared[:len(shared):len(shared)], oribi.To(to), oribi.Limit(shortRows))
		default:
			return append(shared[:len(shared):len(shared)], oribi.From(from), oribi.Limit(shortRows))
		}
	}
	if c.pairs {
		b, err := kv.In(store).Bucket("pairs")
		return func(from, to int64) iter.Seq2[int64, error] {
			return pairNumbers(ctx, b, bounds(pairKey(from), pairKey(to)))
		}, err
	}
	t, err := store.Table(numbersTable)
	return func(from, to int64) iter.Seq2[int64, error] { return rowNumbers(ctx, t, bounds(from, to)) }, err
}

func pairKey(k int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(k)) }

func pairNumbers(ctx context.Context, b *kv.Bucket, o []oribi.ScanOption) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for p, err := range b.Scan(ctx, o...) {
			v := int64(0)
			if err == nil {
				v = int64(binary.LittleEndian.Uint64(p.Value))
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

func rowNumbers(ctx context.Context, t *oribi.Table, o []oribi.ScanOption) iter.Seq2[int64, error] {
	options := make([]oribi.ScanOption, len(o))
	for i, opt := range o {
		options[i] = opt
	}
	return func(yield func(int64, error) bool) {
		for b, err := range t.Scan(ctx, options...).Batches() {
			if err != nil {
				yield(0, err)
				return
			}
			values := batch.Values[int64](b.Columns[1])
			for i := range b.Rows() {
				if !yield(values[i], nil) {
					return
				}
			}
		}
	}
}
