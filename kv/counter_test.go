package kv

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/vfs"
)

func TestAddCountsEachCallOnce(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	db := must.Get(Open("/add", &oribi.Options{FS: vfs.NewMem(), Clock: mvcc.NewHybridClock(func() time.Time { return now })}))(t)
	defer db.Close()
	b := must.Get(db.CreateBucketIfNotExists("counters"))(t)
	key := []byte("hits")
	must.Equal(t, must.Get(b.Add(ctx, key, 258))(t), 258)
	must.Equal(t, must.Get(b.Get(ctx, key))(t), []byte{0, 0, 0, 0, 0, 0, 1, 2})
	must.Equal(t, must.Get(b.Add(ctx, key, -259))(t), -1)

	const goroutines, rounds = 8, 50
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range rounds {
				if _, err := b.Add(ctx, key, 1, oribi.NoSync); err != nil {
					t.Error(err)
				}
				err := db.Update(ctx, func(tx *Tx) error { return tx.Bucket("counters").Add(key, 1) }, oribi.NoSync)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	batch := db.NewBatch()
	batch.Add(b, key, 10)
	batch.Add(b, key, 20)
	must.Get(batch.Commit(ctx))(t)
	want := int64(-1 + 2*goroutines*rounds + 30)
	must.Equal(t, must.Get(b.Add(ctx, key, 0))(t), want)
	must.Do(t, db.Update(ctx, func(tx *Tx) error {
		in := tx.Bucket("counters")
		must.Do(t, in.Add(key, 5))
		must.Equal(t, int64(binary.BigEndian.Uint64(must.Get(in.Get(key))(t))), want+5)
		return nil
	}))

	// The time at which a key expires stays; then the counter begins again.
	must.Get(b.PutTTL(ctx, []byte("ttl"), binary.BigEndian.AppendUint64(nil, 7), time.Hour))(t)
	expires := must.Get(b.ExpiresAt(ctx, []byte("ttl")))(t)
	must.Equal(t, must.Get(b.Add(ctx, []byte("ttl"), 1))(t), 8)
	must.Equal(t, must.Get(b.ExpiresAt(ctx, []byte("ttl")))(t), expires)
	now = now.Add(2 * time.Hour)
	must.Equal(t, must.Get(b.Add(ctx, []byte("ttl"), 1))(t), 1)
	must.Equal(t, must.Get(b.ExpiresAt(ctx, []byte("ttl")))(t), time.Time{})

	// What is no counter stays as it is.
	for _, value := range [][]byte{{}, []byte("12"), []byte("123456789")} {
		must.Get(b.Put(ctx, key, value))(t)
		must.Fail(t, must.Err(b.Add(ctx, key, 1)), ErrNotCounter)
		must.Equal(t, must.Get(b.Get(ctx, key))(t), value)
	}
	must.Get(b.Put(ctx, key, binary.BigEndian.AppendUint64(nil, math.MaxInt64)))(t)
	err := must.Err(b.Add(ctx, key, 1))
	must.Fail(t, err, oribi.ErrOverflow)
	must.Contain(t, err.Error(), `table "counters" key "hits": column "value": 9223372036854775807 + 1 is out of range`)
}
