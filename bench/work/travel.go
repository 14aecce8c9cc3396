package work

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/peer"
	"github.com/oribi-db/oribi/mvcc"
)

// travel measures the sum of a column as of a timestamp after which each row was changed a number
// of times.
func travel() (out []harness.Workload) {
	for _, deltas := range []int{0, 1, 4, 16} {
		out = append(out, harness.Workload{
			Name: fmt.Sprintf("travel-%d", deltas),
			About: fmt.Sprintf("sum of an int64 column over all rows as of a timestamp after which each row was "+
				"changed (changes: %d), compacted, one thread, warm", deltas),
			Unit: "ns/row", MemoryLimit: peakLimit,
			Peers: []harness.Peer{
				{Name: "oribi", Ours: true, Prepare: func(env *harness.Env) error {
					return prepareTravel(env, deltas)
				}, Measure: sumDeltas(true)},
				{Name: "pebble-versions", Prepare: func(env *harness.Env) error {
					return prepareVersions(env, deltas)
				}, Measure: sumVersions},
			}})
	}
	return out
}

// travelRows is the number of rows.
func travelRows(env *harness.Env) int { return env.Scale.Inserts / 5 }

func noteTime(env *harness.Env, t uint64) error {
	return os.WriteFile(env.Path(asOfFile), fmt.Append(nil, t), 0o600)
}

func notedTime(env *harness.Env) (uint64, error) {
	text, err := os.ReadFile(env.Path(asOfFile))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(text), 10, 64)
}

func prepareTravel(env *harness.Env, deltas int) error {
	ctx := context.Background()
	store, t, err := createNumbers(env.Path(storeDir), oribi.Options{History: oribi.HistoryForever})
	if err != nil {
		return err
	}
	put := func(op oribi.Op, change int) (mvcc.Timestamp, error) {
		return putNumbers(store, t, op, travelRows(env), 1, func(k int) int64 { return int64(k + change) })
	}
	last, err := put(oribi.OpInsert, 0)
	if err == nil {
		err = noteTime(env, uint64(last))
	}
	if err == nil {
		err = t.Flush(ctx)
	}
	for change := 1; change <= deltas && err == nil; change++ {
		_, err = put(oribi.OpUpsert, change)
	}
	if err == nil {
		err = t.Compact(ctx)
	}
	return closeAll(err, store)
}

func prepareVersions(env *harness.Env, deltas int) error {
	v, err := peer.OpenVersions(env.Path(storeDir), false)
	if err != nil {
		return err
	}
	for change := 0; change <= deltas && err == nil; change++ {
		var keys, values [][]byte
		for k := range travelRows(env) {
			keys = append(keys, binary.BigEndian.AppendUint64(nil, uint64(k)))
			values = append(values, binary.LittleEndian.AppendUint64(nil, uint64(k+change)))
			if len(keys) == batchRows {
				if err := v.Put(keys, values); err != nil {
					return closeAll(err, v)
				}
				keys, values = keys[:0], values[:0]
			}
		}
		if err = v.Put(keys, values); err == nil && change == 0 {
			err = noteTime(env, v.Now())
		}
	}
	if err == nil {
		err = v.FinishWork()
	}
	return closeAll(err, v)
}

func sumVersions(env *harness.Env) (m harness.Measurement, err error) {
	at, err := notedTime(env)
	if err != nil {
		return m, err
	}
	v, err := peer.OpenVersions(env.Path(storeDir), false)
	if err != nil {
		return m, err
	}
	m, err = sumPasses(env, func() (sum, rows int64, err error) {
		err = v.ScanAt(nil, at, func(_, value []byte) (bool, error) {
			sum += littleInt64(value)
			rows++
			return true, nil
		})
		return sum, rows, err
	})
	m.Value = 1e9 / m.Value
	return m, closeAll(err, v)
}

// sumBatch adds the selected values of an int64 column.
func sumBatch(b *batch.RecordBatch) (sum int64) {
	values := batch.Values[int64](b.Columns[0])
	for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
		sum += values[i]
	}
	return sum
}

// sumPasses runs one pass to warm up, then the passes that are timed.
func sumPasses(env *harness.Env, pass func() (sum, rows int64, err error)) (harness.Measurement, error) {
	want, rows, err := pass()
	if err != nil {
		return harness.Measurement{}, err
	}
	took, err := env.Clock(func() error {
		for range env.Scale.Passes {
			sum, _, err := pass()
			if err != nil {
				return err
			}
			if sum != want {
				return fmt.Errorf("the sum is %d, but was %d", sum, want)
			}
		}
		return nil
	})
	return harness.Measurement{Value: float64(rows) * float64(env.Scale.Passes) / took.Seconds(),
		Checksum: fmt.Sprintf("%d rows sum %d", rows, want)}, err
}
