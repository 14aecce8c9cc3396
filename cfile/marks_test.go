package cfile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// markedBytes is about the size of the cells of a file in these tests: several cblocks of markedBlock.
const (
	markedBytes = 256 << 10
	markedBlock = 80 << 10
)

// noRoom returns a cache without room for a cblock of these tests, but for their marks.
func noRoom() *cache.Cache { return cache.New(8 << 10) }

// noisyCells returns cells that no codec makes smaller.
func noisyCells(rng *rand.Rand, typ schema.Type, nulls float64) [][]byte {
	size := typ.Width()
	if typ.Variable() {
		size = 20
	}
	cells := make([][]byte, markedBytes/size)
	for i := range cells {
		if rng.Float64() >= nulls {
			cells[i] = noisyCell(rng, typ)
		}
	}
	return cells
}

func noisyCell(rng *rand.Rand, typ schema.Type) []byte {
	n := typ.Width()
	if typ.Variable() {
		n = rng.IntN(33)
	}
	cell := make([]byte, n)
	for k := range cell {
		cell[k] = byte(rng.Uint32())
	}
	if typ == schema.Bool {
		cell[0] &= 1
	}
	return cell
}

// hasParts reports whether cblocks of noisyCells have marks. Scattered NULLs among narrow cells take too
// much memory.
func hasParts(o WriterOptions, nulls float64) bool {
	if nulls > 0 && o.Type.Width() > 0 && o.Type.Width() < 4 {
		return false
	}
	return o.Encoding == schema.Bitshuffle || o.Type.Variable() && o.Encoding != schema.Prefix
}

// Cells that are read by marks, by several goroutines and in random order, are the cells of the file, for
// all types and encodings.
func TestMarkedCellsEqualThoseOfCblocks(t *testing.T) {
	seed := seedtest.Seed(t)
	for _, typ := range allTypes {
		for _, enc := range allEncodings {
			if !enc.Allowed(typ) {
				continue
			}
			seed++
			o := WriterOptions{Type: typ, Encoding: enc.Resolve(typ), BlockBytes: markedBlock, PositionalIndex: true,
				Compression: []schema.Compression{schema.NoCompression, schema.LZ4, schema.Zlib}[seed%3],
				Nullable:    seed%2 == 0, NoChecksums: seed%5 == 0, NoWords: seed%7 > 0}
			t.Run(fmt.Sprintf("type=%v/enc=%v/codec=%v/nullable=%v/seed=%d", typ, enc, o.Compression, o.Nullable, seed),
				func(t *testing.T) {
					rng, nulls := rand.New(rand.NewPCG(14, seed)), 0.0
					if o.Nullable {
						nulls = []float64{0, 0.03, 0.5}[seed%3]
					}
					want := noisyCells(rng, typ, nulls)
					r := open(t, writeAll(t, o, vectorOf(typ, want)), noRoom())
					readMarkedCells(t, rng, r, want)
					if got := r.cache.Parts(); hasParts(o, nulls) != (got > 0) {
						t.Errorf("%d cells are read by marks", got)
					}
					if r.cache.Used() > r.cache.Limit() {
						t.Errorf("%d bytes of cache used, the limit is %d", r.cache.Used(), r.cache.Limit())
					}
				})
		}
	}
}

// readMarkedCells compares random cells of r, some of them twice.
func readMarkedCells(t *testing.T, rng *rand.Rand, r *Reader, want [][]byte) {
	t.Helper()
	var wg sync.WaitGroup
	for range 3 {
		order := rng.Perm(len(want))[:200]
		order = append(order, order[190:]...)
		wg.Go(func() {
			got := make([][]byte, len(order))
			for k, i := range order {
				var err error
				if got[k], err = r.Cell(batch.Ordinal(i)); err != nil {
					t.Errorf("row %d: %v", i, err)
					return
				}
			}
			for k, i := range order { // later, since the reads use memory again
				if !bytes.Equal(got[k], want[i]) || (got[k] == nil) != (want[i] == nil) {
					t.Errorf("row %d: %x, want %x", i, got[k], want[i])
					return
				}
			}
		})
	}
	wg.Wait()
}

