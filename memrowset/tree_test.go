package memrowset

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
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
	must.Equal(t, tr.len, len(keys), "items")
	// collect returns the keys in [lower, upper), some at a time.
	collect := func(lower, upper []byte, descending bool) (got [][]byte) {
		w := walker{m: m, tree: tr, lower: newProbe(lower), upper: newProbe(upper), descending: descending}
		for {
			refs := w.next(1 + r.IntN(150))
			if len(refs) == 0 {
				return got
			}
			for i := range refs {
				if descending {
					i = len(refs) - 1 - i
				}
				got = append(got, m.header(refs[i]).key())
			}
		}
	}
	same := func(got, want [][]byte) {
		t.Helper()
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%d keys differ from the %d that are in the tree", len(got), len(want))
		}
	}
	backward := func(keys [][]byte) [][]byte {
		down := slices.Clone(keys)
		slices.Reverse(down)
		return down
	}
	same(collect(nil, nil, false), keys)
	same(collect(nil, nil, true), backward(keys))
	if last, ok := tr.max(); ok != (len(keys) > 0) || ok && !bytes.Equal(m.header(last.ref).key(), keys[len(keys)-1]) {
		t.Fatalf("the greatest key is %x, %t", m.header(last.ref).key(), ok)
	}
	for range 20 {
		lower, upper := treeKey(r, 2000), treeKey(r, 2000)
		if bytes.Compare(lower, upper) > 0 {
			lower, upper = upper, lower
		}
		from, found := slices.BinarySearchFunc(keys, lower, bytes.Compare)
		to, _ := slices.BinarySearchFunc(keys, upper, bytes.Compare)
		if ref := tr.get(newProbe(lower), false); ref != 0 != found || found && !bytes.Equal(m.header(ref).key(), lower) {
			t.Fatalf("get %x: %d, want %t", lower, ref, found)
		}
		same(collect(lower, upper, false), keys[from:to])
		same(collect(lower, upper, true), backward(keys[from:to]))
		same(collect(lower, nil, false), keys[from:])
		same(collect(nil, upper, true), backward(keys[:to]))
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
			if added := m.tree.insert(m.writeHeader(key, 1, nil), newProbe(key)); added == found {
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
		m.tree.insert(m.writeHeader(key, 1, nil), newProbe(key))
	}
	n := 0
	for w := (walker{m: m, tree: m.tree}); len(w.next(leafItems)) > 0; n++ {
	}
	must.Equal(t, n, leaves, "leaves")
	must.Equal(t, m.tree.depth(), 2, "levels of inner nodes")
}

// depth returns the number of levels of inner nodes.
func (t *tree) depth() (n int) {
	for c := t.root; c.inner != nil; c = c.inner.children[0] {
		n++
	}
	return n
}
