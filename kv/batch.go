package kv

import (
	"context"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Batch collects writes to any number of buckets, which are committed as one. It reads nothing, so
// it never conflicts. It must be used by one goroutine at a time.
type Batch struct {
	rows     *oribi.Batch
	expiring []*Bucket // those with keys that expire
	err      error     // of the first call with a bad time
}

// NewBatch returns an empty batch.
func (db *DB) NewBatch() *Batch { return &Batch{rows: db.store.NewBatch()} }

// Put sets the value of a key. A key or value that is too long makes Commit fail.
func (b *Batch) Put(bucket *Bucket, key, value []byte) {
	b.rows.Cells(oribi.OpUpsert, bucket.t, [][]byte{notNil(key), notNil(value), nil}, nil)
}

// Delete removes a key, if it exists.
func (b *Batch) Delete(bucket *Bucket, key []byte) {
	b.rows.Cells(oribi.OpDeleteIgnore, bucket.t, [][]byte{notNil(key), nil, nil}, nil)
}

// Len returns the number of writes in the batch.
func (b *Batch) Len() int { return b.rows.Len() }

// Bytes returns about how much memory the batch's writes take.
func (b *Batch) Bytes() int64 { return b.rows.Bytes() }

// Reset removes all writes from the batch, which can then be used again. It keeps the memory.
func (b *Batch) Reset() {
	b.rows.Reset()
	b.expiring, b.err = nil, nil
}

// Tables returns the write batch below, for operations on other tables of the store that are
// committed with those on buckets.
func (b *Batch) Tables() *oribi.Batch { return b.rows }

// Commit carries out all writes of the batch at one timestamp, or none of them, as
// oribi.Batch.Commit does. Later writes of a key replace earlier ones. Errors: the errors of
// oribi.Batch.Commit.
func (b *Batch) Commit(ctx context.Context, opts ...oribi.CommitOption) (mvcc.Timestamp, error) {
	if b.err != nil {
		return 0, b.err
	}
	for _, bucket := range b.expiring {
		if err := bucket.expire(ctx); err != nil {
			return 0, err
		}
	}
	ts, err := b.rows.Commit(ctx, opts...)
	if err == nil {
		b.expiring = nil
	}
	return ts, err
}
