package work

import (
	"context"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

type table = *oribi.Table

// getter reads the row of an item and returns its supplier.
type getter func(it *inputs.Item) (int64, error)

// storeGetter measures one method of the engine that peer.Lineitem does not include.
func storeGetter(keys int, make func(t table) (getter, error)) func(env *harness.Env) (harness.Measurement, error) {
	return func(env *harness.Env) (m harness.Measurement, err error) {
		items, err := pick(env, keys)
		if err != nil {
			return m, err
		}
		store, t, err := openLineitem(env.Path(storeDir), &oribi.Options{ReadOnly: true})
		if err != nil {
			return m, err
		}
		defer store.Close()
		get, err := make(t)
		if err != nil {
			return m, err
		}
		return calls(env, len(items), env.Scale.Gets, 1, func(i int) (int64, error) { return get(&items[i]) })
	}
}

func getRow(t table) (getter, error) {
	return func(it *inputs.Item) (int64, error) {
		row, err := t.Get(context.Background(), oribi.Key{it.OrderKey, it.LineNumber})
		if err != nil {
			return 0, err
		}
		return row["l_suppkey"].(int64), nil
	}, nil
}

func getTyped(t table) (getter, error) {
	typed, err := oribi.Typed[typedItem](t)
	if err != nil {
		return nil, err
	}
	return func(it *inputs.Item) (int64, error) {
		row, err := typed.Get(context.Background(), oribi.Key{it.OrderKey, it.LineNumber})
		return row.SuppKey, err
	}, nil
}
