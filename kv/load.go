package kv

import (
	"context"
	"iter"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Load adds keys that arrive in ascending order directly to files, durably: all of them at one
// timestamp, or none. It is for many keys, also more than fit in memory. A pair may be reused from
// the next step on. An error from pairs ends the load and is returned.
//
// ts is the timestamp of the keys, and n their number.
//
// Errors: ErrRow, with ErrKeyExists for a key that exists, for a key that does not ascend, or for a
// key or value that is too long; the errors of Table.Ingest.
func (b *Bucket) Load(ctx context.Context, pairs iter.Seq2[Pair, error]) (ts mvcc.Timestamp, n int64, err error) {
	return b.t.Ingest(ctx, vectors(pairs))
}

// A step of vectors has up to so many rows, and about so many bytes.
const (
	loadRows  = batch.WindowRows
	loadBytes = 4 << 20
)

// vectors collects pairs in vectors of a bucket's columns.
func vectors(pairs iter.Seq2[Pair, error]) iter.Seq2[[]*batch.Vector, error] {
	if pairs == nil {
		return nil
	}
	return func(yield func([]*batch.Vector, error) bool) {
		step := make([]*batch.Vector, columnCount)
		step[keyColumn], step[valueColumn] = batch.NewVector(schema.Binary, 0), batch.NewVector(schema.Binary, 0)
		text := []byte{} // of the keys and values in step, one after the other; not nil, where a cell would be NULL
		var ends []int   // in text
		pass := func() bool {
			for i, from := 0, 0; i < len(ends); i++ {
				step[i%2].AppendCell(text[from:ends[i]:ends[i]])
				from = ends[i]
			}
			more := yield(step, nil)
			step[keyColumn].Reset(0)
			step[valueColumn].Reset(0)
			text, ends = text[:0], ends[:0]
			return more
		}
		for p, err := range pairs {
			if err != nil {
				yield(nil, err)
				return
			}
			text = append(text, p.Key...)
			ends = append(ends, len(text))
			text = append(text, p.Value...)
			ends = append(ends, len(text))
			if (len(ends) >= 2*loadRows || len(text) >= loadBytes) && !pass() {
				return
			}
		}
		if len(ends) > 0 {
			pass()
		}
	}
}
