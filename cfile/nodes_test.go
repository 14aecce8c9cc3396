package cfile

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// The indexes of a Keyed file are in the cache, within its limit, and not in the Reader, unless
// they are larger than the cache. All reads are the same if the cache drops them.
func TestIndexesAreInTheCache(t *testing.T) {
	keys, cells := randomKeyed(seedtest.Rand(t), 500)
	src := keyedFile(t, cells).src
	for _, limit := range []int64{0, 1500, 1 << 20} {
		c := cache.New(limit)
		f := must.Get(Open(src, ReaderOptions{Indexes: c}))(t)
		for i, key := range keys {
			found := false
			err := f.VisitFloor([]byte(key), func(row batch.Ordinal, _, value []byte) error {
				found = int(row) == i && bytes.Equal(AppendKeyed(nil, []byte(key), value), cells[i])
				return nil
			})
			must.Do(t, err, limit, i)
			must.Equal(t, found, true, limit, i)
			must.Equal(t, must.Get(f.Cell(batch.Ordinal(i)))(t), cells[i], limit, i)
		}
		if used := c.Used(); used > limit || limit == 1<<20 && used < 1000 {
			t.Errorf("limit %d: %d bytes used", limit, used)
		}
		c.Evict(uint64(src.ID()))
		if kept := f.ordinals.Load() != nil; f.values.Load() != nil || f.lastNode.Load() != nil ||
			kept != (limit < 1<<20) {
			t.Errorf("limit %d: the Reader has an index", limit)
		}
	}
}

// What grows with a file counts in the cache, and the Reader does not keep it when the cache drops
// it: indexes, dictionary, zone map. All reads are the same.
func TestReadersKeepNothingThatGrows(t *testing.T) {
	r := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Dictionary, schema.Prefix} {
		cells := randomCells(r, schema.String, 8000, 0)
		for i := range cells {
			cells[i] = fmt.Appendf(nil, "%06d%s", i, cells[i])
		}
		o := WriterOptions{Type: schema.String, Encoding: enc, PositionalIndex: true, ValueIndex: true, BlockBytes: 512}
		file := writeAll(t, o, vectorOf(schema.String, cells))
		file.Number = 7
		for _, limit := range []int64{256 << 10, 8 << 20} {
			c := cache.New(limit)
			f := must.Get(Open(file, ReaderOptions{Cache: c}))(t)
			for range 2 * len(cells) {
				i := r.IntN(len(cells))
				must.Equal(t, must.Get(f.Cell(batch.Ordinal(i)))(t), cells[i], enc, limit, i)
				if ord, exact, err := f.Seek(cells[i]); int(ord) != i || !exact || err != nil {
					t.Fatalf("%v, limit %d: cell %d is at %d, %t, %v", enc, limit, i, ord, exact, err)
				}
			}
			p := &batch.Predicate{Op: batch.Ge, Values: [][]byte{cells[1000]}}
			sel := batch.MakeBitmap(len(cells))
			sel.SetRange(0, len(cells))
			if handled, err := f.NewColumnReader().SelectAll(0, len(cells), []*batch.Predicate{p},
				sel); err != nil || handled && sel.Count() != 7000 {
				t.Errorf("%v, limit %d: %d rows, %v", enc, limit, sel.Count(), err)
			}
			if used := c.Used(); used > limit {
				t.Errorf("%v, limit %d: %d bytes used", enc, limit, used)
			}
			c.SetLimit(0)
			if f.ordinals.Load() != nil || f.values.Load() != nil || f.zones.Load() != nil ||
				f.crcs.Load() != nil || f.dict.Load() != nil {
				t.Errorf("%v, limit %d: the Reader keeps what it loaded", enc, limit)
			}
		}
	}
}

// Cblocks in memory share one dictionary, also if the cache has dropped it.
func TestCblocksShareTheDictionary(t *testing.T) {
	r := seedtest.Rand(t)
	cells := randomCells(r, schema.String, 3000, 0)
	for i := range cells {
		cells[i] = fmt.Appendf(nil, "a word of the dictionary %d", r.IntN(300))
	}
	file := writeAll(t, WriterOptions{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true,
		BlockBytes: 4096}, vectorOf(schema.String, cells))
	file.Number = 7
	c := cache.New(1 << 20)
	f := must.Get(Open(file, ReaderOptions{Cache: c}))(t)
	first := must.Get(f.dictionary())(t)
	c.Evict(uint64(file.Number))
	again, err := f.dictionary()
	if err != nil || first != again {
		t.Errorf("a second dictionary, %v", err)
	}
	if c.Used() == 0 {
		t.Error("the cache does not count the dictionary")
	}
	runtime.KeepAlive(first)
}

