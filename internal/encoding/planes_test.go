package encoding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/coding"
	"github.com/oribi-db/oribi/internal/compress"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// planeRows returns the rows of a chunk of integers, padded with zeros.
func planeRows(width int, values ...int64) []byte {
	var cells []byte
	for _, v := range values {
		cell := binary.LittleEndian.AppendUint64(nil, uint64(v))
		cells = append(cells, append(cell, bytes.Repeat(cell[7:], 8)...)[:width]...)
	}
	cells = append(cells, make([]byte, -len(values)&7*width)...)
	rows := make([]byte, len(cells))
	shuffle(rows, cells, len(cells)/width, width)
	return rows
}

// unpackRows decompresses a chunk of planes; ok is false if the block is invalid.
func unpackRows(src []byte, row, width int) (rows []byte, ok bool) {
	rows = make([]byte, 8*width*row)
	return rows, compress.LZ4DecompressExact(rows, src) == nil
}

// checkRecognized compares the planes that recognize finds with the rows of the chunk.
func checkRecognized(src, rows []byte, row, width int, refs []planeRef, ones uint128) error {
	for i := range 8 * width {
		want := rows[i*row : (i+1)*row]
		got := make([]byte, row)
		if ones.bit(i) != 0 {
			got = bytes.Repeat([]byte{0xff}, row)
		}
		if len(refs) > 0 && int(refs[0].plane) == i {
			if ones.bit(i) != 0 {
				return fmt.Errorf("plane %d is constant, and has a ref", i)
			}
			got, refs = src[refs[0].at:][:row], refs[1:]
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("plane %d of %d bytes is %.40x, want %.40x", i, row, got, want)
		}
	}
	if len(refs) > 0 {
		return fmt.Errorf("%d refs left", len(refs))
	}
	return nil
}

// planeVectors are the vectors of planes spec §2: a stream, or its length and CRC-32C.
func planeVectors() (vectors []planeVector) {
	steps := func(from int64, n int) (values []int64) {
		for i := range n {
			values = append(values, int64(i*37%1000)+from)
		}
		return values
	}
	repeat := func(v int64, n int) []int64 { return slices.Repeat([]int64{v}, n) }
	a := []int64{-3, -2, -1, 0, 1, 2, 3, 4, 5, -6, 7, 8, 9, 10, 11, -12}
	eight := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	return []planeVector{
		{4, []int64{1, 2, 3}, "3f 05 06 00 01 00 05 50 00 00 00 00 00", 13, 0xd652e522},
		{8, eight, "5f 55 66 78 80 00 01 00 23 50 00 00 00 00 00", 15, 0},
		{16, eight, "5f 55 66 78 80 00 01 00 63 50 00 00 00 00 00", 15, 0},
		{8, a, "af 55 55 66 66 87 85 07 7a 07 82 02 00 5e 50 82 07 82 07 82", 20, 0xf89d1472},
		{2, repeat(0, 8), "16 00 01 00 50 00 00 00 00 00", 10, 0},
		{8, repeat(-1, 8), "1f ff 01 00 27 50 ff ff ff ff ff", 11, 0},
		{1, append(repeat(5, 31), 7), "da ff ff ff ff 00 00 00 80 ff ff ff ff 00 01 00 50 00 00 00 00 00", 22, 0},
		{2, append(append(slices.Clone(a), repeat(0, 15)...), -1),
			"ff 05 55 55 00 80 66 66 00 80 87 85 00 80 07 7a 00 80 07 82 00 80 04 00 14 50 80 07 82 00 80", 31, 0},
		{8, steps(0, 1024), "", 1323, 0xe69a1e61},
		{8, steps(-500, 1024), "", 1322, 0xc4fba6d5},
		{4, steps(-500, 1024), "", 1305, 0x58019a77},
	}
}

type planeVector struct {
	width  int
	values []int64
	stream string
	size   int
	crc    uint32 // 0 = not given
}

