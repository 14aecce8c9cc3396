package cfile

import (
	"bytes"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/internal/keyheads"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// The search by heads finds the same key as a linear search, even if many keys have the same head.
func TestFindAgreesWithLinearSearch(t *testing.T) {
	rng := seedtest.Rand(t)
	r := &Reader{src: new(block.Memory)}
	random := func(prefix, length int) []byte {
		b := bytes.Repeat([]byte{'p'}, prefix)
		for range rng.IntN(length + 1) {
			b = append(b, "ab\x00\xff"[rng.IntN(4)])
		}
		return b
	}
	for range 2000 {
		x, prefix, length := new(valueIndex), rng.IntN(12), 1+rng.IntN(12)
		keys := make([][]byte, 1+rng.IntN([]int{40, 400}[rng.IntN(2)]))
		for i := range keys {
			keys[i] = random(prefix, length)
		}
		slices.SortFunc(keys, bytes.Compare)
		keys[0] = keys[0][:rng.IntN(len(keys[0])+1)] // the first one is cut
		for _, key := range keys {
			x.blocks, x.keys = append(x.blocks, BlockPointer{}), append(x.keys, key...)
			x.ends = append(x.ends, uint32(len(x.keys)))
		}
		x.heads = keyheads.Make(len(keys), x.held)
		var b nodeBuilder
		for _, key := range keys {
			b.add(key, BlockPointer{})
		}
		n := must.Get(parseNode(must.Get(b.finish(nil, false))(t)))(t)
		must.Do(t, n.prepare())
		for range 20 {
			probe := random(max(0, prefix-rng.IntN(2)*rng.IntN(3)), length)
			want := -1
			for i, key := range keys {
				if bytes.Compare(key, probe) <= 0 {
					want = i
				}
			}
			must.Equal(t, must.Get(r.find(x, probe))(t), want, probe, keys)
			must.Equal(t, n.search(probe), want, probe, keys)
		}
	}
}
