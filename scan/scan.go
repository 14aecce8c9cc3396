// Package scan says what a caller asks of a table, and joins what several sets of rows answer.
//
// A Request names columns, a filter, a key range and a snapshot. Every set of rows (MemRowSet,
// DiskRowSet) answers it with an Iterator over batches; Concat chains iterators whose rows follow
// one another, Merge joins iterators whose key ranges overlap into one in key order, Limit cuts.
//
// Iterators are for one goroutine. A batch and the list of its keys hold until the next call of
// Next; byte strings in it, and the keys themselves, stay valid as long as they are referenced.
package scan

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Request is what a scan wants of a table.
type Request struct {
	Schema   *schema.Schema
	Columns  []int         // indexes in Schema of the columns to hand out, in that order
	Filter   batch.Filter  // rows for which it is not true are left out
	Lower    []byte        // encoded key, inclusive; nil = from the first row
	Upper    []byte        // encoded key, exclusive; nil = to the last row
	Snapshot mvcc.Snapshot // the changes that the scan sees
	Keys     bool          // batches have encoded keys, for Merge
	Limit    int64         // rows that the caller takes, if it knows; 0 = all. It shapes batches; Limit cuts
}

// Batches grow where few rows may be wanted: what is read of a batch beyond them is read in vain.
// Each is batchGrowth times as long as the one before, so that a scan which goes on reaches whole
// batches after reading a few thousand rows.
const (
	openRows    = 128 // of the first batch from a key on with no end
	leastRows   = 64  // of any first batch: unpacking takes so many cells in one step
	batchGrowth = 4
)

// FirstRows is how many rows a set of rows should read for its first batch: batch.WindowRows unless
// the scan has a limit, or a lower bound and no upper one.
func (r *Request) FirstRows() int {
	switch {
	case r.Limit > 0:
		return int(min(max(r.Limit, leastRows), batch.WindowRows))
	case r.Lower != nil && r.Upper == nil:
		return openRows
	}
	return batch.WindowRows
}

// NextRows is how many it should read behind a batch of n.
func NextRows(n int) int { return min(batchGrowth*n, batch.WindowRows) }

// Projection is the columns of the batches that r asks for.
func (r *Request) Projection() []schema.Column {
	out := make([]schema.Column, len(r.Columns))
	for i, c := range r.Columns {
		out[i] = r.Schema.Columns[c]
	}
	return out
}

// Iterator yields batches with at least one selected row. The first error ends it; Close tells it
// and may be called twice.
type Iterator interface {
	Next() bool
	// Batch is the current batch. It holds until the next call of Next.
	Batch() *batch.RecordBatch
	// Keys are the encoded keys of the current batch's rows (those of unselected rows may be nil),
	// when the request asked for them.
	Keys() [][]byte
	Close() error
}

// Concat chains iterators, each made when its turn comes.
func Concat(make ...func() (Iterator, error)) Iterator { return &concat{rest: make} }

type concat struct {
	rest []func() (Iterator, error)
	cur  Iterator
	err  error
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

// Limit ends it after n rows.
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
