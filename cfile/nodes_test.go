package cfile

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// The indexes of a Keyed file are in the cache, within its limit, and not in the Reader. All reads
// are the same if the cache drops them.
func TestIndexesAreInTheCache(t *testing.T) {
	keys, cells := randomKeyed(seedtest.Rand(t), 500)
	src := keyedFile(t, cells).src
	for _, limit := range []int64{0, 1500, 1 << 20} {
		c := cache.New(limit)
		f, err := Open(src, ReaderOptions{Indexes: c})
		if err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			found := false
			err := f.VisitKey([]byte(key), func(row batch.Ordinal, value []byte) error {
				found = int(row) == i && bytes.Equal(AppendKeyed(nil, []byte(key), value), cells[i])
				return nil
			})
			if err != nil || !found {
				t.Fatalf("limit %d: key %d: found %t, %v", limit, i, found, err)
			}
			if value, err := f.Cell(batch.Ordinal(i)); err != nil || !bytes.Equal(value, cells[i]) {
				t.Fatalf("limit %d: row %d: %x, %v", limit, i, value, err)
			}
		}
		if f.values.Load() != nil || f.ordinals.Load() != nil || f.lastNode.Load() != nil {
			t.Errorf("limit %d: the Reader has an index", limit)
		}
		if used := c.Used(); used > limit || limit == 1<<20 && used < 1000 {
			t.Errorf("limit %d: %d bytes used", limit, used)
		}
	}
}

// A visit of all cblocks reads each of them once and the index once, also if the cache keeps neither.
func TestVisitEachReadsTheIndexOnce(t *testing.T) {
	keys, cells := randomKeyed(seedtest.Rand(t), 500)
	src := &tailed{Memory: keyedFileOf(t, cells, 400).src.(*block.Memory), n: 600}
	f, err := Open(src, ReaderOptions{NoHeader: true, Indexes: cache.New(100)})
	if err != nil {
		t.Fatal(err)
	}
	rows, blocks := 0, 0
	err = f.VisitEach(func(first batch.Ordinal, c Cells) error {
		if int(first) != rows {
			t.Errorf("cblock %d begins at row %d, want %d", blocks, first, rows)
		}
		rows, blocks = rows+c.Len(), blocks+1
		return nil
	})
	if err != nil || rows != len(keys) || blocks < 100 || src.reads > blocks+blocks/5 {
		t.Errorf("%d rows of %d, %d reads for %d cblocks, %v", rows, len(keys), src.reads, blocks, err)
	}
}

// The leaves of the value index are side by side at the end of the file. With all of them in the
// tail, a lookup reads its cblock and nothing else.
func TestOneReadForTheValueIndex(t *testing.T) {
	keys, cells := randomKeyed(seedtest.Rand(t), 500)
	file := keyedFileOf(t, cells, 400).src.(*block.Memory)
	plain := open(t, file, nil)
	x, err := plain.valueIndex()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(x.nodes, func(a, b BlockPointer) int { return int(a.Offset - b.Offset) })
	for i := 1; i < len(x.nodes); i++ {
		if x.nodes[i].Offset != x.nodes[i-1].end() {
			t.Errorf("node %d is at %v, the one before it at %v", i, x.nodes[i], x.nodes[i-1])
		}
	}
	if len(x.nodes) < 5 || x.blocks[len(x.blocks)-1].end() > x.nodes[0].Offset {
		t.Fatalf("%d nodes, the first at %v", len(x.nodes), x.nodes[0])
	}
	src := &tailed{Memory: file, n: int(file.Size() - x.nodes[0].Offset)}
	f, err := Open(src, ReaderOptions{NoHeader: true, Indexes: cache.New(1 << 20)})
	if err != nil || src.reads != 0 {
		t.Fatalf("%d reads to open, %v", src.reads, err)
	}
	for i, key := range keys {
		if err := f.VisitKey([]byte(key), func(batch.Ordinal, []byte) error { return nil }); err != nil || src.reads != i+1 {
			t.Fatalf("%d reads for %d keys, %v", src.reads, i+1, err)
		}
	}
}

// Leaves that are too many to be kept are written before the end, in the same order.
func TestLateLeavesAreBounded(t *testing.T) {
	for _, late := range []int{0, 300, 1 << 20} {
		sink := &block.Memory{Number: 1}
		b := newTreeBuilder(&framer{sink: sink, codec: compress.None, checksums: true, offset: 100}, 100)
		sink.Bytes = make([]byte, 100)
		b.late = late
		var want []BlockPointer
		for i := range 200 {
			p, _, err := b.out.writeBlock([]byte{byte(i)})
			if err == nil {
				err = b.add(0, []byte{byte(i)}, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, p)
			if late > 0 && b.keptSize >= late+200 {
				t.Fatalf("%d bytes are kept, at most %d", b.keptSize, late)
			}
		}
		root, err := b.finish()
		if err != nil {
			t.Fatal(err)
		}
		r := &Reader{src: sink, size: sink.Size(), dataStart: 100, dataEnd: sink.Size()}
		r.info.Checksums, r.codec = true, compress.None
		var got []BlockPointer
		if _, err := r.walkTree(root, func(_ int, key []byte, p BlockPointer) error {
			if int(key[0]) != len(got) {
				t.Fatalf("late %d: key %x after %d entries", late, key, len(got))
			}
			got = append(got, p)
			return nil
		}); err != nil || !slices.Equal(got, want) {
			t.Errorf("late %d: %d entries, %v, want %d", late, len(got), err, len(want))
		}
	}
}

// A node that leads to itself or to a later one, whose checksum fits, is damage.
func TestFindNodeChecksPointers(t *testing.T) {
	_, cells := randomKeyed(seedtest.Rand(t), 500)
	file := keyedFile(t, cells).src.(*block.Memory)
	f := open(t, file, nil)
	root, err := f.node(f.valueRoot)
	if err != nil || !root.inner {
		t.Fatal(err)
	}
	for _, p := range []BlockPointer{f.valueRoot, {f.dataEnd, 10}, {0, 4}, {f.dataStart, 0}} {
		var b nodeBuilder
		b.add([]byte("a"), p)
		payload, err := b.finish(nil, true)
		if err != nil {
			t.Fatal(err)
		}
		n, err := parseNode(payload)
		if err != nil {
			t.Fatal(err)
		}
		n.at = f.valueRoot
		f.lastNode.Store(&n)
		if _, _, err := f.findNode([]byte("b")); !errors.Is(err, fault.ErrCorrupt) {
			t.Errorf("pointer %v: %v", p, err)
		}
	}
}