func TestPlaneStreamsMatchTheSpec(t *testing.T) {
	for i, v := range planeVectors() {
		rows := planeRows(v.width, v.values...)
		row := len(rows) / (8 * v.width)
		got := appendPlanes([]byte("before"), rows, row)[6:]
		if v.stream != "" && !bytes.Equal(got, must.Hex(t, v.stream)) {
			t.Errorf("vector %d: % x, want %s", i, got, v.stream)
		}
		if len(got) != v.size || v.crc != 0 && coding.CRC32C(got) != v.crc {
			t.Errorf("vector %d: %d bytes with CRC %08x, want %d, %08x", i, len(got), coding.CRC32C(got), v.size, v.crc)
		}
		if back, ok := unpackRows(got, row, v.width); !ok || !bytes.Equal(back, rows) {
			t.Errorf("vector %d: decompressed %v", i, ok)
		}
		refs, ones, ok := recognize(got, row, v.width, nil)
		must.Equal(t, ok, true, i)
		must.Do(t, checkRecognized(got, rows, row, v.width, refs, ones), i)
		switch i {
		case 8: // planes 0–9 at offsets 6, 134, 262, …
			for k := range 10 {
				must.Equal(t, refs[k], planeRef{uint16(6 + 128*k), uint8(k)}, i, k)
			}
		case 9: // planes 9–63 all at offset 1158
			for k := 9; k < 64; k++ {
				must.Equal(t, refs[k], planeRef{1158, uint8(k)}, i, k)
			}
		}
	}
}

// randomRows returns planes that are constant, equal to the one before, or random.
func randomRows(rng *rand.Rand, row, width int) (rows []byte) {
	kinds := 1 + rng.IntN(5)
	for range 8 * width {
		plane := bytes.Repeat([]byte{byte(-rng.IntN(2))}, row)
		switch k := rng.IntN(kinds); {
		case k == 1 && len(rows) > 0, k == 2 && len(rows) > 0:
			copy(plane, rows[len(rows)-row:])
		case k == 3:
			for i := range plane {
				plane[i] = byte(rng.Uint32())
			}
		case k == 4:
			plane[rng.IntN(row)] ^= 1 << rng.IntN(8)
		}
		rows = append(rows, plane...)
	}
	return rows
}

// Every stream of appendPlanes is recognized, is decompressed by LZ4, and is not longer than
// stated; of real LZ4 blocks the recognizer finds the same planes or none.
func TestRecognizerFindsPlanes(t *testing.T) {
	rng := seedtest.Rand(t)
	found, blocks := 0, 0
	for range 3000 {
		width := []int{1, 2, 4, 8, 16}[rng.IntN(5)]
		row := []int{chunkBytes / (8 * width), 1 + rng.IntN(chunkBytes/(8*width)), 1 + rng.IntN(12)}[rng.IntN(3)]
		rows := randomRows(rng, row, width)
		before := []planeRef{{7, 200}, {9, 0}}
		for k, src := range [][]byte{appendPlanes(nil, rows, row), compress.LZ4CompressChunk(nil, rows)} {
			if back, ok := unpackRows(src, row, width); !ok || !bytes.Equal(back, rows) {
				t.Fatalf("width %d, planes of %d bytes, stream %d: decompressed %v", width, row, k, ok)
			}
			if k == 0 {
				checkEnd(t, src)
				if len(src) > len(rows)+34 {
					t.Fatalf("width %d, planes of %d bytes: a stream of %d", width, row, len(src))
				}
			} else {
				blocks++
			}
			refs, ones, ok := recognize(src, row, width, before)
			if !ok {
				if k == 0 {
					t.Fatalf("width %d, planes of %d bytes: not recognized: %.60x", width, row, src)
				}
				must.Equal(t, len(refs), len(before), "refs of a stream that was not recognized")
				continue
			}
			if found += k; !slices.Equal(refs[:2], before) {
				t.Fatal("the refs before have changed")
			}
			must.Do(t, checkRecognized(src, rows, row, width, refs[2:], ones), width, k)
		}
	}
	if found < blocks/4 {
		t.Errorf("%d of %d real LZ4 blocks were recognized", found, blocks)
	}
}

