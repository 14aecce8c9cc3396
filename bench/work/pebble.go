package work

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"github.com/oribi-db/oribi/bench/harness"
	"github.com/oribi-db/oribi/bench/inputs"
)

// openPebble opens a database with Pebble's defaults, but a cache as large as the store's memory limit.
func openPebble(dir string, readOnly bool) (*pebble.DB, error) {
	return pebble.Open(dir, &pebble.Options{CacheSize: storeMemory, ReadOnly: readOnly, Logger: quiet{}})
}

// quiet drops messages.
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
		key, value = appendKey(key[:0], &items[i]), appendValue(value[:0], &items[i])
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}

// loadPebble writes all of lineitem's input.
func loadPebble(env *harness.Env, db *pebble.DB) error {
	return EachChunk(env, batchRows, func(items []inputs.Item) error { return putItems(db, items) })
}

// preparePebble makes a database of lineitem, compacted.
func preparePebble(env *harness.Env) error {
	db, err := openPebble(env.Path(storeDir), false)
	if err != nil {
		return err
	}
	if err = loadPebble(env, db); err == nil {
		if err = db.Flush(); err == nil {
			err = db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
		}
	}
	return closeAll(err, db)
}

// checkPebble is the checksum of a database's keys and values.
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
