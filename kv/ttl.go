package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// PutTTL sets the value of a key, as Put does. The key expires after ttl: as of then and later, it
// is absent, and no write is needed for that. A later Put of the key makes it last again, and a
// later PutTTL sets another time.
//
// The first PutTTL alters the table of the bucket so that its rows expire (oribi.SetExpires). From
// then on, reads and writes of the bucket take somewhat more time. ttl is rounded down to
// microseconds. Errors: an error for a ttl of less than a microsecond; the errors of Put and
// Table.Alter.
func (b *Bucket) PutTTL(
	ctx context.Context, key, value []byte, ttl time.Duration, opts ...oribi.CommitOption,
) (ts mvcc.Timestamp, err error) {
	if err := b.expire(ctx); err != nil {
		return 0, err
	}
	cells, err := b.cells(key, value, ttl)
	if err != nil {
		return 0, err
	}
	return b.write(ctx, oribi.OpUpsert, cells, opts)
}

// expire makes the keys of the bucket expire by its column, unless they do.
//
// A bucket begins without that: a table whose rows expire is slower, also where no row has a time.
// States from before the alteration do not change by it, and had no such keys.
func (b *Bucket) expire(ctx context.Context) error {
	if b.expires() {
		return nil
	}
	err := b.t.Alter(ctx, oribi.SetExpires(columns.Columns[expiresColumn].Name, 0))
	if err != nil && b.expires() {
		return nil // another goroutine has done it
	}
	return err
}

func (b *Bucket) expires() bool { return b.t.Properties().Expiry.Column != "" }

// cells returns the cells of a row that expires after ttl.
func (b *Bucket) cells(key, value []byte, ttl time.Duration) ([][]byte, error) {
	if ttl < time.Microsecond {
		return nil, fmt.Errorf("kv: a TTL of %v: want at least a microsecond", ttl)
	}
	now, err := b.db.store.Now()
	if err != nil {
		return nil, err
	}
	expires := binary.LittleEndian.AppendUint64(nil, uint64(now.Add(ttl).UnixMicro()))
	return [][]byte{notNil(key), notNil(value), expires}, nil
}

// PutTTL sets the value of a key that expires after ttl, as Bucket.PutTTL does. The ttl begins now.
// Errors: the errors of Bucket.PutTTL and Put.
func (b TxBucket) PutTTL(key, value []byte, ttl time.Duration) error {
	if err := b.writable(); err != nil {
		return err
	}
	bucket := Bucket{b.tx.db, b.t}
	if err := bucket.expire(b.tx.ctx); err != nil {
		return err
	}
	cells, err := bucket.cells(key, value, ttl)
	if err != nil {
		return err
	}
	return b.write(oribi.OpUpsert, cells)
}

// PutTTL sets the value of a key that expires after ttl, as Bucket.PutTTL does. The ttl begins now.
// A ttl of less than a microsecond makes Commit fail.
func (b *Batch) PutTTL(bucket *Bucket, key, value []byte, ttl time.Duration) {
	cells, err := bucket.cells(key, value, ttl)
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return
	}
	b.expiring = append(b.expiring, bucket)
	b.rows.Cells(oribi.OpUpsert, bucket.t, cells, nil)
}

// withoutExpiry returns the versions of a row except the deletes that say that it has expired.
func withoutExpiry(versions iter.Seq2[Version, error]) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		var deleted *Version // not yielded yet: the version before it decides
		for v, err := range versions {
			if deleted != nil {
				expired := err == nil && !v.Expires.IsZero() && mvcc.FromTime(v.Expires) == deleted.Timestamp
				if !expired && !yield(*deleted, nil) {
					return
				}
				deleted = nil
			}
			if err == nil && v.Deleted {
				deleted = &v
				continue
			}
			if !yield(v, err) {
				return
			}
		}
		if deleted != nil {
			yield(*deleted, nil)
		}
	}
}
