package work

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
)

// hotKey reads one row repeatedly that was updated once for each insert of the scale (a million at
// full scale), or rows of the same table that were never updated. The changes are in the MemRowSet,
// in the delta mem store of a rowset, in its redo files, or in its undos.
func hotKey() harness.Workload {
	peers := []harness.Peer{}
	for _, where := range []string{"memory", "deltas", "redos", "undos"} {
		peers = append(peers, harness.Peer{Name: where + "-hot", Ours: true, Measure: getHot(where, true)},
			harness.Peer{Name: where + "-cold", Ours: true, Measure: getHot(where, false)})
	}
	return harness.Workload{
		Name: "hot-key",
		About: "read one row by key, updated a million times or never; the updates are in the MemRowSet, a delta mem " +
			"store, redo files, or undo files",
		Unit: "µs", Fresh: true, MemoryLimit: peakLimit, Peers: peers,
		Floors: []harness.Floor{
			{Peer: "memory-hot", Against: "memory-cold", Ratio: 3},
			{Peer: "deltas-hot", Against: "deltas-cold", Ratio: 3},
			{Peer: "redos-hot", Against: "redos-cold", Ratio: 2},
			{Peer: "undos-hot", Against: "undos-cold", Ratio: 2},
			{Peer: "memory-hot", Metric: "last/first tenth", Figure: 2},
			{Peer: "deltas-hot", Metric: "last/first tenth", Figure: 2},
		},
	}
}

const (
	hotRows = 10_000
	hotRow  = 777
	hotSum  = 5 // sum of a row, which updates do not change
)

func getHot(where string, hot bool) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		ctx := context.Background()
		store, t, err := createNumbers(env.Path(storeDir), oribi.Options{History: oribi.HistoryForever})
		if err != nil {
			return m, err
		}
		defer store.Close()
		_, err = putNumbers(store, t, oribi.OpInsert, hotRows, 1, func(int) int64 { return hotSum })
		if err == nil && (where == "deltas" || where == "redos") {
			err = t.Flush(ctx)
		}
		var growth float64
		if err == nil {
			growth, err = updateHot(store, t, env.Scale.Inserts)
		}
		if err == nil && (where == "redos" || where == "undos") {
			err = t.Flush(ctx)
		}
		if err != nil {
			return m, err
		}
		var key [8]byte
		cells := [][]byte{key[:]}
		var sum int64
		get := func(k int) error {
			binary.LittleEndian.PutUint64(key[:], uint64(k))
			_, got, err := t.GetCells(ctx, cells)
			if err == nil {
				sum += littleInt64(got[1])
			}
			return err
		}
		row := func(i int) int {
			if hot {
				return hotRow
			}
			return hotRow + 1 + i%100
		}
		for i := range 200 {
			if err := get(row(i)); err != nil {
				return m, err
			}
		}
		sum = 0
		took, err := env.Clock(func() error {
			for i := range env.Scale.Gets {
				if err := get(row(i)); err != nil {
					return err
				}
			}
			return nil
		})
		return harness.Measurement{Value: took.Seconds() * 1e6 / float64(env.Scale.Gets), Checksum: fmt.Sprint(sum),
			Metrics: map[string]float64{"last/first tenth": growth}}, err
	}
}

// updateHot updates one row n times, ten times per write batch. It returns the time of the last
// tenth of the updates divided by the time of the first tenth.
func updateHot(store *oribi.Store, t *oribi.Table, n int) (growth float64, err error) {
	b := store.NewBatch()
	var key, value [8]byte
	binary.LittleEndian.PutUint64(key[:], hotRow)
	cells := [][]byte{key[:], value[:]}
	var tenths [10]time.Duration
	for part := range tenths {
		begin := time.Now()
		for i := range n / 10 {
			binary.LittleEndian.PutUint64(value[:], uint64(n/10-1-i)+hotSum)
			b.Cells(oribi.OpUpdate, t, cells, nil)
			if b.Len() == 10 || i == n/10-1 {
				if _, err := b.Commit(context.Background(), oribi.NoSync); err != nil {
					return 0, err
				}
			}
		}
		tenths[part] = time.Since(begin)
	}
	return tenths[9].Seconds() / tenths[0].Seconds(), nil
}
