package kv

import (
	"context"
	"encoding/binary"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/bind"
)

// Add adds delta, which may be negative, to the counter of a key and returns the sum. A key that does not
// exist counts as 0. Concurrent calls do not conflict, and wait for one another no longer than two calls of
// Put do; each is counted once. When the key expires does not change. Durability is as for Put.
//
// The value of the key is an int64 in 8 bytes, big-endian, as counters of programs with bbolt and Badger
// mostly are: binary.BigEndian.Uint64 reads it, and Put may set it. Errors: ErrNotCounter if the value has another length, and oribi.ErrOverflow, both with
// oribi.ErrRow; the errors of Put.
func (b *Bucket) Add(ctx context.Context, key []byte, delta int64, opts ...oribi.CommitOption) (int64, error) {
	batch := b.db.batch()
	defer b.db.keep(batch)
	batch.Upsert(b.t, increment(key, delta))
	if _, err := batch.Commit(ctx, opts...); err != nil {
		return 0, err
	}
	value := batch.Results()[0].Value.([]byte)
	return int64(binary.BigEndian.Uint64(value)), nil
}

func increment(key []byte, delta int64) oribi.Row {
	return oribi.Row{"key": notNil(key), "value": bind.CounterOf(delta)}
}

// Add adds delta to the counter of a key when the batch is committed, as Bucket.Add does. If the value is no
// counter, or the sum is out of range, Commit changes nothing.
func (b *Batch) Add(bucket *Bucket, key []byte, delta int64) {
	b.rows.Upsert(bucket.t, increment(key, delta))
}

// Add adds delta to the counter of a key when the transaction is committed, as Bucket.Add does. The
// transaction has not read the key, so other increments are no conflicts; a Get of the key reads it, and
// returns the sum. Errors: the errors of Put. If the value is no counter, or the sum is out of range, Commit
// or Get returns the error.
func (b TxBucket) Add(key []byte, delta int64) error {
	if err := b.writable(); err != nil {
		return err
	}
	return b.tx.rows.Upsert(b.t, increment(key, delta))
}
