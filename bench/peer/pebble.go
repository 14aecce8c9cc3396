package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/cockroachkvs"
	"github.com/cockroachdb/pebble/v2/sstable"
)

// Pebble is Pebble with its defaults and a cache of CacheBytes.
var Pebble = kvDriver("pebble", Load|Sorted|Write|Point|Query|KV|Pairs|Shared, func(dir string, sync bool) (kv, error) {
	return openPebble(dir, sync)
})

// PebbleVersions is Pebble with CockroachDB's keys: each write adds a version, whose key includes a
// timestamp.
var PebbleVersions = kvDriver("pebble-versions", Load|Sorted|Write|Point|Query|KV|Shared,
	func(dir string, sync bool) (kv, error) {
		v, err := OpenVersions(dir, sync)
		if err != nil {
			return nil, err
		}
		return v, nil
	})

// kvDriver returns a driver for a key-value store.
func kvDriver(name string, can Can, open func(dir string, sync bool) (kv, error)) Driver {
	return Driver{Name: name, Can: can,
		Lineitem: func(dir string) (Lineitem, error) { return newKVLineitem(open(dir, false)) },
		Records:  func(dir string, sync bool) (Records, error) { return newKVRecords(open(dir, sync)) }}
}

type pebbleKV struct {
	db    *pebble.DB
	write *pebble.WriteOptions
}

// quiet discards log messages.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

func writeOptions(sync bool) *pebble.WriteOptions {
	if sync {
		return pebble.Sync
	}
	return pebble.NoSync
}

func openPebble(dir string, sync bool) (kv, error) {
	db, err := pebble.Open(dir, &pebble.Options{CacheSize: CacheBytes, Logger: quiet{}})
	if err != nil {
		return nil, err
	}
	return &pebbleKV{db, writeOptions(sync)}, nil
}

// Close flushes first: Pebble's own Close leaves the unsynced end of its log in the page cache.
func (p *pebbleKV) Close() error { return closePebble(p.db) }

func closePebble(db *pebble.DB) error {
	if err := db.Flush(); err != nil {
		db.Close()
		return err
	}
	return db.Close()
}

func (p *pebbleKV) put(keys, values [][]byte) error {
	b := p.db.NewBatch()
	defer b.Close()
	for i := range keys {
		if err := b.Set(keys[i], values[i], nil); err != nil {
			return err
		}
	}
	return b.Commit(p.write)
}

func (p *pebbleKV) get(key []byte, use func(value []byte) error) (bool, error) {
	value, closer, err := p.db.Get(key)
	if err == pebble.ErrNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closer.Close()
	return true, use(value)
}

func (p *pebbleKV) scan(from []byte, _ int, use func(key, value []byte) (bool, error)) error {
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := use(it.Key(), value); !more || err != nil {
			return err
		}
	}
	return it.Error()
}

func (p *pebbleKV) finishWork() error { return compactPebble(p.db) }

func compactPebble(db *pebble.DB) error {
	if err := db.Flush(); err != nil {
		return err
	}
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	defer it.Close()
	if !it.First() {
		return it.Error()
	}
	first := append([]byte(nil), it.Key()...)
	it.Last()
	last := append([]byte(nil), it.Key()...)
	if bytes.Equal(first, last) {
		return it.Error()
	}
	return db.Compact(context.Background(), first, last, false)
}

// Versions is a database of versioned keys.
type Versions struct {
	db    *pebble.DB
	write *pebble.WriteOptions
	now   atomic.Uint64 // the newest assigned timestamp
}

// OpenVersions opens a database of versioned keys. New timestamps are above all existing ones.
func OpenVersions(dir string, sync bool) (*Versions, error) {
	db, err := pebble.Open(dir, &pebble.Options{CacheSize: CacheBytes, Logger: quiet{},
		Comparer:  &cockroachkvs.Comparer,
		KeySchema: cockroachkvs.KeySchema.Name, KeySchemas: sstable.MakeKeySchemas(&cockroachkvs.KeySchema),
		FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		return nil, err
	}
	v := &Versions{db: db, write: writeOptions(sync)}
	v.now.Store(firstTime)
	value, closer, err := db.Get(clockKey())
	if err == nil {
		if len(value) == 8 {
			v.now.Store(binary.BigEndian.Uint64(value))
		}
		closer.Close()
	} else if err != pebble.ErrNotFound {
		db.Close()
		return nil, err
	}
	return v, nil
}

// firstTime is below all assigned timestamps.
const firstTime = 1000

// clockKey is the row that contains the newest timestamp while the database is closed; it sorts
// before all others.
func clockKey() []byte { return cockroachkvs.EncodeMVCCKey(nil, []byte{0}, 0, 0) }

// firstKey is above clockKey and at or below every other key.
var firstKey = []byte{0, 0}

// Close stores the clock.
func (v *Versions) Close() error {
	if err := v.db.Set(clockKey(), binary.BigEndian.AppendUint64(nil, v.now.Load()), pebble.NoSync); err != nil {
		v.db.Close()
		return err
	}
	return closePebble(v.db)
}

// Now returns the newest timestamp.
func (v *Versions) Now() uint64 { return v.now.Load() }

// Put writes pairs in one batch, at one timestamp.
func (v *Versions) Put(keys, values [][]byte) error { return v.put(keys, values) }

// ScanAt calls use with the newest version of each key at or below t.
func (v *Versions) ScanAt(from []byte, t uint64, use func(key, value []byte) (bool, error)) error {
	if from == nil {
		from = firstKey
	}
	it, err := v.db.NewIter(&pebble.IterOptions{LowerBound: cockroachkvs.EncodeMVCCKey(nil, from, 0, 0)})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; {
		key, version, _ := cockroachkvs.DecodeEngineKey(it.Key())
		wall := uint64(0)
		if len(version) >= 8 {
			wall = binary.BigEndian.Uint64(version)
		}
		if wall > t {
			ok = it.Next()
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if more, err := use(key, value); !more || err != nil {
			return err
		}
		ok = it.NextPrefix()
	}
	return it.Error()
}

// FinishWork compacts everything.
func (v *Versions) FinishWork() error { return compactPebble(v.db) }

func (v *Versions) finishWork() error { return v.FinishWork() }

func (v *Versions) put(keys, values [][]byte) error {
	b := v.db.NewBatch()
	defer b.Close()
	t := v.now.Add(1)
	var key []byte
	for i := range keys {
		key = cockroachkvs.EncodeMVCCKey(key[:0], keys[i], t, 0)
		if err := b.Set(key, values[i], nil); err != nil {
			return err
		}
	}
	return b.Commit(v.write)
}

// get seeks the newest version.
func (v *Versions) get(key []byte, use func(value []byte) error) (found bool, err error) {
	at := cockroachkvs.EncodeMVCCKey(nil, key, v.now.Load(), 0)
	it, err := v.db.NewIter(nil)
	if err != nil {
		return false, err
	}
	defer it.Close()
	if !it.SeekPrefixGE(at) {
		return false, it.Error()
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return false, err
	}
	return true, use(value)
}

func (v *Versions) scan(from []byte, _ int, use func(key, value []byte) (bool, error)) error {
	return v.ScanAt(from, v.now.Load(), use)
}
