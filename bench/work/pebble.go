package work

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// openPebble opens a database with Pebble's defaults and a cache as large as the store's memory
// limit.
func openPebble(dir string, readOnly bool) (*pebble.DB, error) {
	return openPebbleWith(dir, readOnly, storeMemory)
}

// openPebbleWith is openPebble with a cache of the given bytes.
func openPebbleWith(dir string, readOnly bool, cache int64) (*pebble.DB, error) {
	return pebble.Open(dir, &pebble.Options{CacheSize: cache, ReadOnly: readOnly, Logger: quiet{}})
}

// quiet discards log messages.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	pebble.DefaultLogger.Fatalf(format, args...)
}

// putItems writes rows as one batch.
func putItems(db *pebble.DB, items []inputs.Item) error {
	b := db.NewBatch()
	defer b.Close()
	var key, value []byte
	for i := range items {
		key, value = items[i].AppendKey(key[:0]), items[i].AppendValue(value[:0])
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}

// loadPebble writes all rows of lineitem's input.
func loadPebble(env *harness.Env, db *pebble.DB) error {
	return EachChunk(env, batchRows, func(items []inputs.Item) error { return putItems(db, items) })
}

// checkPebble returns the checksum of a database's keys and values.
func checkPebble(db *pebble.DB) (string, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return "", err
	}
	var sum checksum
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			it.Close()
			return "", err
		}
		sum.add(it.Key(), value)
	}
	return sum.String(), it.Close()
}
