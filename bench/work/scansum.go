package work

import (
	"context"
	"fmt"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
)

// SumColumn is the column that is summed.
const SumColumn = "l_partkey" // int64, random, 1 to 200,000

// scanSum is the sum over a whole column. A pass is the scan of all rows; the first one, which warms, does not count.
func scanSum(more []harness.Peer) harness.Workload {
	return harness.Workload{
		Name: "scan-sum", About: "sum of " + SumColumn + " (int64, random) over all of lineitem, one thread, warm",
		Unit: "rows/s", More: true, MemoryLimit: peakLimit, Inputs: lineitemInputs,
		Peers:  append([]harness.Peer{{Name: "oribi", Ours: true, Prepare: prepareStore, Measure: sumStore}}, more...),
		Floors: []harness.Floor{{Peer: "oribi", Figure: 100e6, Against: "duckdb", Ratio: 0.5, Least: true}},
	}
}

func sumStore(env *harness.Env) (harness.Measurement, error) {
	store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{ReadOnly: true})
	if err != nil {
		return harness.Measurement{}, err
	}
	defer store.Close()
	return SumPasses(env, func() (sum int64, rows int64, err error) {
		for b, err := range t.Scan(context.Background(), oribi.Columns(SumColumn), oribi.AnyOrder()).Batches() {
			if err != nil {
				return 0, 0, err
			}
			values := batch.Values[int64](b.Columns[0])
			rows += int64(b.Selected())
			if b.Selected() == b.Len {
				for _, v := range values {
					sum += v
				}
				continue
			}
			for i := b.Selection.Next(0); i >= 0; i = b.Selection.Next(i + 1) {
				sum += values[i]
			}
		}
		return sum, rows, nil
	})
}

// SumPasses runs a pass to warm, then the passes that count.
func SumPasses(env *harness.Env, pass func() (sum, rows int64, err error)) (harness.Measurement, error) {
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
				return fmt.Errorf("the sum is %d, was %d", sum, want)
			}
		}
		return nil
	})
	return harness.Measurement{Value: float64(rows) * float64(env.Scale.Passes) / took.Seconds(),
		Checksum: fmt.Sprintf("%d rows sum %d", rows, want)}, err
}
