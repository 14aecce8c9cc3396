// Package scan defines scan requests and combines iterators over several sets of rows.
//
// A Request consists of columns, a filter, a key range, a direction and a snapshot. Each set of
// rows (MemRowSet, DiskRowSet) returns an Iterator over batches for it, in ascending or descending
// order of the keys. Concat chains iterators whose key ranges follow one another in that order,
// Merge merges iterators with overlapping key ranges, Parallel reads parts of the rows in several
// goroutines, and Limit stops after a number of rows.
//
// Iterators are not safe for concurrent use. A batch and the list of its keys are valid until the
// next call of Next or Seek. Byte strings in it, and the keys themselves, are never overwritten.
package scan

import "github.com/oribi-db/oribi/batch"

// Iterator returns batches with at least one selected row. The first error ends it; Close returns
// that error and may be called twice.
type Iterator interface {
	Next() bool
	// Batch returns the current batch, which is valid until the next call of Next or Seek.
	Batch() *batch.RecordBatch
	// Keys returns the encoded keys of the current batch's rows, if the request asks for keys.
	// Those of unselected rows may be nil.
	Keys() [][]byte
	// Seek skips to the first row at or after an encoded key in the order of the scan (in a
	// descending one, at or below the key), among the rows not returned yet; the next call of Next
	// returns the batch with that row. It never moves back. The rows must be in key order.
	Seek(key []byte) error
	Close() error
}

// Concat chains iterators for r. It creates each one after the previous one has ended.
func Concat(r *Request, make ...func() (Iterator, error)) Iterator {
	return &concat{descending: r.Descending(), rest: make}
}

type concat struct {
	descending bool
	rest       []func() (Iterator, error)
	cur        Iterator
	seekKey    []byte // the furthest key of Seek, for the remaining iterators
	err        error
}

func (c *concat) Next() bool {
	for c.err == nil {
		if c.cur == nil {
			if len(c.rest) == 0 {
				return false
			}
			next := c.rest[0]
			c.rest = c.rest[1:]
			if c.cur, c.err = next(); c.err != nil {
				c.cur = nil
				return false
			}
			if c.seekKey != nil {
				if c.err = c.cur.Seek(c.seekKey); c.err != nil {
					return false
				}
			}
		}
		if c.cur.Next() {
			return true
		}
		c.err = c.cur.Close()
		c.cur = nil
	}
	return false
}

func (c *concat) Batch() *batch.RecordBatch { return c.cur.Batch() }
func (c *concat) Keys() [][]byte            { return c.cur.Keys() }

func (c *concat) Seek(key []byte) error {
	c.seekKey = further(c.seekKey, key, c.descending)
	if c.cur != nil && c.err == nil {
		c.err = c.cur.Seek(key)
	}
	return c.err
}

// further returns at, or a copy of key if that is further in the order of the scan. A nil at is the
// beginning.
func further(at, key []byte, descending bool) []byte {
	if at == nil || before(at, key, descending) {
		return append([]byte{}, key...)
	}
	return at
}

func (c *concat) Close() error {
	c.rest = nil
	if c.cur != nil {
		if err := c.cur.Close(); c.err == nil {
			c.err = err
		}
		c.cur = nil
	}
	return c.err
}

// Limit ends an iterator after n rows.
func Limit(it Iterator, n int64) Iterator { return &limit{Iterator: it, left: n} }

type limit struct {
	Iterator
	left int64
}

func (l *limit) Next() bool {
	if l.left <= 0 || !l.Iterator.Next() {
		return false
	}
	b := l.Batch()
	n := int64(b.Selected())
	if n > l.left {
		i := -1
		for ; l.left > 0; l.left-- {
			i = b.Selection.Next(i + 1)
		}
		b.Selection.ClearRange(i+1, b.Len)
		return true
	}
	l.left -= n
	return true
}
