package kv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/kvtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/vfs"
)

// subject is a store as package kvtest sees it.
type subject struct{ db *kv.DB }

// subjectTx is its bucket "test" in a transaction.
type subjectTx struct {
	*kv.Tx
	kv.TxBucket
}

func inBucket(fn func(kvtest.Tx) error) func(*kv.Tx) error {
	return func(tx *kv.Tx) error { return fn(subjectTx{tx, tx.Bucket("test")}) }
}

func (s subject) Begin(writable bool) (kvtest.Tx, error) {
	tx, err := s.db.Begin(context.Background(), writable)
	if err != nil {
		return nil, err
	}
	return subjectTx{tx, tx.Bucket("test")}, nil
}

func (s subject) Update(fn func(kvtest.Tx) error) error {
	return s.db.Update(context.Background(), inBucket(fn), oribi.NoSync)
}

func (s subject) View(fn func(kvtest.Tx) error) error {
	return s.db.View(context.Background(), inBucket(fn))
}

func (s subject) Close() error { return s.db.Close() }

func (tx subjectTx) Get(key []byte) ([]byte, bool, error) {
	value, err := tx.TxBucket.Get(key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, false, nil
	}
	return value, err == nil, err
}

func (tx subjectTx) Commit() error {
	_, err := tx.Tx.Commit(oribi.NoSync)
	return err
}

func (tx subjectTx) Scan(r kvtest.Range, fn func(key, value []byte) bool) error {
	opts := []oribi.RowsOption{oribi.From(r.From), oribi.Prefix([]byte(r.Prefix))}
	if r.To != "" {
		opts = append(opts, oribi.To([]byte(r.To)))
	}
	if r.Descending {
		opts = append(opts, oribi.Desc())
	}
	if r.KeysOnly {
		for key, err := range tx.Keys(opts...) {
			if err != nil || !fn(key, nil) {
				return err
			}
		}
		return nil
	}
	for p, err := range tx.TxBucket.Scan(opts...) {
		if err != nil || !fn(p.Key, p.Value) {
			return err
		}
	}
	return nil
}

func TestBehaviorOfKeyValueStores(t *testing.T) {
	stores := map[*testing.T]vfs.FS{}
	kvtest.Run(t, kvtest.Subject{
		EmptyKey: true,
		Conflict: kv.ErrConflict,
		Rand:     seedtest.Rand(t),
		Open: func(t *testing.T) kvtest.Store {
			if stores[t] == nil {
				stores[t] = vfs.NewMem()
			}
			db := must.Get(kv.Open("/kv", &oribi.Options{FS: stores[t]}))(t)
			must.Do(t, must.Err(db.CreateBucketIfNotExists("test")))
			return subject{db}
		},
	})
}
