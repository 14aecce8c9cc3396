package kvcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/kv"
	"github.com/oribi-db/oribi/vfs"
)

// somePairs returns pairs whose keys ascend from first, the empty one for 0, with a disorder or a
// repetition somewhere, or without.
func somePairs(r *rand.Rand, first int) (list []kv.Pair) {
	for i := range 1 + r.IntN(200) {
		key := ""
		if k := first + i; k > 0 {
			key = fmt.Sprintf("%04d", k)
		}
		list = append(list, kv.Pair{Key: []byte(key), Value: fmt.Append(nil, r.IntN(10))})
	}
	switch at := r.IntN(len(list)); r.IntN(4) {
	case 0:
		slices.Reverse(list[at:])
	case 1:
		list = append(list, list[at])
		list[len(list)-1].Value = []byte("again")
	case 2:
		list = slices.Insert(list, at, list[at])
	}
	return list
}

// Loads with and without ingests, some of which end with an error, leave what a map has after the
// number of pairs that they return.
func TestLoadsOfPairs(t *testing.T) {
	r := seedtest.Rand(t)
	ctx := context.Background()
	ingested := 0
	errBad := errors.New("bad")
	for range seedtest.Needed(60, 15) {
		db := must.Get(kv.Open("/kv", &oribi.Options{FS: vfs.NewMem(), Manual: true}))(t)
		b := must.Get(db.CreateBucketIfNotExists("b"))(t)
		want := map[string]string{}
		for range 3 {
			list := somePairs(r, r.IntN(300))
			bad := -1 // index of an error
			if r.IntN(3) == 0 {
				bad = r.IntN(len(list))
			}
			l := pairLoader{db: db, b: b, count: func(int64) {},
				limits: pairLimits{least: r.IntN(5000), most: 1 + r.IntN(10_000)}}
			rows, err := l.load(ctx, func(yield func(kv.Pair, error) bool) {
				var p kv.Pair // reused
				for i := range list {
					p.Key, p.Value = append(p.Key[:0], list[i].Key...), append(p.Value[:0], list[i].Value...)
					if i == bad {
						yield(kv.Pair{}, errBad)
						return
					}
					if !yield(p, nil) {
						return
					}
				}
			})
			if bad >= 0 && (!errors.Is(err, errBad) || rows > int64(bad)) ||
				bad < 0 && (err != nil || rows != int64(len(list))) {
				t.Fatalf("%d rows of %d, with a bad one at %d: %v", rows, len(list), bad, err)
			}
			for _, p := range list[:rows] {
				want[string(p.Key)] = string(p.Value)
			}
		}
		got := map[string]string{}
		for p, err := range b.Scan(ctx) {
			must.Do(t, err)
			got[string(p.Key)] = string(p.Value)
		}
		must.Equal(t, got, want)
		stats := must.Get(b.Table().Stats(false))(t)
		ingested += stats.RowSets
		db.Close()
	}
	if ingested == 0 {
		t.Error("nothing was ingested")
	}
}
