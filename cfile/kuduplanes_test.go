package cfile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Kudu's own binary reads the planes of bitshuffle chunks: files of each type with constant,
// equal and random planes, chunks in real LZ4, and last chunks of any length.
func TestKuduReadsPlanes(t *testing.T) {
	corpustest.NeedKudu(t)
	dump := kuduDump(t)
	rng := seedtest.Rand(t)
	for _, typ := range allTypes {
		o := WriterOptions{Type: typ, Encoding: schema.Bitshuffle, Compression: schema.NoCompression,
			PositionalIndex: true}
		if typ == schema.String {
			o.Encoding = schema.Dictionary // UINT32 in 1 or 2 bytes
		}
		if !o.Encoding.Allowed(typ) {
			continue
		}
		for _, n := range []int{1 + rng.IntN(40), 20_000 + rng.IntN(30_000)} {
			o.BlockBytes = []int{0, 40_000}[rng.IntN(2)]
			cells := planeCells(rng, typ, n)
			src := writeSteps(t, rng, o, cells)
			must.Do(t, kuduPrints(t, dump, src.Bytes, typ, cells), typ, n)
		}
	}
}

// planeCells returns n cells. Each run of them has numbers of another range: none but one, a few
// low bits, negative ones, ascending ones.
func planeCells(rng *rand.Rand, typ schema.Type, n int) (cells [][]byte) {
	for len(cells) < n {
		bits, negative, step := rng.IntN(65), rng.IntN(2) == 0, rng.IntN(2)
		base := rng.Int64() >> rng.IntN(64)
		for i := range min(n-len(cells), 1000+rng.IntN(9000)) {
			v := int64(rng.Uint64() &^ (^uint64(0) << bits))
			if rng.IntN(4) == 0 {
				v += base
			}
			if negative && i%3 == 0 {
				v = -v
			}
			if step*bits > 50 {
				v = base + int64(i)
			}
			cells = append(cells, planeCell(typ, v))
		}
	}
	return cells
}

// planeCell returns a number as a cell that Kudu prints without loss.
func planeCell(typ schema.Type, v int64) []byte {
	switch typ {
	case schema.Date:
		v %= 700_000
	case schema.Timestamp:
		v %= 2e15
	case schema.Int128, schema.Decimal128:
		v = int64(int8(v))
	case schema.String:
		return fmt.Appendf(nil, "%x", uint16(v)>>(v&7))
	}
	cell := binary.LittleEndian.AppendUint64(nil, uint64(v))
	return binary.LittleEndian.AppendUint64(cell, uint64(v>>63))[:typ.Width()]
}