// A visit of all cblocks reads each of them once and the index once, also if the cache keeps
// neither.
func TestVisitEachReadsTheIndexOnce(t *testing.T) {
	keys, cells := randomKeyed(seedtest.Rand(t), 500)
	src := &tailed{Memory: keyedFileOf(t, cells, 400).src.(*block.Memory), n: 600}
	f := must.Get(Open(src, ReaderOptions{NoHeader: true, Indexes: cache.New(100)}))(t)
	rows, blocks := 0, 0
	err := f.VisitEach(func(first batch.Ordinal, c Cells) error {
		must.Equal(t, int(first), rows, blocks)
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
	x := must.Get(plain.valueIndex())(t)
	slices.SortFunc(x.nodes, func(a, b BlockPointer) int { return int(a.Offset - b.Offset) })
	for i := 1; i < len(x.nodes); i++ {
		must.Equal(t, x.nodes[i].Offset, x.nodes[i-1].end(), i, x.nodes[i], x.nodes[i-1])
	}
	if len(x.nodes) < 5 || x.blocks[len(x.blocks)-1].end() > x.nodes[0].Offset {
		t.Fatalf("%d nodes, the first at %v", len(x.nodes), x.nodes[0])
	}
	src := &tailed{Memory: file, n: int(file.Size() - x.nodes[0].Offset)}
	f := must.Get(Open(src, ReaderOptions{NoHeader: true, Indexes: cache.New(1 << 20)}))(t)
	must.Equal(t, src.reads, 0)
	for i, key := range keys {
		must.Do(t, f.VisitFloor([]byte(key), func(batch.Ordinal, []byte, []byte) error { return nil }))
		must.Equal(t, src.reads, i+1)
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
			must.Do(t, err)
			want = append(want, p)
			if late > 0 && b.keptSize >= late+200 {
				t.Fatalf("%d bytes are kept, at most %d", b.keptSize, late)
			}
		}
		root := must.Get(b.finish())(t)
		r := &Reader{src: sink, size: sink.Size(), dataStart: 100, dataEnd: sink.Size()}
		r.info.Checksums, r.codec = true, compress.None
		var got []BlockPointer
		if _, err := r.walkTree(root, func(_ int, key []byte, p BlockPointer) error {
			must.Equal(t, len(got), int(key[0]), late, key)
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
	root := must.Get(f.node(f.valueRoot))(t)
	must.Equal(t, root.inner, true)
	for _, p := range []BlockPointer{f.valueRoot, {f.dataEnd, 10}, {0, 4}, {f.dataStart, 0}} {
		var b nodeBuilder
		b.add([]byte("a"), p)
		payload := must.Get(b.finish(nil, true))(t)
		n := must.Get(parseNode(payload))(t)
		must.Do(t, n.prepare())
		n.at = f.valueRoot
		f.lastNode.Store(&n)
		must.Fail(t, must.Err2(f.findNode([]byte("b"))), fault.ErrCorrupt, p)
	}
}

// Trees of nodes that lead to themselves or to a later node: the walk ends with an error. The bytes
// contain the nodes and nothing else.
func TestWalkRefusesCycles(t *testing.T) {
	node := func(inner bool, pointers ...BlockPointer) []byte {
		var b nodeBuilder
		for _, p := range pointers {
			b.add([]byte("a"), p)
		}
		return must.Get(b.finish(nil, inner))(t)
	}
	const at = 8 // of the root, after the header
	size := int32(len(node(true, BlockPointer{at, 9})))
	for name, p := range map[string]BlockPointer{
		"itself":            {at, size},
		"a part of itself":  {at + 1, 4},
		"into itself":       {at - 4, 8},
		"a later node":      {at + int64(size), size},
		"before the header": {2, 4},
		"nothing":           {at - 4, 0},
	} {
		root := node(true, p)
		src := append(append(make([]byte, at), root...), node(true, BlockPointer{at, size})...)
		r := &Reader{src: &block.Memory{Bytes: src}, dataStart: 4, dataEnd: int64(len(src)),
			size: int64(len(src)), codec: compress.None}
		if _, err := r.walkTree(BlockPointer{at, int32(len(root))}, nil); !errors.Is(err, fault.ErrCorrupt) ||
			!strings.Contains(err.Error(), "entry 0 leads to") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
