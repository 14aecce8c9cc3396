package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/vfs"
)

// open opens a closed store of many rowsets repeatedly in one process; Close is not timed. Pebble's
// database has the same rows, flushed as often, and must give the same answer after opening. For
// the store, the metrics count the waits for the disk, and the time without them.
func open() harness.Workload {
	return harness.Workload{
		Name: "open", About: "open a closed store of 100 rowsets (10 at small scale), warm",
		Unit: "ms", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{
			{Name: "oribi-read", Ours: true, Prepare: prepareSets,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openStore(env, true)
				}},
			{Name: "oribi-write", Ours: true, Prepare: prepareSets,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openStore(env, false)
				}},
			{Name: "pebble-read", Prepare: preparePebbleTables,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openPebbleDir(env, true)
				}},
			{Name: "pebble-write", Prepare: preparePebbleTables,
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openPebbleDir(env, false)
				}},
		},
		Floors: []harness.Floor{
			{Peer: "oribi-read", Figure: 15, Against: "pebble-read", Ratio: 3},
			{Peer: "oribi-write", Metric: "ms without syncs", Figure: 15, Against: "pebble-write", Ratio: 3},
			{Peer: "oribi-write", Metric: "fsyncs", Figure: 12},
		},
	}
}

// openMany opens a store with ten times as many rowsets.
func openMany() harness.Workload {
	many := func(step func(*harness.Env) error) func(*harness.Env) error {
		return func(env *harness.Env) error {
			more := *env
			more.Scale.Sets *= 10
			return step(&more)
		}
	}
	return harness.Workload{
		Name: "open-many", About: "open a closed store of 1,000 rowsets (100 at small scale), warm",
		Unit: "ms", MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers: []harness.Peer{
			{Name: "oribi-read", Ours: true, Prepare: many(prepareSets),
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openStore(env, true)
				}},
			{Name: "oribi-write", Ours: true, Prepare: many(prepareSets),
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openStore(env, false)
				}},
			{Name: "pebble-read", Prepare: many(preparePebbleTables),
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openPebbleDir(env, true)
				}},
			{Name: "pebble-write", Prepare: many(preparePebbleTables),
				Measure: func(env *harness.Env) (harness.Measurement, error) {
					return openPebbleDir(env, false)
				}},
		},
		Floors: []harness.Floor{
			{Peer: "oribi-read", Figure: 100},
			{Peer: "oribi-write", Metric: "fsyncs", Figure: 12},
		},
	}
}

// setRows is the maximum number of rows in a rowset.
const setRows = 2000

// errEnough ends the reading of the input.
var errEnough = errors.New("enough rows")

// eachSet reads Sets equal chunks of lineitem, of at most setRows rows each.
func eachSet(env *harness.Env, use func(items []inputs.Item) error) error {
	rows := 0
	if err := EachChunk(env, batchRows, func(items []inputs.Item) error {
		rows += len(items)
		return nil
	}); err != nil {
		return err
	}
	n := 0
	err := EachChunk(env, max(1, min(setRows, rows/env.Scale.Sets)), func(items []inputs.Item) error {
		if n++; n > env.Scale.Sets {
			return errEnough
		}
		return use(items)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

func prepareSets(env *harness.Env) error {
	store, t, err := createLineitem(env.Path(storeDir), &oribi.Options{Manual: true})
	if err != nil {
		return err
	}
	columns := newVectors(t)
	b := store.NewBatch()
	err = eachSet(env, func(items []inputs.Item) error {
		vectorsOf(columns, items)
		b.Vectors(oribi.OpInsert, t, columns)
		if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
			return err
		}
		return t.Flush(context.Background())
	})
	if got := len(t.Layout().RowSets); err == nil && got != env.Scale.Sets {
		err = fmt.Errorf("the store has %d rowsets, want %d", got, env.Scale.Sets)
	}
	return closeAll(err, store)
}

func preparePebbleTables(env *harness.Env) error {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return err
	}
	err = eachSet(env, func(items []inputs.Item) error {
		if err := putItems(db, items); err != nil {
			return err
		}
		return db.Flush()
	})
	return closeAll(err, db)
}

// closeAll closes everything and returns the first error.
func closeAll(err error, c io.Closer) error {
	if closed := c.Close(); err == nil {
		err = closed
	}
	return err
}

// opened is an open store, with the function that reads all its rows.
type opened struct {
	io.Closer
	answer func() (string, error)
}

func openStore(env *harness.Env, readOnly bool) (harness.Measurement, error) {
	fs := &countingFS{FS: vfs.OS}
	return openings(env, fs, func() (opened, error) {
		store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{ReadOnly: readOnly, Manual: true, FS: fs})
		return opened{store, func() (string, error) { return checkStore(t) }}, err
	})
}

func openPebbleDir(env *harness.Env, readOnly bool) (harness.Measurement, error) {
	return openings(env, nil, func() (opened, error) {
		db, err := openPebble(env.Path(storeDir), readOnly)
		return opened{db, func() (string, error) { return checkPebble(db) }}, err
	})
}

// openings opens and closes once to warm up, then Passes times; the value is the median. fs, if not
// nil, measures how often and how long an opening waits for the disk. The checksum is the answer of
// one more opening.
func openings(env *harness.Env, fs *countingFS, open func() (opened, error)) (m harness.Measurement, err error) {
	var times, syncs, besides []float64
	_, err = env.Clock(func() error {
		for i := range env.Scale.Passes + 1 {
			if fs != nil {
				fs.reset()
			}
			begin := time.Now()
			s, err := open()
			if err != nil {
				return err
			}
			took := time.Since(begin)
			if i > 0 {
				times = append(times, took.Seconds()*1000)
			}
			if fs != nil && i > 0 {
				syncs = append(syncs, float64(fs.syncs.Load()))
				besides = append(besides, (took-time.Duration(fs.waited.Load())).Seconds()*1000)
			}
			if err := s.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	m.Value = middle(times)
	if fs != nil {
		m.Metrics = map[string]float64{"fsyncs": slices.Max(syncs), "ms without syncs": middle(besides)}
	}
	o, err := open()
	if err != nil {
		return m, err
	}
	m.Checksum, err = o.answer()
	return m, closeAll(err, o)
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
