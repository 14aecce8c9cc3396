package cfile

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// codedRows is the number of rows at the beginning of a partlyCoded file that have codes.
const codedRows = 4000

// partlyCoded writes a column of few words and then of many, which are in cblocks without codes.
func partlyCoded(t *testing.T, rng *rand.Rand) (c *ColumnReader, cells [][]byte) {
	t.Helper()
	for range codedRows {
		cells = append(cells, []byte{'a' + byte(rng.IntN(5))})
	}
	for range 1000 {
		cells = append(cells, []byte(randomString(rng)), bytes.Repeat([]byte{byte(rng.IntN(256))}, 40))
	}
	o := WriterOptions{Type: schema.String, Encoding: schema.Dictionary, PositionalIndex: true, BlockBytes: 1024}
	return open(t, writeSteps(t, rng, o, cells), cache.New(1<<20)).NewColumnReader(), cells
}

// fewRanges returns a selection of rows [ord, ord+n) that leaves out most cblocks.
func fewRanges(rng *rand.Rand, n int) batch.Bitmap {
	sel := batch.MakeBitmap(n)
	for range rng.IntN(4) {
		from := rng.IntN(n)
		for i := from; i < min(n, from+rng.IntN(200)); i += 1 + rng.IntN(3) {
			sel.Set(i)
		}
	}
	return sel
}

// checkUse fails if cblocks without a selected row were read, or others were not.
func checkUse(t *testing.T, c *ColumnReader, counts *Counts, ord, n int, sel batch.Bitmap) {
	t.Helper()
	bs := must.Get(c.r.blocks())(t)
	for i := range bs {
		b := must.Get(c.load(bs, i))(t)
		from := min(max(int(b.first)-ord, 0), n)
		read := sel.AnyRange(from, min(max(int(b.first)+b.rows-ord, 0), n))
		must.Equal(t, counts.Blocks[i] == batch.BlockStored, read, i, b.first, ord, ord+n)
	}
}

func TestCodesOfSelectedRowsReadOnlyTheirCBlocks(t *testing.T) {
	rng := seedtest.Rand(t)
	c, cells := partlyCoded(t, rng)
	words, err := c.Words(1 << 16)
	if err != nil || !slices.ContainsFunc(words, func(w []byte) bool { return string(w) == "c" }) {
		t.Fatalf("%q, %v", words, err)
	}
	codes, coded := must.Get2(c.Codes())(t)
	must.Equal(t, coded, true)
	var x CodeSplit
	var indexer Indexer
	for range 50 {
		// Rows without codes follow, and are not selected.
		ord := rng.IntN(codedRows - 1000)
		n := rng.IntN(len(cells)+1-ord) + 1
		sel := fewRanges(rng, min(n, codedRows-1000-ord))
		sel = append(sel, make(batch.Bitmap, (n+63)/64)...)
		var counts Counts
		must.Do(t, c.Count(&counts, 0, batch.Ordinal(len(cells))))
		parts := make([]batch.Bitmap, len(words))
		for k := range parts {
			parts[k] = slices.Clone(sel)
		}
		must.Equal(t, must.Get(c.SplitWords(batch.Ordinal(ord), n, parts, &x))(t), true)
		for k, part := range parts {
			for i := range min(n, len(cells)-ord) {
				must.Equal(t, part.Get(i), sel.Get(i) && bytes.Equal(cells[ord+i], words[k]), ord+i)
			}
		}
		checkUse(t, c, &counts, ord, n, sel)

		must.Equal(t, must.Get(c.Coded(batch.Ordinal(ord), n, sel))(t), true)
		n = min(n, IndexRows, len(cells)-ord)
		index, columns := make([]uint16, n), []IndexColumn{{Reader: c, Codes: codes}}
		must.Do(t, indexer.Read(batch.Ordinal(ord), columns, sel, 0, codes.Bits, index))
		for i, got := range index {
			if missing := got>>codes.Bits != 0; missing == sel.Get(i) ||
				!missing && !bytes.Equal(words[got], cells[ord+i]) {
				t.Fatalf("row %d: index %d, selected: %t", ord+i, got, sel.Get(i))
			}
		}
	}
	c.counts = nil
	all := batch.MakeBitmap(len(cells))
	all.SetRange(0, len(cells))
	must.Equal(t, must.Get(c.Coded(0, len(cells), all))(t), false, "all rows have codes")
}