// checkEnd checks the rules for the end of an LZ4 block that Kudu enforces. Source: cfile spec
// §4.5.
func checkEnd(t *testing.T, block []byte) {
	t.Helper()
	begin, out := 0, 0 // of the last match; end of the output
	for at := 0; at < len(block); {
		s, ok := compress.ParseLZ4Sequence(block, at)
		must.Equal(t, ok, true, "an invalid block")
		if out += s.To - s.From; s.Match == 0 {
			if begin > 0 && (out < begin+12 || s.To-s.From < 5) {
				t.Fatalf("the last match begins at %d of %d, %d literals follow", begin, out, s.To-s.From)
			}
			return
		}
		begin = out
		out, at = out+s.Match, s.End
	}
	t.Fatal("no last sequence")
}

// Of every eight chunks, the first decides by the sizes of both forms. Exact payloads have real LZ4
// only.
func TestChunksAreStoredInTheSmallerForm(t *testing.T) {
	rng := seedtest.Rand(t)
	const perChunk, chunks = chunkBytes / 8, 40
	v := batch.NewVector(schema.Int64, perChunk*chunks+100)
	for i := range batch.Values[int64](v) {
		// Ascending numbers, which real LZ4 makes much smaller, and random ones.
		x := int64(i / 3)
		if rng.IntN(perChunk*5) == 0 || i/perChunk%16 >= 8 {
			x = rng.Int64N(1000)
		}
		batch.Values[int64](v)[i] = x
	}
	for _, exact := range []bool{false, true} {
		b := mustBuilder(t, BuilderOptions{Type: schema.Int64, Encoding: schema.Bitshuffle, BlockBytes: 1 << 20,
			Exact: exact})
		b.AppendAll(v, 0, v.Len)
		var block shuffled
		must.Do(t, block.parse(b.Finish(nil, 0), schema.Int64, nil))
		var forms [2]int
		real := exact
		for i := range block.chunks {
			n := block.chunkCells(i)
			got := block.payload[block.chunks[i]+
				chunkHeaderLen:][:binary.BigEndian.Uint32(block.payload[block.chunks[i]:])]
			rows, ok := unpackRows(got, n/8, 8)
			must.Equal(t, ok, true, i)
			planes, lz4 := appendPlanes(nil, rows, n/8), compress.LZ4CompressChunk(nil, rows)
			if i%8 == 0 && !exact {
				real = 100*len(lz4) <= 85*len(planes)
			}
			must.Equal(t, got, map[bool][]byte{false: planes, true: lz4}[real], exact, i)
			if real {
				forms[1]++
			} else {
				forms[0]++
			}
		}
		if !exact && (forms[0] == 0 || forms[1] == 0) {
			t.Errorf("%v chunks in the two forms", forms)
		}
	}
}

