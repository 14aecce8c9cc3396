package oribi

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
)

// ctxEvery is how many rows are read between two looks at the context.
const ctxEvery = 256

// GetMany reads rows by keys, each as Get takes it, under one snapshot: what Get gives for each of them at that moment. Row i of the result
// is that of keys[i], nil where there is none; a key may stand twice. Keys are looked up in their order, so that neighbours
// share the blocks that are read. What takes memory is the result.
//
// Options and errors are those of Get; a missing row is none.
func (t *Table) GetMany(ctx context.Context, keys []any, opts ...ReadOption) ([]Row, error) {
	if err := t.store.enter(); err != nil {
		return nil, err
	}
	defer t.store.leave()
	o := collect(opts)
	v, err := t.view(ctx, &o, true)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	cols, err := t.project(v.Shape, &o)
	if err != nil {
		return nil, err
	}
	encoded := make([][]byte, len(keys))
	order := make([]int, len(keys))
	for i, key := range keys {
		k, err := t.keyCells(v.Schema, key, false)
		if err != nil {
			return nil, fmt.Errorf("%w (key %d of %d)", err, i, len(keys))
		}
		encoded[i], order[i] = v.Encoder.AppendKey(nil, k), i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(bytes.Compare(encoded[a], encoded[b]), cmp.Compare(a, b))
	})
	rows := make([]Row, len(keys))
	var cells [][]byte
	for n, i := range order {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var found bool
		if cells, found, err = v.Get(encoded[i], cols, cells[:0]); err != nil {
			return nil, fmt.Errorf("oribi: %w", err)
		}
		if found {
			rows[i] = newRow(v.Schema.Columns, cols, cells)
		}
	}
	return rows, nil
}
