package kv

import (
	"context"
	"encoding/binary"
	"errors"
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
// The ttl is one of the store's clock, which never goes back: if the machine's clock was ahead and was
// set back by two hours, the store's stands almost still until the machine's has caught up, and keys
// last two hours longer. Bucket.ExpiresAt returns the time.
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
	return b.write(ctx, oribi.OpUpsert, cells, nil, opts)
}

// PutExpires sets the value of a key that expires at a time, rounded down to microseconds, as PutTTL does.
// A key whose time has passed is absent at once. Errors: an error for the zero Time; the errors of PutTTL.
func (b *Bucket) PutExpires(
	ctx context.Context, key, value []byte, at time.Time, opts ...oribi.CommitOption,
) (ts mvcc.Timestamp, err error) {
	if err := b.expire(ctx); err != nil {
		return 0, err
	}
	cells, err := expiring(key, value, at)
	if err != nil {
		return 0, err
	}
	return b.write(ctx, oribi.OpUpsert, cells, nil, opts)
}

// Touch makes a key expire after ttl from now on, and leaves its value. Errors: ErrNotFound if there is
// no such key; the errors of PutTTL.
func (b *Bucket) Touch(
	ctx context.Context, key []byte, ttl time.Duration, opts ...oribi.CommitOption,
) (ts mvcc.Timestamp, err error) {
	if err := b.expire(ctx); err != nil {
		return 0, err
	}
	cells, err := b.cells(key, nil, ttl)
	if err != nil {
		return 0, err
	}
	return b.write(ctx, oribi.OpUpdate, cells, touched, opts)
}

// touched are the columns that Touch sets, besides the key.
var touched = []bool{keyColumn: true, expiresColumn: true}

// ExpiresAt returns when a key expires, the zero Time if never. Errors: ErrNotFound if there is no such
// key, also if it has expired; the errors of Get.
func (b *Bucket) ExpiresAt(ctx context.Context, key []byte, opts ...oribi.ReadOption) (time.Time, error) {
	var few [columnCount][]byte
	cells, err := b.t.AppendCells(ctx, few[:0], notNil(key), opts...)
	if err != nil {
		return time.Time{}, err
	}
	return expiryOf(cells), nil
}

// expiryOf returns when a row expires.
func expiryOf(cells [][]byte) time.Time {
	if cell := cells[expiresColumn]; cell != nil {
		return time.UnixMicro(int64(binary.LittleEndian.Uint64(cell))).UTC()
	}
	return time.Time{}
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
	return expiring(key, value, now.Add(ttl))
}

// expiring returns the cells of a row that expires at a time.
func expiring(key, value []byte, at time.Time) ([][]byte, error) {
	if at.IsZero() {
		return nil, errors.New("kv: a key that expires at the zero time: want a time")
	}
	expires := binary.LittleEndian.AppendUint64(nil, uint64(at.UnixMicro()))
	return [][]byte{notNil(key), notNil(value), expires}, nil
}

// PutTTL sets the value of a key that expires after ttl, as Bucket.PutTTL does. The ttl begins now.
// Errors: the errors of Bucket.PutTTL and Put.
func (b TxBucket) PutTTL(key, value []byte, ttl time.Duration) error {
	return b.putExpiring(oribi.OpUpsert, nil, func(bucket *Bucket) ([][]byte, error) { return bucket.cells(key, value, ttl) })
}

// PutExpires sets the value of a key that expires at a time, as Bucket.PutExpires does. Errors: the
// errors of Bucket.PutExpires and Put.
func (b TxBucket) PutExpires(key, value []byte, at time.Time) error {
	return b.putExpiring(oribi.OpUpsert, nil, func(*Bucket) ([][]byte, error) { return expiring(key, value, at) })
}

// Touch makes a key expire after ttl from now on, as Bucket.Touch does. The transaction has then read the
// key. Errors: the errors of Bucket.Touch and Put.
func (b TxBucket) Touch(key []byte, ttl time.Duration) error {
	return b.putExpiring(oribi.OpUpdate, touched, func(bucket *Bucket) ([][]byte, error) { return bucket.cells(key, nil, ttl) })
}

// putExpiring writes the row that cells returns.
func (b TxBucket) putExpiring(op oribi.Op, set []bool, cells func(*Bucket) ([][]byte, error)) error {
	if err := b.writable(); err != nil {
		return err
	}
	bucket := Bucket{b.tx.db, b.t}
	if err := bucket.expire(b.tx.ctx); err != nil {
		return err
	}
	row, err := cells(&bucket)
	if err != nil {
		return err
	}
	return b.tx.rows.Cells(op, b.t, row, set)
}

// ExpiresAt returns when a key expires, as Bucket.ExpiresAt does. Errors: the errors of Get.
func (b TxBucket) ExpiresAt(key []byte) (time.Time, error) {
	if err := b.ready(); err != nil {
		return time.Time{}, err
	}
	if b.tx.rows == nil {
		bucket := Bucket{b.tx.db, b.t}
		return bucket.ExpiresAt(b.tx.ctx, key, b.tx.at)
	}
	_, cells, err := b.tx.rows.GetCells(b.t, notNil(key))
	if err != nil {
		return time.Time{}, err
	}
	return expiryOf(cells), nil
}

// PutTTL sets the value of a key that expires after ttl, as Bucket.PutTTL does. The ttl begins now.
// A ttl of less than a microsecond makes Commit fail.
func (b *Batch) PutTTL(bucket *Bucket, key, value []byte, ttl time.Duration) {
	cells, err := bucket.cells(key, value, ttl)
	b.putExpiring(oribi.OpUpsert, bucket, cells, nil, err)
}

// PutExpires sets the value of a key that expires at a time, as Bucket.PutExpires does. The zero Time
// makes Commit fail.
func (b *Batch) PutExpires(bucket *Bucket, key, value []byte, at time.Time) {
	cells, err := expiring(key, value, at)
	b.putExpiring(oribi.OpUpsert, bucket, cells, nil, err)
}

// Touch makes a key expire after ttl from now on, as Bucket.Touch does. A ttl of less than a microsecond
// makes Commit fail, and so does a key that does not exist, with ErrNotFound.
func (b *Batch) Touch(bucket *Bucket, key []byte, ttl time.Duration) {
	cells, err := bucket.cells(key, nil, ttl)
	b.putExpiring(oribi.OpUpdate, bucket, cells, touched, err)
}

// putExpiring adds a row that expires, unless err is not nil.
func (b *Batch) putExpiring(op oribi.Op, bucket *Bucket, cells [][]byte, set []bool, err error) {
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return
	}
	b.expiring = append(b.expiring, bucket)
	b.rows.Cells(op, bucket.t, cells, set)
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
