package work

import (
	"context"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/mvcc"
)

// scanDeltas measures the sum of a column whose rows were changed, against the same rows without
// changes: the newest state if all changes are undos, the newest state if a tenth of the rows has a
// redo, and an old state after which each row was updated four times.
func scanDeltas() harness.Workload {
	return harness.Workload{
		Name: "scan-deltas",
		About: "sum of an int64 column over all rows (200,000 at full scale), one thread, warm: unchanged; changed 4 " +
			"times and compacted; a tenth changed once and flushed; as of before the 4 changes",
		Unit: "ns/row", MemoryLimit: peakLimit,
		Peers: []harness.Peer{
			{Name: "plain", Ours: true, Prepare: prepareDeltas("plain"), Measure: sumDeltas(false)},
			{Name: "undos", Ours: true, Prepare: prepareDeltas("undos"), Measure: sumDeltas(false)},
			{Name: "redos", Ours: true, Prepare: prepareDeltas("redos"), Measure: sumDeltas(false)},
			{Name: "as-of", Ours: true, Prepare: prepareDeltas("as-of"), Measure: sumDeltas(true)},
		},
		Floors: []harness.Floor{
			{Peer: "undos", Against: "plain", Ratio: 1.05},
			{Peer: "redos", Against: "plain", Ratio: 1.5},
			{Peer: "as-of", Figure: 30},
		},
	}
}

// asOfFile contains the timestamp of the read, in the peer's directory.
const asOfFile = "as-of"

// prepareDeltas makes a store in which each row has the value of its key, at the timestamp at which
// the peer reads it.
func prepareDeltas(peer string) func(env *harness.Env) error {
	return func(env *harness.Env) error {
		ctx, n := context.Background(), env.Scale.Inserts/5
		o := oribi.Options{History: oribi.HistoryForever}
		if peer == "plain" {
			o.History = time.Second // lets the flush drop the history of the insert
		}
		store, t, err := createNumbers(env.Path(storeDir), o)
		if err != nil {
			return err
		}
		value := func(shift int64) func(k int) int64 { return func(k int) int64 { return int64(k) + shift } }
		type step func() error
		var last mvcc.Timestamp
		flush := func() error { return t.Flush(ctx) }
		put := func(op oribi.Op, step int, shift int64) step {
			return func() (err error) { last, err = putNumbers(store, t, op, n, step, value(shift)); return err }
		}
		var steps []step
		switch peer {
		case "plain":
			wait := func() error { time.Sleep(1100 * time.Millisecond); return nil }
			steps = []step{put(oribi.OpInsert, 1, 0), flush, wait, func() error { return t.Compact(ctx) },
				func() error { _, err := t.CollectUndos(ctx); return err }}
		case "redos":
			steps = []step{put(oribi.OpInsert, 1, 0), flush, put(oribi.OpUpsert, 10, 0), flush}
		default:
			newest := int64(0)
			if peer == "as-of" {
				newest = 4
			}
			steps = []step{put(oribi.OpInsert, 1, 4-newest), flush,
				func() error { return noteTime(env, uint64(last)) },
				put(oribi.OpUpsert, 1, 3), put(oribi.OpUpsert, 1, 2), put(oribi.OpUpsert, 1, 1),
				put(oribi.OpUpsert, 1, newest), flush,
				func() error { return t.Compact(ctx) }}
		}
		for _, s := range steps {
			if err == nil {
				err = s()
			}
		}
		return closeAll(err, store)
	}
}

func sumDeltas(past bool) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		options := []oribi.ScanOption{oribi.Columns("v"), oribi.AnyOrder()}
		if past {
			ts, err := notedTime(env)
			if err != nil {
				return m, err
			}
			options = append(options, oribi.AsOf(mvcc.Timestamp(ts)))
		}
		store, err := oribi.Open(env.Path(storeDir), &oribi.Options{ReadOnly: true})
		if err != nil {
			return m, err
		}
		defer store.Close()
		t, err := store.Table(numbersTable)
		if err != nil {
			return m, err
		}
		m, err = sumPasses(env, func() (sum, rows int64, err error) {
			for b, err := range t.Scan(context.Background(), options...).Batches() {
				if err != nil {
					return 0, 0, err
				}
				sum += sumBatch(b)
				rows += int64(b.Selected())
			}
			return sum, rows, nil
		})
		m.Value = 1e9 / m.Value
		return m, err
	}
}
