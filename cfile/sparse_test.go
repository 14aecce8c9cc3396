package cfile

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// ReadSelected reads the same cells as ReadVector where a bit is set.
func TestReadSelectedAgreesWithCells(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Prefix, schema.Dictionary} {
		handledCount := 0
		for _, share := range []float64{0, 0.3, 1} {
			cells := randomCells(rng, schema.String, 3000, share)
			o := WriterOptions{Type: schema.String, Encoding: enc, Nullable: true, PositionalIndex: true,
				BlockBytes: 2048}
			c := open(t, writeSteps(t, rng, o, cells), nil).NewColumnReader()
			for range 60 {
				if readSelectedOnce(t, rng, c, cells) {
					handledCount++
				}
			}
		}
		if handledCount == 0 { // the dictionary is full after the first cblocks
			t.Errorf("%v: no read of selected cells only", enc)
		}
	}
}

// Readers of a file share the parsed cblocks in the cache, whose size includes the offsets of the
// values.
func TestOffsetsOfCachedCblocksAreParsedOnce(t *testing.T) {
	cells := randomCells(seedtest.Rand(t), schema.String, 3000, 0)
	o := WriterOptions{Type: schema.String, Encoding: schema.Plain, PositionalIndex: true}
	r := open(t, writeAll(t, o, vectorOf(schema.String, cells)), cache.New(1<<20))
	var blocks [2]*dataBlock
	for i := range blocks {
		b := must.Get(r.NewColumnReader().block(0))(t)
		blocks[i] = b
	}
	b, size := blocks[0], 0
	for _, cell := range cells[:b.rows] {
		size += len(cell) + 4
	}
	if b != blocks[1] || b.bytes < int64(size) {
		t.Errorf("same cblock: %v; %d bytes for %d rows, want at least %d", b == blocks[1], b.bytes, b.rows, size)
	}
}

func readSelectedOnce(t *testing.T, rng *rand.Rand, c *ColumnReader, cells [][]byte) bool {
	t.Helper()
	at := rng.IntN(len(cells))
	n := min(1+rng.IntN(1500), len(cells)-at)
	sel := batch.MakeBitmap(n)
	for i := rng.IntN(50); i < n; i += 1 + rng.IntN(50) {
		sel.Set(i)
	}
	v := &batch.Vector{Type: schema.String}
	handled := must.Get(c.ReadSelected(batch.Ordinal(at), n, sel, v))(t)
	if !handled {
		return false
	}
	must.Equal(t, v.Len, n)
	must.Equal(t, n, len(v.Bytes))
	for i := range n {
		if want := cells[at+i]; sel.Get(i) && (!bytes.Equal(v.Cell(i), want) || v.IsNull(i) != (want == nil)) {
			t.Fatalf("row %d: %q, want %q", at+i, v.Cell(i), want)
		}
	}
	return true
}
