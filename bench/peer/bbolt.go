package peer

import (
	"path/filepath"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// Bbolt is bbolt with one bucket. It has no cache. If writes are not synced, its file is synced
// when it is closed.
var Bbolt = kvDriver("bbolt", Load|Sorted|Write|Point|Query|KV|Pairs|Shared, openBbolt)

var boltBucket = []byte("rows")

type boltKV struct {
	db      *bolt.DB
	sync    bool
	writing atomic.Int32
}

func openBbolt(dir string, sync bool) (kv, error) {
	db, err := bolt.Open(filepath.Join(dir, "bbolt.db"), 0o600, &bolt.Options{NoSync: !sync})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, err
	}
	return &boltKV{db: db, sync: sync}, nil
}

func (b *boltKV) Close() error {
	if err := b.db.Sync(); err != nil {
		b.db.Close()
		return err
	}
	return b.db.Close()
}

// put uses a transaction. If each write is synced, the transaction is shared with other writing
// goroutines by Batch, which waits for more of them.
func (b *boltKV) put(keys, values [][]byte) error {
	defer b.writing.Add(-1)
	update := b.db.Update
	if b.writing.Add(1) > 1 && b.sync {
		update = b.db.Batch
	}
	return update(func(tx *bolt.Tx) error {
		rows := tx.Bucket(boltBucket)
		for i := range keys {
			if err := rows.Put(keys[i], values[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *boltKV) get(key []byte, use func(value []byte) error) (found bool, err error) {
	err = b.db.View(func(tx *bolt.Tx) error {
		value := tx.Bucket(boltBucket).Get(key)
		if value == nil {
			return nil
		}
		found = true
		return use(value)
	})
	return found, err
}

func (b *boltKV) scan(from []byte, _ int, use func(key, value []byte) (bool, error)) error {
	return b.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket(boltBucket).Cursor()
		for key, value := c.Seek(from); key != nil; key, value = c.Next() {
			if more, err := use(key, value); !more || err != nil {
				return err
			}
		}
		return nil
	})
}

// finishWork only syncs: the tree needs no background work.
func (b *boltKV) finishWork() error { return b.db.Sync() }
