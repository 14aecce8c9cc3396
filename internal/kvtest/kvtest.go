// Package kvtest tests what the documentation of bbolt and of Badger promises, against any ordered
// key-value store with transactions. Package kv runs it, and so do bbolt and Badger themselves, in
// the benchmarks: so a test here cannot expect what the originals do not do.
package kvtest

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
)

// Store is a store under test.
type Store interface {
	// Begin starts a transaction.
	Begin(writable bool) (Tx, error)
	// Update runs fn in a transaction and commits it, unless fn returns an error or panics.
	Update(fn func(Tx) error) error
	// View runs fn in a transaction that only reads.
	View(fn func(Tx) error) error
	Close() error
}

// Tx is a transaction.
type Tx interface {
	Get(key []byte) (value []byte, found bool, err error)
	Put(key, value []byte) error
	Delete(key []byte) error
	// Scan calls fn with the pairs of a range, in order, until fn returns false.
	Scan(r Range, fn func(key, value []byte) bool) error
	Commit() error
	Rollback()
}

// Range has the bounds of a scan.
type Range struct {
	From, To   string // empty: no bound
	Prefix     string
	Descending bool
	KeysOnly   bool // the value that fn gets is nil
}

// Subject describes a store under test.
type Subject struct {
	// Open opens the store in the test's directory, the first time an empty one.
	Open func(t *testing.T) Store
	// EmptyKey reports whether the empty key is a key; otherwise it is refused.
	EmptyKey bool
	// Conflict is the error of a commit that a concurrent one has made impossible; nil if a
	// transaction that writes waits until the one before has ended.
	Conflict error
	// Rand chooses random operations.
	Rand *rand.Rand
}

// Run runs all tests.
func Run(t *testing.T, s Subject) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"values", testValues},
		{"deletes", testDeletes},
		{"empty key", testEmptyKey},
		{"update", testUpdate},
		{"view", testView},
		{"rollback", testRollback},
		{"ended", testEnded},
		{"own writes", testOwnWrites},
		{"snapshots", testSnapshots},
		{"order", testOrder},
		{"ranges", testRanges},
		{"reopen", testReopen},
		{"conflicts", testConflicts},
		{"concurrent increments", testIncrements},
		{"random operations", testRandomOperations},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// open opens a new store and closes it at the end of the test.
func (s Subject) open(t *testing.T) Store {
	t.Helper()
	store := s.Open(t)
	t.Cleanup(func() {
		must.Do(t, store.Close())
	})
	return store
}

// put commits pairs: key, value, key, value …
func put(t *testing.T, s Store, pairs ...string) {
	t.Helper()
	must.Do(t, s.Update(func(tx Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Put([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	}))
}

// get returns the value of a key, or "-" if the key does not exist.
func get(t *testing.T, tx Tx, key string) string {
	t.Helper()
	value, found, err := tx.Get([]byte(key))
	switch {
	case err != nil:
		t.Fatal(err)
	case !found:
		return "-"
	case value == nil:
		t.Errorf("the value of %q is nil", key)
	}
	return string(value)
}

// latest returns the value of a key in a new transaction.
func latest(t *testing.T, s Store, key string) (value string) {
	t.Helper()
	view(t, s, func(tx Tx) { value = get(t, tx, key) })
	return value
}

// view runs fn in a transaction that only reads.
func view(t *testing.T, s Store, fn func(Tx)) {
	t.Helper()
	must.Do(t, s.View(func(tx Tx) error { fn(tx); return nil }))
}

// scan returns the pairs of a range as "key=value", or "key" if only keys are read.
func scan(t *testing.T, tx Tx, r Range) (pairs []string) {
	t.Helper()
	must.Do(t, tx.Scan(r, func(key, value []byte) bool {
		if r.KeysOnly {
			if value != nil {
				t.Errorf("a scan of keys has the value %q", value)
			}
			pairs = append(pairs, string(key))
		} else {
			pairs = append(pairs, string(key)+"="+string(value))
		}
		return true
	}))
	return pairs
}

func begin(t *testing.T, s Store, writable bool) Tx {
	t.Helper()
	tx := must.Get(s.Begin(writable))(t)
	t.Cleanup(tx.Rollback)
	return tx
}

var errStop = errors.New("stop")