// randomBlock returns an LZ4 block of about 8·width planes, whose sequences begin and end at planes
// more often than by chance, and whose bytes are often constant or equal to the plane before.
func randomBlock(rng *rand.Rand, row, width int) (block []byte) {
	size := 8 * width * row
	if rng.IntN(8) == 0 {
		size += rng.IntN(2*row+1) - row
	}
	var out []byte
	length := func() int {
		rest := row - len(out)%row // of the plane
		return []int{0, 1, rest, rest + row*rng.IntN(3), rest + rng.IntN(row), row, rng.IntN(3*row + 1)}[rng.IntN(7)]
	}
	literals := func(n int) []byte {
		b := make([]byte, max(n, 0))
		kind, c := rng.IntN(4), byte(-rng.IntN(2))
		for i := range b {
			switch from := len(out) + i - row; {
			case kind == 0:
				b[i] = byte(rng.Uint32())
			case kind == 1 && from >= 0 && from < len(out):
				b[i] = out[from]
			case kind > 1:
				b[i] = c
			}
		}
		if len(b) > 0 && rng.IntN(8) == 0 {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		return b
	}
	for len(out) < size {
		lit := literals(min(length(), size-len(out)))
		offset := []int{1, 1, row, row, 1 + rng.IntN(len(lit)+1), row * (1 + rng.IntN(4)),
			1 + rng.IntN(len(out)+len(lit)+1)}[rng.IntN(7)]
		out = append(out, lit...)
		n := max(length(), compress.LZ4MinMatch)
		if len(out)+n > size && rng.IntN(32) > 0 || offset > len(out) && rng.IntN(32) > 0 {
			out = out[:len(out)-len(lit)]
			if rng.IntN(4) == 0 {
				break
			}
			continue
		}
		block = compress.AppendLZ4Sequence(block, lit, offset, n)
		for range n {
			out = append(out, append(out, 0)[max(len(out)-offset, 0)])
		}
	}
	block = compress.AppendLZ4Sequence(block, literals(size-len(out)), 0, 0)
	if rng.IntN(16) == 0 {
		block[rng.IntN(len(block))] ^= 1 << rng.IntN(8)
	}
	return block
}

// If planes are recognized in a block, well-formed or not, the block is decompressed to them.
func TestRecognizerAgreesWithLZ4(t *testing.T) {
	rng := seedtest.Rand(t)
	yes := 0
	for range 60_000 {
		width, row := []int{1, 1, 2, 2, 16}[rng.IntN(5)], 1+rng.IntN(12)
		src := randomBlock(rng, row, width)
		refs, ones, ok := recognize(src, row, width, nil)
		if !ok {
			continue
		}
		yes++
		rows, ok := unpackRows(src, row, width)
		must.Equal(t, ok, true, 8*width, row, src)
		must.Do(t, checkRecognized(src, rows, row, width, refs, ones), src)
	}
	if yes < 3000 {
		t.Errorf("planes are recognized in %d blocks only", yes)
	}
}

// matchesBeyondTheEnd is a block for 128 planes whose first match ends after them, in the next
// plane.
var matchesBeyondTheEnd = compress.AppendLZ4Sequence(
	compress.AppendLZ4Sequence(compress.AppendLZ4Sequence(nil, []byte{0xff, 0xff}, 1, 255), nil, 1, 4),
	make([]byte, 5), 0, 0)

// FuzzRecognize passes an LZ4 block to the recognizer: if it finds the planes, the block must
// decompress to the same. The input is also used as planes.
func FuzzRecognize(f *testing.F) {
	for i, v := range planeVectors() {
		rows := planeRows(v.width, v.values...)
		row := len(rows) / (8 * v.width)
		f.Add(uint8(log2(v.width)), uint16(row-1), appendPlanes(nil, rows, row))
		if i > 7 {
			f.Add(uint8(log2(v.width)), uint16(row-1), compress.LZ4CompressChunk(nil, rows))
		}
	}
	f.Add(uint8(4), uint16(1), matchesBeyondTheEnd)
	f.Add(uint8(0), uint16(0), []byte{0x80, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add(uint8(0), uint16(0), []byte{0x84, 1, 2, 3, 4, 5, 6, 7, 8})
	fuzztest.Run(f, func(t *testing.T, log uint8, size uint16, input []byte) {
		width := 1 << (log % 5)
		row := 1 + int(size)%(chunkBytes/(8*width))
		if refs, ones, ok := recognize(input, row, width, nil); ok {
			rows, ok := unpackRows(input, row, width)
			must.Equal(t, ok, true, input)
			must.Do(t, checkRecognized(input, rows, row, width, refs, ones))
		}
		row = min(row, len(input)/(8*width))
		if row == 0 {
			return
		}
		rows := input[:8*width*row]
		src := appendPlanes(nil, rows, row)
		back, ok := unpackRows(src, row, width)
		must.Equal(t, ok, true, "the stream of planes is not decompressed to them")
		must.Equal(t, back, rows, "the stream of planes is not decompressed to them")
		checkEnd(t, src)
		refs, ones, ok := recognize(src, row, width, nil)
		must.Equal(t, ok, true, "the stream of planes is not recognized")
		must.Do(t, checkRecognized(src, rows, row, width, refs, ones))
	})
}

// log2 returns the logarithm of a width.
func log2(width int) (log int) {
	for ; width > 1; width /= 2 {
		log++
	}
	return log
}
