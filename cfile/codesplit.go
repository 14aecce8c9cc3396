package cfile

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/encoding"
)

// CodeSplit is the memory of SplitWords. The zero CodeSplit is ready for use. Not safe for
// concurrent use.
type CodeSplit struct{ split encoding.CodeSplit }

// Release makes x forget all files.
func (x *CodeSplit) Release() { x.split.Release() }

// SplitWords divides rows by their word: in parts[k] it clears the bits [0, n) of the cells, from
// row ord on, that are not word k of the dictionary. Before, the parts are equal, one for each of
// Words. Rows after the end of the file do not count. ok is false, and parts are undefined, if
// there is no part, or a cblock with a bit that is 1 may have NULLs or is not in dictionary form.
// Errors: ErrCorrupt.
func (c *ColumnReader) SplitWords(ord batch.Ordinal, n int, parts []batch.Bitmap, x *CodeSplit) (ok bool, err error) {
	if len(parts) == 0 {
		return false, nil
	}
	n = c.clip(ord, n)
	for at := 0; ; {
		next := parts[0].Next(at)
		if next < 0 || next >= n {
			return true, nil
		}
		b, err := c.block(int64(ord) + int64(next))
		if err != nil {
			return false, err
		}
		if b.codes == nil || b.nullable {
			return false, nil
		}
		at = max(at, int(b.first-int64(ord)))
		from := int(int64(ord) + int64(at) - b.first)
		k := min(n-at, b.rows-from)
		if ok, err := x.split.Split(b.values, from, k, parts, at); err != nil {
			return false, c.wrap(b, err)
		} else if !ok {
			return false, nil
		}
		c.use(b.index, batch.BlockStored)
		at += k
	}
}

// InPlanes reports whether the integers from row ord on, in the file, are computed with as they are
// stored, without decompressing them. It looks at the first ones only.
func (c *ColumnReader) InPlanes(ord batch.Ordinal) (bool, error) {
	b, err := c.block(int64(ord))
	if err != nil || b.nullable {
		return false, err
	}
	return encoding.InPlanes(b.values, int(int64(ord)-b.first)), nil
}
