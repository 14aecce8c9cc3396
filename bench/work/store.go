package work

import (
	"context"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
	"github.com/oribi-db/oribi/bench/peer"
)

const lineitemTable = "lineitem"

// createLineitem creates a store with an empty lineitem.
func createLineitem(dir string, o *oribi.Options) (*oribi.Store, *oribi.Table, error) {
	s, err := inputs.LineitemSchema()
	if err != nil {
		return nil, nil, err
	}
	store, err := oribi.Open(dir, o)
	if err != nil {
		return nil, nil, err
	}
	t, err := store.CreateTable(lineitemTable, s)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	return store, t, nil
}

// openLineitem opens a store and its table lineitem.
func openLineitem(dir string, o *oribi.Options) (*oribi.Store, *oribi.Table, error) {
	store, err := oribi.Open(dir, o)
	if err != nil {
		return nil, nil, err
	}
	t, err := store.Table(lineitemTable)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	return store, t, nil
}

// newVectors returns a vector for each column of t.
func newVectors(t *oribi.Table) []*batch.Vector {
	return inputs.NewVectors(t.Schema())
}

// EachChunk reads lineitem's input n rows at a time.
func EachChunk(env *harness.Env, n int, use func(items []inputs.Item) error) error {
	return peer.EachChunk(inputs.Items(env.Input(Lineitem)), n, use)
}

// loadLineitem writes all of lineitem's input with vectors, without syncing each batch.
func loadLineitem(env *harness.Env, store *oribi.Store, t *oribi.Table) error {
	columns := newVectors(t)
	b := store.NewBatch()
	return EachChunk(env, batchRows, func(items []inputs.Item) error {
		vectorsOf(columns, items)
		b.Vectors(oribi.OpInsert, t, columns)
		_, err := b.Commit(context.Background(), oribi.NoSync)
		return err
	})
}

// prepareStore creates a store with lineitem in a few large rowsets.
func prepareStore(env *harness.Env) error {
	store, t, err := createLineitem(env.Path(storeDir), nil)
	if err != nil {
		return err
	}
	if err = loadLineitem(env, store, t); err == nil {
		err = t.Compact(context.Background())
	}
	return closeAll(err, store)
}

// checkStore returns the checksum of lineitem in a store.
func checkStore(t *oribi.Table) (string, error) {
	var sum checksum
	for b, err := range t.Scan(context.Background(), oribi.AnyOrder()).Batches() {
		if err != nil {
			return "", err
		}
		sum.addBatch(b)
	}
	return sum.String(), nil
}
