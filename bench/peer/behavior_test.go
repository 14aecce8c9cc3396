package peer_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	bolt "go.etcd.io/bbolt"

	"github.com/oribi-db/oribi/internal/kvtest"
	"github.com/oribi-db/oribi/internal/must"
)

// The tests of package kv's behavior pass with the stores whose documentation they come from.

func TestBehaviorOfBbolt(t *testing.T) {
	dirs := map[*testing.T]string{}
	kvtest.Run(t, kvtest.Subject{Rand: rand.New(rand.NewPCG(1, 2)), Open: func(t *testing.T) kvtest.Store {
		// Without a large mapping, a write next to an open transaction waits for it to grow.
		db, err := bolt.Open(filepath.Join(dirOf(t, dirs), "db"), 0o600,
			&bolt.Options{NoSync: true, InitialMmapSize: 1 << 20})
		if err == nil {
			err = db.Update(func(tx *bolt.Tx) error {
				_, err := tx.CreateBucketIfNotExists([]byte("test"))
				return err
			})
		}
		must.Do(t, err)
		return boltStore{db}
	}})
}

// dirOf returns the directory of a test, the same each time.
func dirOf(t *testing.T, dirs map[*testing.T]string) string {
	if dirs[t] == "" {
		dirs[t] = t.TempDir()
	}
	return dirs[t]
}

type boltStore struct{ *bolt.DB }

func (s boltStore) Begin(writable bool) (kvtest.Tx, error) {
	tx, err := s.DB.Begin(writable)
	return newBoltTx(tx), err
}

func (s boltStore) Update(fn func(kvtest.Tx) error) error {
	return s.DB.Update(func(tx *bolt.Tx) error { return fn(newBoltTx(tx)) })
}

func (s boltStore) View(fn func(kvtest.Tx) error) error {
	return s.DB.View(func(tx *bolt.Tx) error { return fn(newBoltTx(tx)) })
}

type boltTx struct {
	*bolt.Tx
	bucket *bolt.Bucket
}

func newBoltTx(tx *bolt.Tx) boltTx {
	if tx == nil {
		return boltTx{}
	}
	return boltTx{tx, tx.Bucket([]byte("test"))}
}

func (tx boltTx) Get(key []byte) ([]byte, bool, error) {
	value := tx.bucket.Get(key)
	return value, value != nil, nil
}

// Put copies the value, which must stay the same until the transaction ends.
func (tx boltTx) Put(key, value []byte) error { return tx.bucket.Put(key, bytes.Clone(value)) }
func (tx boltTx) Delete(key []byte) error     { return tx.bucket.Delete(key) }
func (tx boltTx) Rollback()                   { tx.Tx.Rollback() }

func (tx boltTx) Scan(r kvtest.Range, fn func(key, value []byte) bool) error {
	c := tx.bucket.Cursor()
	key, value := c.Seek([]byte(max(r.From, r.Prefix)))
	next := c.Next
	if r.Descending {
		key, value = c.Last()
		next = c.Prev
	}
	for ; key != nil; key, value = next() {
		if string(key) < r.From || r.To != "" && string(key) >= r.To || !bytes.HasPrefix(key, []byte(r.Prefix)) {
			continue
		}
		if r.KeysOnly {
			value = nil
		}
		if !fn(key, value) {
			return nil
		}
	}
	return nil
}

func TestBehaviorOfBadger(t *testing.T) {
	dirs := map[*testing.T]string{}
	kvtest.Run(t, kvtest.Subject{Conflict: badger.ErrConflict, Rand: rand.New(rand.NewPCG(1, 2)),
		Open: func(t *testing.T) kvtest.Store {
			// Small tables: Badger allocates their memory at once.
			db := must.Get(badger.Open(badger.DefaultOptions(dirOf(t,
				dirs)).WithLogger(
				nil).WithMetricsEnabled(
				false).WithMemTableSize(4 << 20).WithValueLogFileSize(1 << 20).WithValueThreshold(64 << 10)))(t)
			return badgerStore{db}
		}})
}

type badgerStore struct{ *badger.DB }

func (s badgerStore) Begin(writable bool) (kvtest.Tx, error) {
	return badgerTx{s.DB.NewTransaction(writable)}, nil
}

func (s badgerStore) Update(fn func(kvtest.Tx) error) error {
	return s.DB.Update(func(tx *badger.Txn) error { return fn(badgerTx{tx}) })
}

func (s badgerStore) View(fn func(kvtest.Tx) error) error {
	return s.DB.View(func(tx *badger.Txn) error { return fn(badgerTx{tx}) })
}

type badgerTx struct{ *badger.Txn }

func (tx badgerTx) Rollback() { tx.Discard() }

func (tx badgerTx) Get(key []byte) ([]byte, bool, error) {
	item, err := tx.Txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	value, err := item.ValueCopy(nil)
	if value == nil {
		value = []byte{}
	}
	return value, err == nil, err
}

// Put copies the pair, which must stay the same until the transaction ends.
func (tx badgerTx) Put(key, value []byte) error {
	return tx.Set(bytes.Clone(key), bytes.Clone(value))
}

func (tx badgerTx) Delete(key []byte) error { return tx.Txn.Delete(bytes.Clone(key)) }

func (tx badgerTx) Scan(r kvtest.Range, fn func(key, value []byte) bool) error {
	o := badger.DefaultIteratorOptions
	o.Reverse, o.PrefetchValues = r.Descending, !r.KeysOnly
	it := tx.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		key := it.Item().KeyCopy(nil)
		if string(key) < r.From || r.To != "" && string(key) >= r.To || !bytes.HasPrefix(key, []byte(r.Prefix)) {
			continue
		}
		var value []byte
		if !r.KeysOnly {
			var err error
			if value, err = it.Item().ValueCopy([]byte{}); err != nil {
				return err
			}
		}
		if !fn(key, value) {
			return nil
		}
	}
	return nil
}
