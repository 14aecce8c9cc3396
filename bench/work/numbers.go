package work

import (
	"context"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

const numbersTable = "numbers"

// createNumbers creates a store with an empty table of an int64 key k and an int64 v, without
// background work.
func createNumbers(dir string, o oribi.Options) (*oribi.Store, *oribi.Table, error) {
	o.Manual = true
	store, err := oribi.Open(dir, &o)
	if err != nil {
		return nil, nil, err
	}
	t, err := createNumbersIn(store)
	if err != nil {
		return nil, nil, closeAll(err, store)
	}
	return store, t, nil
}

func createNumbersIn(store *oribi.Store) (*oribi.Table, error) {
	s, err := schema.New([]schema.Column{{Name: "k", Type: schema.Int64}, {Name: "v", Type: schema.Int64}}, 1)
	if err != nil {
		return nil, err
	}
	return store.CreateTable(numbersTable, s)
}

// putNumbers writes v(k) for the keys 0, step, 2×step, … below n, in write batches of batchRows,
// and returns the last timestamp.
func putNumbers(
	store *oribi.Store, t *oribi.Table, op oribi.Op, n, step int, v func(k int) int64,
) (ts mvcc.Timestamp, err error) {
	columns := newVectors(t)
	b := store.NewBatch()
	for k := 0; k < n; {
		for _, c := range columns {
			c.Reset(0)
		}
		rows := min(batchRows, (n-k+step-1)/step)
		for _, c := range columns {
			c.Reset(rows)
		}
		for i := range rows {
			batch.Values[int64](columns[0])[i], batch.Values[int64](columns[1])[i] = int64(k), v(k)
			k += step
		}
		b.Vectors(op, t, columns)
		if ts, err = b.Commit(context.Background(), oribi.NoSync); err != nil {
			return 0, err
		}
	}
	return ts, nil
}