// Seek by marks finds what Seek without a cache finds, also where the first eight bytes of keys agree.
func TestMarkedSeekFindsTheSameValues(t *testing.T) {
	seed, parts := seedtest.Seed(t), int64(0)
	for _, typ := range allTypes {
		for _, enc := range []schema.Encoding{schema.Plain, schema.Bitshuffle, schema.Dictionary} {
			if !enc.Allowed(typ) || !typ.Keyable() || typ.Width() == 1 {
				continue
			}
			seed++
			o := WriterOptions{Type: typ, Encoding: enc, BlockBytes: markedBlock, PositionalIndex: true, ValueIndex: true,
				Compression: schema.NoCompression}
			t.Run(fmt.Sprintf("type=%v/enc=%v/seed=%d", typ, enc, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(15, seed))
				cells := noisyCells(rng, typ, 0)
				if typ.Variable() && seed%2 == 0 {
					for i := range cells {
						cells[i] = append([]byte("a prefix, then: "[:rng.IntN(2)*16]), cells[i]...)
					}
				}
				slices.SortFunc(cells, func(a, b []byte) int { return batch.Compare(typ, a, b) })
				cells = slices.CompactFunc(cells, bytes.Equal)
				src := writeAll(t, o, vectorOf(typ, cells))
				r, oracle := open(t, src, noRoom()), open(t, src, nil)
				for k := range 1000 {
					key := cells[rng.IntN(len(cells))]
					if k%3 == 0 {
						key = noisyCell(rng, typ)
					}
					ord, exact := must.Get2(r.Seek(key))(t)
					wantOrd, wantExact := must.Get2(oracle.Seek(key))(t)
					if ord != wantOrd || exact != wantExact {
						t.Fatalf("key %x: row %d, %t, want %d, %t", key, ord, exact, wantOrd, wantExact)
					}
				}
				parts += r.cache.Parts() // none where sorted numbers take less than leastMarked
			})
		}
	}
	if parts < 10000 {
		t.Errorf("only %d parts are read", parts)
	}
}

// A bit that flips in a part after its mark was made is found before a cell of the part is returned.
// Cells of other parts are right.
func TestFlippedBitOfAMarkedPartIsFound(t *testing.T) {
	rng := seedtest.Rand(t)
	for _, o := range []WriterOptions{{Type: schema.Int64, Encoding: schema.Bitshuffle},
		{Type: schema.String, Encoding: schema.Plain}, {Type: schema.String, Encoding: schema.Dictionary, NoWords: true}} {
		o.BlockBytes, o.PositionalIndex = markedBlock, true
		want := noisyCells(rng, o.Type, 0)
		src := writeAll(t, o, vectorOf(o.Type, want))
		r := open(t, src, noRoom())
		for i, p := range must.Get(r.blocks())(t) {
			if p.Size > markedBlock/2 { // all but the last
				damageParts(t, rng, r, src, i, want)
			}
		}
	}
}

// damageParts damages each part of data cblock i in turn.
func damageParts(t *testing.T, rng *rand.Rand, r *Reader, src *block.Memory, i int, want [][]byte) {
	x := must.Get(r.ordinalIndex())(t)
	first := batch.Ordinal(x.first[i])
	must.Get(r.Cell(first))(t)
	m := r.marks(x.blocks[i])
	if m == nil {
		t.Fatalf("%v, %v: cblock %d has no marks", r.info.Type, r.info.Encoding, i)
	}
	for k := range m.crcs {
		from, to := m.at+int64(m.parts.Begin[k]), m.at+int64(m.parts.Begin[k+1])
		if m.parts.Strings != nil && rng.IntN(2) == 0 {
			from, to = m.at+int64(m.parts.Strings[k]), m.at+int64(m.parts.Strings[k+1])
		}
		at, bit := from+rng.Int64N(to-from), byte(1)<<rng.IntN(8)
		src.Bytes[at] ^= bit
		for other := range m.crcs {
			m.kept.Store(false) // a part that the cache has is not read again
			row := first + batch.Ordinal(other<<m.parts.Shift)
			cell, err := r.Cell(row)
			if other == k {
				must.Fail(t, err, fault.ErrCorrupt, "cblock", i, "part", k, "byte", at)
			} else if err != nil || !bytes.Equal(cell, want[row]) {
				t.Fatalf("row %d of another part: %x, %v, want %x", row, cell, err, want[row])
			}
		}
		src.Bytes[at] ^= bit
	}
}

// Marks take at most an eighth of their cblock, and a cblock without parts that are worth it has none.
func TestMarksAreSmall(t *testing.T) {
	rng := seedtest.Rand(t)
	made, declined := 0, 0
	for range 300 {
		typ := allTypes[rng.IntN(len(allTypes))]
		enc := allEncodings[rng.IntN(len(allEncodings))]
		if !enc.Allowed(typ) {
			continue
		}
		o := WriterOptions{Type: typ, Encoding: enc.Resolve(typ), BlockBytes: 1 << (12 + rng.IntN(6)), PositionalIndex: true,
			Nullable: rng.IntN(2) == 0}
		share := 0.0
		if o.Nullable {
			share = rng.Float64()
		}
		r := open(t, writeAll(t, o, vectorOf(typ, noisyCells(rng, typ, share))), nil)
		for i, p := range must.Get(r.blocks())(t) {
			payload, crc, err := r.readBlock(p, nil)
			must.Do(t, err)
			m := r.newMarks(p, must.Get(r.parse(i, p, payload, crc, nil))(t), payload)
			if m == nil {
				declined++
			} else if made++; 8*m.bytes() > int64(p.Size) {
				t.Errorf("%v, %v: %d bytes of marks for %d bytes", typ, enc, m.bytes(), p.Size)
			}
		}
	}
	if made < 50 || declined < 50 {
		t.Errorf("%d cblocks have marks, %d have none", made, declined)
	}
}
