package storetest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/rowpage"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
)

// With a cache that is always full, GetMany, Get, and short scans of rows in pages, which have changes,
// return what a map has. Keys are in runs with distances of their own.
func TestReadsBeyondTheCacheMatchTheModel(t *testing.T) {
	t.Cleanup(history.Usual)
	rowpage.Eager.Store(true)
	store.ScarceCache.Store(true)
	r, ctx := seedtest.Rand(t), context.Background()
	for _, typ := range []schema.Type{schema.Int64, schema.Int32, schema.Uint64} {
		t.Run(typ.String(), func(t *testing.T) {
			s := must.Get(oribi.Open("/s", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
			defer s.Close()
			columns := must.Get(schema.New([]schema.Column{{Name: "k", Type: typ}, {Name: "n", Type: schema.Int64},
				{Name: "word", Type: schema.String, Nullable: true}, {Name: "id", Type: schema.String}}, 1))(t)
			table := must.Get(s.CreateTable("t", columns))(t)
			model := map[int64]oribi.Row{}
			b := s.NewBatch()
			commit := func() {
				must.Get(b.Commit(ctx))(t)
				b.Reset()
			}
			value := func(k int64) any {
				switch typ {
				case schema.Int32:
					return int32(k)
				case schema.Uint64:
					return uint64(k)
				}
				return k
			}
			put := func(k int64) {
				row := oribi.Row{"k": value(k), "n": r.Int64(), "word": nil, "id": fmt.Sprintf("%040x", r.Uint64())}
				if r.IntN(3) > 0 {
					row["word"] = fmt.Sprint("kind ", r.IntN(5))
				}
				b.Upsert(table, row)
				model[k] = row
			}
			for range 3 { // rowsets that overlap
				for range 4 {
					k, step := int64(r.IntN(1<<20)), 1+r.Int64N(1000)
					if typ != schema.Uint64 && r.IntN(2) == 0 {
						k = -k
					}
					for range 300 {
						put(k)
						k += step
					}
				}
				commit()
				must.Do(t, table.Flush(ctx))
			}
			keys := slices.Sorted(maps.Keys(model))
			for range 100 { // changes, in memory
				put(keys[r.IntN(len(keys))])
				k := keys[r.IntN(len(keys))]
				if model[k] != nil {
					b.Delete(table, oribi.Row{"k": value(k)})
					delete(model, k)
				}
				commit()
			}
			keys = slices.Sorted(maps.Keys(model))
			for range 50 {
				var asked []any
				var want []oribi.Row
				for range 1 + r.IntN(80) {
					k := keys[r.IntN(len(keys))] + r.Int64N(3) - 1
					if k < 0 && typ == schema.Uint64 {
						k = 0
					}
					asked, want = append(asked, value(k)), append(want, model[k])
				}
				got := must.Get(table.GetMany(ctx, asked))(t)
				for i := range want {
					must.Equal(t, reflect.DeepEqual(got[i], want[i]), true, "GetMany", asked[i], got[i], want[i])
					must.Equal(t, must.Get(table.Has(ctx, asked[i]))(t), want[i] != nil, "Has", asked[i])
				}
				from, n := r.IntN(len(keys)), 1+r.IntN(200)
				to := min(from+n, len(keys))
				limited := table.Scan(ctx, oribi.From(value(keys[from])), oribi.Limit(int64(n)))
				for what, scan := range map[string]*oribi.Scan{"limit": limited,
					"to": table.Scan(ctx, oribi.From(value(keys[from])), oribi.To(value(keys[to-1])))} {
					at := from
					for row := range scan.Rows() {
						must.Equal(t, reflect.DeepEqual(row, model[keys[at]]), true, what, keys[at], row, model[keys[at]])
						at++
					}
					if what == "to" {
						at++ // which is exclusive
					}
					must.Equal(t, at, to, what, "rows from", keys[from])
				}
			}
		})
	}
}
