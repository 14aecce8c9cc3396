package work

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
)

// commitOne measures write batches of one row, in sequence.
func commitOne() harness.Workload {
	return harness.Workload{
		Name: "commit", About: "write batches of one row with two int64 columns, ascending keys, one writer, no sync",
		Unit: "µs", Fresh: true, MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "oribi", Ours: true, Measure: commitStore},
			{Name: "pebble", Measure: commitPebble},
		},
		Floors: []harness.Floor{{Peer: "oribi", Figure: 5}},
	}
}

func commitStore(env *harness.Env) (m harness.Measurement, err error) {
	store, t, err := createNumbers(env.Path(storeDir), oribi.Options{})
	if err != nil {
		return m, err
	}
	defer store.Close()
	b := store.NewBatch()
	var key, value [8]byte
	cells := [][]byte{key[:], value[:]}
	took, err := env.Clock(func() error {
		for i := range env.Scale.Gets {
			binary.LittleEndian.PutUint64(key[:], uint64(i))
			binary.LittleEndian.PutUint64(value[:], uint64(i))
			b.Cells(oribi.OpInsert, t, cells, nil)
			if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	n, err := t.Count(context.Background())
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(env.Scale.Gets), Checksum: fmt.Sprint(n)}, err
}

func commitPebble(env *harness.Env) (m harness.Measurement, err error) {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return m, err
	}
	defer db.Close()
	var key, value [8]byte
	took, err := env.Clock(func() error {
		for i := range env.Scale.Gets {
			binary.BigEndian.PutUint64(key[:], uint64(i))
			binary.LittleEndian.PutUint64(value[:], uint64(i))
			if err := db.Set(key[:], value[:], pebble.NoSync); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	n := 0
	it, err := db.NewIter(nil)
	if err != nil {
		return m, err
	}
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	return harness.Measurement{Value: took.Seconds() * 1e6 / float64(env.Scale.Gets), Checksum: fmt.Sprint(n)}, it.Close()
}
