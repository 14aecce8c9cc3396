package oribi

import "context"

// AppendCells appends the cells of a row to dst, in schema order, nil for NULL. It is like GetCells
// without Columns, and allocates no memory if dst has room. The cells must not be modified. A byte
// string may be kept; it can keep the block from which it was read in memory.
//
// Errors: as for Get.
func (t *Table) AppendCells(ctx context.Context, dst [][]byte, key any, opts ...ReadOption) ([][]byte, error) {
	for tries := 0; ; tries++ {
		cells, err := t.appendCells(ctx, dst, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return cells, err
		}
	}
}

func (t *Table) appendCells(ctx context.Context, dst [][]byte, key any, opts []ReadOption) ([][]byte, error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	if err := t.read(ctx, &k.o, &v); err != nil {
		return dst, err
	}
	defer t.done(&v)
	cells, err := t.get(&v, k, key, v.All, dst)
	if err != nil {
		return dst, err
	}
	return cells, nil
}
