package kv_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/kv"
)

// BenchmarkScan scans a bucket with 100-byte values, loaded in order, in both directions: without a
// transaction, in a writable transaction, in a read-only transaction, and in a transaction with its
// own writes all over the bucket.
func BenchmarkScan(b *testing.B) {
	const pairs = 50_000
	db := openMem(b, oribi.Options{})
	bucket := bucket(b, db, "b")
	key := func(i int) []byte { return fmt.Appendf(nil, "user/%08d", i) }
	must.Do(b, must.Err2(bucket.Load(ctx, func(yield func(kv.Pair, error) bool) {
		for i := range pairs {
			if !yield(kv.Pair{Key: key(i), Value: fmt.Appendf(nil, "%0100d", i*i)}, nil) {
				return
			}
		}
	})))
	begin := func(writable bool, puts int) *kv.Tx {
		tx, err := db.Begin(ctx, writable)
		for i := 0; i < puts && err == nil; i++ {
			err = tx.Bucket("b").Put(key(i*(pairs/puts)), []byte("own"))
		}
		must.Do(b, err)
		return tx
	}
	in := func(tx *kv.Tx) func(...oribi.RowsOption) iter.Seq2[kv.Pair, error] { return tx.Bucket("b").Scan }
	for _, s := range []struct {
		name string
		tx   *kv.Tx // nil: none
	}{{"none", nil}, {"writable", begin(true, 0)}, {"reading", begin(false, 0)}, {"changed", begin(true, 1000)}} {
		for _, direction := range []string{"forward", "backward"} {
			b.Run(fmt.Sprintf("tx=%s/direction=%s", s.name, direction), func(b *testing.B) {
				for b.Loop() {
					var opts []oribi.RowsOption
					if direction == "backward" {
						opts = append(opts, oribi.Desc())
					}
					var all iter.Seq2[kv.Pair, error]
					if s.tx != nil {
						all = in(s.tx)(opts...)
					} else if direction == "backward" {
						all = bucket.Scan(ctx, oribi.Desc())
					} else {
						all = bucket.Scan(ctx)
					}
					n := 0
					for p, err := range all {
						must.Do(b, err)
						n += len(p.Value) / 100
					}
					if n < pairs-1000 {
						b.Fatalf("%d pairs, want %d", n, pairs)
					}
				}
			})
		}
		if s.tx != nil {
			s.tx.Rollback()
		}
	}
}

func BenchmarkTxCursor(b *testing.B) {
	db := openMem(b, oribi.Options{})
	rows := bucket(b, db, "b")
	for i := range 32000 {
		put(b, rows, fmt.Sprintf("%08d", i), "12345678")
	}
	must.Do(b, db.Update(ctx, func(tx *kv.Tx) error {
		c := tx.Bucket("b").Cursor()
		b.ResetTimer()
		for range b.N {
			if !c.Next() {
				c.First()
			}
			if len(c.Key()) != 8 || len(c.Value()) != 8 {
				b.Fatal(c.Err())
			}
		}
		return nil
	}))
}
