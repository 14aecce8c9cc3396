package lab

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/seedtest"
)

// randomSets returns rowsets of random keys, ordered by them.
func randomSets(r *rand.Rand, n int, keys int64) (sets []*simSet) {
	for i := range n {
		a, b := r.Int64N(keys), r.Int64N(keys)
		sets = append(sets, &simSet{id: uint64(i + 1), min: keyOf(min(a, b)),
			max: keyOf(max(a, b)), live: r.Int64N(50)})
	}
	slices.SortFunc(sets, byKeys)
	return sets
}

// drawn returns how often each rowset over a key is drawn, of so many draws at equal distances.
func drawn(x *simIndex, key int64, draws int) map[uint64]float64 {
	leaf, total := x.leaf(key)+len(x.firsts), 0.0
	for i := leaf; i > 0; i /= 2 {
		_, sums := x.node(i)
		total += last(sums)
	}
	for _, set := range x.newer {
		total += set.weightOver(key)
	}
	counts := map[uint64]float64{}
	for i := range draws {
		if set := x.draw(leaf, key, (float64(i)+0.5)*total/float64(draws)); set != nil && keyFrom(set.max) >= key {
			counts[set.id]++
		}
	}
	return counts
}

// Each rowset over a key is drawn as often as it has rows for each key, whether it is in the tree
// or newer.
func TestIndexDrawsByWeight(t *testing.T) {
	r := seedtest.Rand(t)
	const n, keys, draws = 5 * perNewer, 1000, 20_000
	sets := randomSets(r, n, keys)
	var old, newer []*simSet
	for i, set := range sets {
		if i%perNewer == 7 {
			newer = append(newer, set)
		} else {
			old = append(old, set)
		}
	}
	var x simIndex
	x.build(sets[:9]) // its memory is used again
	x.build(old)
	if !x.add(newer[:4]) || x.add(newer[3:]) || len(x.newer) != 4 {
		t.Fatalf("%d rowsets next to a tree of %d", len(x.newer), len(old))
	}
	over := append(old, newer[:4]...)
	for range 50 {
		key := r.Int64N(keys)
		counts, sum := drawn(&x, key, draws), 0.0
		for _, set := range over {
			sum += set.weightOver(key)
		}
		hits := 0.0
		for _, n := range counts {
			hits += n
		}
		for _, set := range over {
			if want := set.weightOver(key) / sum * hits; math.Abs(counts[set.id]-want) > 3 {
				t.Fatalf("key %d: rowset %d is drawn %v times, want %.1f", key, set.id, counts[set.id], want)
			}
		}
	}
}
