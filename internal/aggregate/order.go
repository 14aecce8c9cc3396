package aggregate

import (
	"bytes"
	"cmp"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/schema"
)

// Compare compares two cells of a type: NULL, a nil cell, is after all others, and NaN after all
// numbers. Zeros of either sign are equal, and arrays are in the order of their bytes.
func Compare(t schema.Type, x, y []byte) int {
	switch {
	case x == nil || y == nil:
		return cmp.Compare(oneIf(x == nil), oneIf(y == nil))
	case t.Variable():
		return bytes.Compare(x, y)
	case batch.IsNaN(t, x) || batch.IsNaN(t, y):
		return cmp.Compare(oneIf(batch.IsNaN(t, x)), oneIf(batch.IsNaN(t, y)))
	}
	return batch.Compare(t, x, y)
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
