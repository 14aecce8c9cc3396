package oribi

import (
	"context"
	"fmt"
)

// Has reports whether there is a row with a key, which is given as in Get. It reads no columns
// other than those of the key, and allocates nothing if there is no such row.
//
// Errors: as for Get, except that a missing row is no error.
func (t *Table) Has(ctx context.Context, key any, opts ...ReadOption) (bool, error) {
	for tries := 0; ; tries++ {
		found, err := t.has(ctx, key, opts)
		if err == nil || !restarts(ctx, t, opts, err, tries) {
			return found, err
		}
	}
}

func (t *Table) has(ctx context.Context, key any, opts []ReadOption) (bool, error) {
	k := keyReads.Get().(*keyRead)
	defer k.release()
	collectInto(&k.o, opts)
	var v view
	err := t.read(ctx, &k.o, &v)
	if err != nil {
		return false, err
	}
	defer t.done(&v)
	encoded, err := t.appendKey(k.key[:0], v.TableSchema, key, false)
	if err != nil {
		return false, err
	}
	k.key = encoded
	found, err := v.Has(encoded)
	if err != nil {
		return false, fmt.Errorf("oribi: %w", err)
	}
	return found, nil
}
