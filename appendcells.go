package oribi

import (
	"context"
	"fmt"
)

// AppendCells appends the cells of a row to dst, in schema order, nil for NULL. It is like GetCells
// without Columns, and allocates no memory if dst has room. The cells must not be modified. A byte
// string may be kept; it can keep the block from which it was read in memory.
//
// Errors: those of Get.
func (t *Table) AppendCells(ctx context.Context, dst [][]byte, key any, opts ...ReadOption) ([][]byte, error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	v, err := t.read(ctx, &k.o)
	if err != nil {
		return dst, err
	}
	defer t.done(v)
	encoded, err := t.appendKey(k.key[:0], v.TableSchema, key, false)
	if err != nil {
		return dst, err
	}
	k.key = encoded
	cells, found, err := v.Get(encoded, v.All, dst)
	switch {
	case err != nil:
		return dst, fmt.Errorf("oribi: %w", err)
	case !found:
		look := &lookup{tab: t.tab}
		look.key = append(look.few[:0], encoded...)
		return dst, look
	}
	return cells, nil
}
