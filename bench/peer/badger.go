package peer

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

// Badger is Badger with its defaults and a block cache of CacheBytes, an eighth of which is for its
// indexes.
var Badger = kvDriver("badger", Load|Sorted|Write|Point|Query|KV|Pairs|Shared, openBadger)

type badgerKV struct{ db *badger.DB }

func openBadger(dir string, sync bool) (kv, error) {
	o := badger.DefaultOptions(
		dir).WithLogger(nil).WithSyncWrites(
		sync).WithBlockCacheSize(CacheBytes - CacheBytes/8).WithIndexCacheSize(CacheBytes / 8).
		WithMetricsEnabled(false)
	db, err := badger.Open(o)
	if err != nil {
		return nil, err
	}
	return &badgerKV{db}, nil
}

func (b *badgerKV) Close() error { return b.db.Close() }

// put writes the pairs as one write batch, or a single row as a transaction.
func (b *badgerKV) put(keys, values [][]byte) error {
	if len(keys) == 1 {
		return b.db.Update(func(tx *badger.Txn) error { return tx.Set(keys[0], values[0]) })
	}
	w := b.db.NewWriteBatch()
	defer w.Cancel()
	for i := range keys {
		// Badger keeps the slices until the batch is flushed, which happens before put returns.
		if err := w.Set(keys[i], values[i]); err != nil {
			return err
		}
	}
	return w.Flush()
}

func (b *badgerKV) get(key []byte, use func(value []byte) error) (found bool, err error) {
	err = b.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		found = true
		return item.Value(use)
	})
	return found, err
}

func (b *badgerKV) scan(from []byte, _ int, use func(key, value []byte) (bool, error)) error {
	return b.db.View(func(tx *badger.Txn) error {
		o := badger.DefaultIteratorOptions
		it := tx.NewIterator(o)
		defer it.Close()
		more := true
		for it.Seek(from); more && it.Valid(); it.Next() {
			item := it.Item()
			err := item.Value(func(value []byte) (err error) {
				more, err = use(item.Key(), value)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *badgerKV) finishWork() error { return b.db.Flatten(2) }
