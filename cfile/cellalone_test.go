package cfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Cells that several goroutines read with a full cache, in random order, are right and stay so,
// although cblocks are read into memory that is used again.
func TestCellsBeyondTheCacheAreTheCallers(t *testing.T) {
	seed := seedtest.Seed(t)
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			seed++
			codecs := []schema.Compression{schema.NoCompression, schema.LZ4, schema.Zlib}
			o := WriterOptions{Type: typ, Encoding: enc, Compression: codecs[seed%3], Nullable: seed%2 == 0,
				BlockBytes: 1024, PositionalIndex: true}
			t.Run(fmt.Sprintf("type=%v/enc=%v/codec=%v/nullable=%v/seed=%d", typ, enc, o.Compression,
				o.Nullable, seed), func(t *testing.T) {
				readCellsBeyondCache(t, rand.New(rand.NewPCG(13, seed)), o)
			})
		}
	}
}

func readCellsBeyondCache(t *testing.T, rng *rand.Rand, o WriterOptions) {
	share := 0.0
	if o.Nullable {
		share = 0.2
	}
	want := randomCells(rng, o.Type, 1000, share)
	r := open(t, writeAll(t, o, vectorOf(o.Type, want)), cache.New(4096))
	var wg sync.WaitGroup
	for range 3 {
		order := rng.Perm(len(want))[:150]
		wg.Go(func() {
			got := make([][]byte, len(order))
			for k, i := range order {
				var err error
				if got[k], err = r.Cell(batch.Ordinal(i)); err != nil {
					t.Errorf("row %d: %v", i, err)
					return
				}
			}
			for k, i := range order {
				if !bytes.Equal(got[k], want[i]) || (got[k] == nil) != (want[i] == nil) {
					t.Errorf("row %d: %x, want %x", i, got[k], want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// A cell from a cblock that the cache does not take allocates its own bytes, not the bytes of the
// cblock.
func TestCellsBeyondTheCacheAllocateThemselves(t *testing.T) {
	const rows, size = 2048, 1000
	cells, rng := make([][]byte, rows), rand.NewChaCha8([32]byte{1})
	for i := range cells {
		cells[i] = make([]byte, size)
		rng.Read(cells[i])
	}
	for _, codec := range []schema.Compression{schema.NoCompression, schema.LZ4} {
		o := WriterOptions{Type: schema.Binary, Encoding: schema.Plain, Compression: codec,
			BlockBytes: 64 << 10, PositionalIndex: true}
		r := open(t, writeAll(t, o, vectorOf(o.Type, cells)), cache.New(4096))
		read := func(i int) {
			must.Get(r.Cell(batch.Ordinal(i)))(t)
		}
		read(0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := 64; i < rows; i += 64 { // a cell of each other cblock
			read(i)
		}
		runtime.ReadMemStats(&after)
		// A collection of garbage empties the pool of memory, and the race detector a quarter of
		// it.
		if got := after.TotalAlloc - before.TotalAlloc; got > rows/64*(64<<10)/2 {
			t.Errorf("%v: %d cells of %d bytes allocate %d bytes", codec, rows/64-1, size, got)
		}
	}
}
