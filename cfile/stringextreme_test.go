package cfile

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Extremes of byte strings equal the least and greatest of the selected cells, with any encoding,
// whether or not the zone map has exact bounds.
func TestExtremesOfStrings(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, enc := range []schema.Encoding{schema.Plain, schema.Prefix, schema.Dictionary} {
		for _, share := range []float64{0, 0.3, 1} {
			for _, long := range []bool{false, true} {
				cells := randomCells(rng, schema.String, 3000, share)
				if long { // longer than the bounds in a zone map
					for i, cell := range cells {
						if cell != nil && i%4 > 0 {
							cells[i] = slices.Concat(bytes.Repeat([]byte("x"), 40), cell)
						}
					}
				}
				o := WriterOptions{Type: schema.String, Encoding: enc, Nullable: true, PositionalIndex: true,
					BlockBytes: 2048, Exact: rng.IntN(4) == 0}
				c := open(t, writeSteps(t, rng, o, cells), cache.New(1<<20)).NewColumnReader()
				for range 60 {
					at, n, sel := window(rng, len(cells))
					if rng.IntN(2) == 0 {
						sel.SetRange(0, n)
					}
					e, greatest := new(Extreme), rng.IntN(2) == 0
					if greatest {
						e = Maximum()
					}
					must.Equal(t, must.Get(c.Extreme(batch.Ordinal(at), n, sel, e))(t), true)
					var want []byte
					for i, cell := range cells[at : at+n] {
						if cell != nil && sel.Get(i) && (want == nil || bytes.Compare(cell, want) > 0 == greatest) {
							want = cell
						}
					}
					if got := e.Cell(); (got == nil) != (want == nil) || !bytes.Equal(got, want) {
						t.Fatal(fmt.Sprintf("%v, rows [%d, %d), greatest %v: %q, want %q", enc, at, at+n,
							greatest, got, want))
					}
				}
			}
		}
	}
}
