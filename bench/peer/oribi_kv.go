package peer

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/oribi-db/oribi"
	oribikv "github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/schema"
)

// OribiKV is package kv with its defaults and one bucket.
var OribiKV = ours(kvDriver("oribi-kv", Pairs|Shared, openOribiKV))

// OribiKVRows is package kv with a bucket that has row files.
var OribiKVRows = ours(kvDriver("oribi-kv-rows", Pairs|Shared, func(dir string, sync bool) (kv, error) {
	return openOribiBucket(dir, sync, oribi.RowFile(schema.FullRowFile))
}))

// ours returns the driver of a package of the engine, which stores pairs only.
func ours(d Driver) Driver {
	d.Ours, d.Lineitem = true, nil
	return d
}

type oribiKV struct {
	db     *oribikv.DB
	bucket *oribikv.Bucket
	sync   bool
	heap   int64 // limit of the runtime before the store was opened
}

// heapLimit bounds the memory of the process, as Options.MemoryLimit recommends. A quarter of the
// store's limit is added for memory that the store does not count, and for garbage.
const heapLimit = CacheBytes / 4 * 5

func openOribiKV(dir string, sync bool) (kv, error) { return openOribiBucket(dir, sync) }

func openOribiBucket(dir string, sync bool, options ...oribi.TableOption) (kv, error) {
	heap := debug.SetMemoryLimit(heapLimit)
	db, err := oribikv.Open(dir, &oribi.Options{MemoryLimit: CacheBytes})
	if err != nil {
		debug.SetMemoryLimit(heap)
		return nil, err
	}
	b, err := db.CreateBucketIfNotExists("rows", options...)
	if err != nil {
		db.Close()
		debug.SetMemoryLimit(heap)
		return nil, err
	}
	return &oribiKV{db, b, sync, heap}, nil
}

func (o *oribiKV) Close() error {
	defer debug.SetMemoryLimit(o.heap)
	return o.db.Close()
}

func (o *oribiKV) put(keys, values [][]byte) error {
	ctx := context.Background()
	if len(keys) == 1 {
		if o.sync {
			_, err := o.bucket.Put(ctx, keys[0], values[0])
			return err
		}
		_, err := o.bucket.Put(ctx, keys[0], values[0], oribi.NoSync)
		return err
	}
	b := o.db.NewBatch()
	for i := range keys {
		b.Put(o.bucket, keys[i], values[i])
	}
	if o.sync {
		_, err := b.Commit(ctx)
		return err
	}
	_, err := b.Commit(ctx, oribi.NoSync)
	return err
}

func (o *oribiKV) get(key []byte, use func(value []byte) error) (found bool, err error) {
	value, err := o.bucket.Get(context.Background(), key)
	if errors.Is(err, oribikv.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, use(value)
}

func (o *oribiKV) scan(from []byte, most int, use func(key, value []byte) (bool, error)) error {
	opts := make([]oribi.ScanOption, 0, 2)
	if from != nil {
		opts = append(opts, oribi.From(from))
	}
	if most > 0 {
		opts = append(opts, oribi.Limit(int64(most)))
	}
	for p, err := range o.bucket.Scan(context.Background(), opts...) {
		if err != nil {
			return err
		}
		if more, err := use(p.Key, p.Value); !more || err != nil {
			return err
		}
	}
	return nil
}

func (o *oribiKV) finishWork() error { return o.bucket.Table().Compact(context.Background()) }
