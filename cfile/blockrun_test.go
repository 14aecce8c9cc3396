package cfile

import (
	"bytes"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Expected cells are read with one read for all of their cblocks, in pieces of up to 256 KiB, and
// are the same as others. Damage in one of the cblocks is found.
func TestExpectedCellsAreReadTogether(t *testing.T) {
	rng := seedtest.Rand(t)
	cells := randomCells(rng, schema.Binary, 10_000, 0)
	o := WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: schema.NoCompression,
		PositionalIndex: true, BlockBytes: 2048, Exact: true}
	src := &tailed{Memory: writeAll(t, o, vectorOf(schema.Binary, cells))}
	r := must.Get(Open(src, ReaderOptions{}))(t)
	x := must.Get(r.ordinalIndex())(t)
	bytesOf := func(at, n int) (blocks int, size int64) { // the cblocks of cells [at, at+n)
		from, to := x.find(uint32(at)), x.find(uint32(at+n-1))
		return to - from + 1, x.blocks[to].end() - x.blocks[from].Offset
	}
	v, c := batch.Vector{Type: schema.Binary}, r.NewColumnReader()
	several := 0
	for range 60 {
		at := rng.IntN(len(cells))
		n := 1 + rng.IntN(min(len(cells)-at, 1+rng.IntN(8_000)))
		c.Reset(r)
		must.Do(t, c.Expect(batch.Ordinal(at), n+rng.IntN(2)*(len(cells)-at-n)/100))
		src.reads = 0
		must.Equal(t, must.Get(c.ReadVector(batch.Ordinal(at), n, &v))(t), n, at, at+n)
		for i := range n {
			must.Equal(t, v.Bytes[i], cells[at+i], at+i)
		}
		blocks, size := bytesOf(at, n)
		if most := 1 + int(size/(maxRun-2*2048)); src.reads > most {
			t.Fatalf("cells [%d,%d), %d bytes in %d cblocks: %d reads, want at most %d", at, at+n, size, blocks,
				src.reads, most)
		}
		if blocks > 1 {
			several++
		}
	}
	if several < 12 {
		t.Errorf("only %d reads of several cblocks", several)
	}
	third := x.blocks[3]
	src.Bytes[third.Offset+10]++
	c.Reset(r)
	must.Do(t, c.Expect(0, len(cells)))
	must.Get(c.ReadVector(0, int(x.first[3]), &v))(t)
	must.Fail(t, must.Err(c.ReadVector(0, int(x.first[3])+1, &v)), fault.ErrCorrupt)
}

// A cache for indexes that keeps nothing makes a ColumnReader read the index once, not once for each
// cblock.
func TestColumnReaderReadsTheIndexOnce(t *testing.T) {
	_, cells := randomKeyed(seedtest.Rand(t), 2_000)
	src := &tailed{Memory: keyedFileOf(t, cells, 400).src.(*block.Memory)}
	r := must.Get(Open(src, ReaderOptions{NoHeader: true, Indexes: cache.New(100)}))(t)
	src.reads = 0
	x := must.Get(r.ordinalIndex())(t)
	index := src.reads
	v, c := batch.Vector{Type: schema.Binary}, r.NewColumnReader()
	for _, expect := range []bool{false, true} {
		c.Reset(r)
		src.reads = 0
		const window = 20
		for at := batch.Ordinal(0); int(at)+window <= len(cells); at += window {
			if expect {
				must.Do(t, c.Expect(at, window))
			}
			if n, err := c.ReadVector(at, window, &v); err != nil || n != window ||
				!bytes.Equal(v.Bytes[0], cells[at]) {
				t.Fatal(n, err)
			}
		}
		if most := index + len(x.blocks); src.reads > most || index < 2 {
			t.Errorf("expected cells %t: %d reads of %d cblocks and an index that takes %d", expect, src.reads,
				len(x.blocks), index)
		}
	}
}
