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

// Consecutive cells are read with one read for all of their cblocks, in pieces of up to 256 KiB, and
// are the same as others. Cells that were read are not read again. Damage in one of the cblocks is
// found.
func TestCellsAreReadTogether(t *testing.T) {
	rng := seedtest.Rand(t)
	_, cells := randomKeyed(rng, 10_000)
	src := &tailed{Memory: keyedFileOf(t, cells, 1<<20).src.(*block.Memory)}
	r := must.Get(Open(src, ReaderOptions{}))(t)
	x := must.Get(r.ordinalIndex())(t)
	bytesOf := func(at, n int) (blocks int, size int64) { // the cblocks of cells [at, at+n)
		from, to := x.find(uint32(at)), x.find(uint32(at+n-1))
		return to - from + 1, x.blocks[to].end() - x.blocks[from].Offset
	}
	var u CellRun
	several := 0
	for range 60 {
		at := rng.IntN(len(cells))
		n := 1 + rng.IntN(min(len(cells)-at, 1+rng.IntN(8_000)))
		u.Reset(r)
		src.reads = 0
		must.Do(t, u.Read(batch.Ordinal(at), n+max(0, rng.IntN(4)*(at+n-len(cells)+1))))
		blocks, size := bytesOf(at, n)
		if most := 1 + int(size/(maxRun-2*2048)); src.reads > most {
			t.Fatalf("cells [%d,%d), %d bytes in %d cblocks: %d reads, want at most %d", at, at+n, size, blocks,
				src.reads, most)
		}
		src.reads = 0
		must.Do(t, u.Read(batch.Ordinal(at), n))
		for i := range n {
			must.Equal(t, u.Cell(batch.Ordinal(at+i)), cells[at+i], at+i)
		}
		must.Equal(t, src.reads, 0, at, n)
		if blocks > 1 {
			several++
		}
	}
	if several < 12 {
		t.Errorf("only %d reads of several cblocks", several)
	}
	third := x.blocks[3]
	src.Bytes[third.Offset+10]++
	u.Reset(r)
	must.Do(t, u.Read(0, int(x.first[3])))
	must.Fail(t, u.Read(0, int(x.first[3])+1), fault.ErrCorrupt)
	must.Equal(t, u.Has(0, 1), false)
}

// Seek finds what VisitFloor finds, and reads the cells around it, at once. Cells that are kept do not
// change.
func TestSeekReadsCellsAroundAKey(t *testing.T) {
	rng := seedtest.Rand(t)
	keys, cells := randomKeyed(rng, 3_000)
	for _, nodeBytes := range []int{400, 1 << 20} {
		src := &tailed{Memory: keyedFileOf(t, cells, nodeBytes).src.(*block.Memory)}
		r := must.Get(Open(src, ReaderOptions{Indexes: cache.New(1 << 20)}))(t)
		x := must.Get(r.ordinalIndex())(t)
		var u CellRun
		u.Reset(r)
		var kept, want []byte
		around, cut := 0, 0
		for range 2_000 {
			key := []byte(keys[rng.IntN(len(keys))])
			if rng.IntN(4) == 0 {
				key = append(key, '!')
			}
			row, found := batch.Ordinal(0), false
			must.Do(t, r.VisitFloor(key, func(at batch.Ordinal, _, _ []byte) error { // now the index is in memory
				row, found = at, true
				return nil
			}))
			before, after := rng.IntN(3), rng.IntN(3)
			var end []byte
			if rng.IntN(3) == 0 {
				end = append(bytes.Clone(key), '!')
			}
			visited := false
			visit := func(at batch.Ordinal, _, value []byte) error {
				visited = true
				if _, v, err := SplitKeyed(cells[row]); at != row || !bytes.Equal(v, value) || err != nil {
					t.Errorf("%q: row %d, want %d, %v", key, at, row, err)
				}
				return nil
			}
			if rng.IntN(3) == 0 {
				must.Do(t, u.VisitFloor(key, visit))
				must.Equal(t, visited, found, string(key))
				continue
			}
			src.reads = 0
			must.Do(t, u.Seek(key, before, after, end, visit))
			must.Equal(t, visited, found, string(key))
			must.Equal(t, bytes.Equal(kept, want), true, string(key))
			if !found {
				continue
			}
			i := x.find(uint32(row))
			from, to := max(0, i-before), min(len(x.blocks)-1, i+after)
			if nodeBytes == 1<<20 {
				must.Equal(t, src.reads, 1, string(key))
				if end == nil && !u.Has(batch.Ordinal(x.first[from]), int(x.first[to]-x.first[from])+1) {
					cut++ // by the end of a node
				}
			}
			for at := x.first[from]; u.Has(batch.Ordinal(at), 1); at++ {
				must.Equal(t, u.Cell(batch.Ordinal(at)), cells[at], at)
				around++
			}
			if u.Has(row, 1) && rng.IntN(2) == 0 {
				kept, want = u.Cell(row), cells[row]
				u.Keep()
			} else {
				kept, want = nil, nil
			}
		}
		if around < 5_000 || cut > 100 {
			t.Errorf("%d cells around keys; %d times not all", around, cut)
		}
	}
}

// A cache for indexes that keeps nothing makes a ColumnReader or a CellRun read the index once, not once for each
// cblock.
func TestScansReadTheIndexOnce(t *testing.T) {
	_, cells := randomKeyed(seedtest.Rand(t), 2_000)
	src := &tailed{Memory: keyedFileOf(t, cells, 400).src.(*block.Memory)}
	r := must.Get(Open(src, ReaderOptions{NoHeader: true, Indexes: cache.New(100)}))(t)
	src.reads = 0
	x := must.Get(r.ordinalIndex())(t)
	index := src.reads
	v, c := batch.Vector{Type: schema.Binary}, r.NewColumnReader()
	var u CellRun
	for _, run := range []bool{false, true} {
		c.Reset(r)
		u.Reset(r)
		src.reads = 0
		const window = 20
		for at := batch.Ordinal(0); int(at)+window <= len(cells); at += window {
			if run {
				must.Do(t, u.Read(at, window))
				must.Equal(t, u.Cell(at), cells[at], at)
				continue
			}
			if n, err := c.ReadVector(at, window, &v); err != nil || n != window ||
				!bytes.Equal(v.Bytes[0], cells[at]) {
				t.Fatal(n, err)
			}
		}
		if most := index + len(x.blocks); src.reads > most || index < 2 {
			t.Errorf("cells together %t: %d reads of %d cblocks and an index that takes %d", run, src.reads,
				len(x.blocks), index)
		}
	}
}
