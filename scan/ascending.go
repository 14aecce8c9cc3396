package scan

import (
	"bytes"
	"context"

	"github.com/oribi-db/oribi/internal/fault"
)

// CountAscending returns the number of rows that an iterator with keys returns, and closes it. Each
// key must be greater than the one before; keyText formats keys for the error. Errors: ErrCorrupt;
// ctx.Err(); the errors of the iterator.
func CountAscending(ctx context.Context, it Iterator, keyText func(key []byte) string) (n int64, err error) {
	var last []byte
	for err == nil && it.Next() {
		b, keys := it.Batch(), it.Keys()
		for i := b.Selection.Next(0); i >= 0 && err == nil; i = b.Selection.Next(i + 1) {
			if n > 0 && bytes.Compare(last, keys[i]) >= 0 {
				err = fault.Corruptf("key %s comes after key %s", keyText(keys[i]), keyText(last))
			}
			last = append(last[:0], keys[i]...)
			n++
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	if closeErr := it.Close(); err == nil {
		err = closeErr
	}
	return n, err
}
