package memrowset

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/keyenc"
)

// treeKey returns a key of which many have the same prefix.
func treeKey(r *rand.Rand, n int) []byte {
	key := binary.BigEndian.AppendUint32(nil, uint32(r.IntN(n)))
	if r.IntN(2) == 0 {
		key = append(binary.BigEndian.AppendUint64(nil, uint64(r.IntN(3))), key...)
	}
	return key
}

// checkTree compares a tree with the keys that it must have, in order: whole, and from some keys on.
func checkTree(t *testing.T, r *rand.Rand, m *MemRowSet, tr *tree, keys [][]byte) {
	t.Helper()
	if tr.len != len(keys) {
		t.Fatalf("%d items, want %d", tr.len, len(keys))
	}
	collect := func(walk func(take func(it item) bool), most int) (got [][]byte) {
		walk(func(it item) bool {
			got = append(got, m.keyOf(it.ref))
			return len(got) < most
		})
		return got
	}
	same := func(got, want [][]byte) {
		t.Helper()
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%d keys differ from the %d that are in the tree", len(got), len(want))
		}
	}
	down := slices.Clone(keys)
	slices.Reverse(down)
	same(collect(tr.ascend, len(keys)+1), keys)
	same(collect(tr.descend, len(keys)+1), down)
	if last, ok := tr.max(); ok != (len(keys) > 0) || ok && !bytes.Equal(m.keyOf(last.ref), down[0]) {
		t.Fatalf("the greatest key is %x, %t", m.keyOf(last.ref), ok)
	}
	for range 20 {
		key, most := treeKey(r, 2000), 1+r.IntN(150)
		at, found := slices.BinarySearchFunc(keys, key, bytes.Compare)
		m.withProbe(key, func(probe item) {
			if it, ok := tr.get(probe); ok != found || ok && !bytes.Equal(m.keyOf(it.ref), key) {
				t.Fatalf("get %x: %t, want %t", key, ok, found)
			}
			up := keys[at:]
			same(collect(func(take func(it item) bool) { tr.ascendFrom(probe, take) }, most), up[:min(most, len(up))])
			end := at
			if found {
				end++
			}
			below := down[len(keys)-end:]
			same(collect(func(take func(it item) bool) {
				tr.descendFrom(probe, take)
			}, most), below[:min(most, len(below))])
		})
	}
}

// A tree has the items that were inserted, each once, in their order; a snapshot those that it had
// when it was taken.
func TestTreeAgreesWithSortedKeys(t *testing.T) {
	r := seedtest.Rand(t)
	for _, ascending := range []bool{false, true} {
		m := New(benchSchema(t), nil)
		type view struct {
			tree *tree
			keys [][]byte
		}
		var views []view
		var keys [][]byte
		for n := range 6000 {
			key := treeKey(r, 8000)
			if ascending && r.IntN(50) > 0 {
				key = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 7), uint64(n))
			}
			at, found := slices.BinarySearchFunc(keys, key, bytes.Compare)
			if added := m.tree.insert(item{keyenc.Head(key), m.writeHeader(key, 1, nil)}); added == found {
				t.Fatalf("insert of %x: %t, but was it there: %t", key, added, found)
			}
			if !found {
				keys = slices.Insert(keys, at, key)
			}
			if r.IntN(600) == 0 {
				views = append(views, view{m.tree.snapshot(), slices.Clone(keys)})
			}
		}
		checkTree(t, r, m, m.tree, keys)
		for _, v := range views {
			checkTree(t, r, m, v.tree, v.keys)
		}
	}
	m := New(benchSchema(t), nil)
	checkTree(t, r, m, m.tree, nil)
}

// Items in order fill their leaves.
func TestTreeOfAscendingKeysIsFull(t *testing.T) {
	m := New(benchSchema(t), nil)
	const leaves = 100
	for i := range leaves * leafItems {
		key := binary.BigEndian.AppendUint64(nil, uint64(i))
		m.tree.insert(item{keyenc.Head(key), m.writeHeader(key, 1, nil)})
	}
	if n := m.tree.leaves.Len(); n != leaves {
		t.Errorf("%d leaves, want %d", n, leaves)
	}
}
