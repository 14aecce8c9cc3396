package encoding

import (
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// smallIntegers encodes n integers of up to the given bits, from a generator.
func smallIntegers(t *testing.T, typ schema.Type, n int, exact bool, next func() uint64) (Block, []uint64) {
	t.Helper()
	b := mustBuilder(t, BuilderOptions{Type: typ, Encoding: schema.Bitshuffle, BlockBytes: 1 << 20, Exact: exact})
	v, values := batch.NewVector(typ, n), make([]uint64, n)
	for i := range n {
		var cell [8]byte
		values[i] = next()
		for k := range cell {
			cell[k] = byte(values[i] >> (8 * k))
		}
		v.SetCell(i, cell[:typ.Width()])
	}
	must.Equal(t, b.Append(v, 0, n), n, "a block does not fit all values")
	block := must.Get(Parse(Params{Type: typ, Encoding: schema.Bitshuffle, Payload: b.Finish(nil, 0)}))(t)
	return block, values
}

// checkIndex compares the indexes of values [from, from+n) of blocks with their integers, of which
// block k has bits[k] bits.
func checkIndex(t *testing.T, x *Index, blocks []Block, values [][]uint64, bits []int, from, n int, sel batch.Bitmap) {
	t.Helper()
	for _, b := range blocks {
		n = min(n, IndexSpan(b, from, n))
	}
	x.Reset()
	shift := 0
	for k, b := range blocks {
		if ok, err := x.Add(b, from, n, shift, bits[k]); err != nil || !ok {
			t.Fatalf("values [%d,%d) of %d bits: %v, %v", from, from+n, bits[k], ok, err)
		}
		shift += bits[k]
	}
	x.AddMissing(sel, n, shift)
	got := make([]uint16, n)
	x.Fill(got)
	for i := range got {
		want, at := uint64(0), 0
		for k := range blocks {
			want |= values[k][from+i] << at
			at += bits[k]
		}
		if !sel.Get(i) {
			want |= 1 << at
		}
		must.Equal(t, got[i], uint16(want), i, n, from, want)
	}
}

func TestIndexAgreesWithValues(t *testing.T) {
	r := seedtest.Rand(t)
	types := []schema.Type{schema.Uint8, schema.Int16, schema.Uint32, schema.Int32, schema.Int64, schema.Date}
	x := new(Index)
	for range 30 {
		n, left := 8+r.IntN(9000), 15
		var blocks []Block
		var values [][]uint64
		var bits []int
		for left > 0 && len(blocks) < 4 {
			typ := types[r.IntN(len(types))]
			k := r.IntN(min(left+1, 8*typ.Width()))
			step := 1 + r.IntN(50) // also runs, whose planes are stored in another way
			value, i := uint64(0), 0
			b, v := smallIntegers(t, typ, n, r.IntN(2) == 0, func() uint64 {
				if i++; i%step == 0 {
					value = r.Uint64() & (1<<k - 1)
				}
				return value
			})
			blocks, values, bits, left = append(blocks, b), append(values, v), append(bits, k), left-k
		}
		for range 6 {
			from := r.IntN(n) &^ 7
			count := min(n-from, 1+r.IntN(IndexRows))
			checkIndex(t, x, blocks, values, bits, from, count, batch.Bitmap(randomSelection(r, count)))
		}
		x.Release()
	}
}

// A cell of more bits, or that does not begin a byte of the planes, is not added.
func TestIndexRefusesWideValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x := new(Index)
	b, _ := smallIntegers(t, schema.Int64, 100, false, func() uint64 { return r.Uint64() % 9 })
	x.Reset()
	must.Equal(t, must.Get(x.Add(b, 0, 100, 0, 3))(t), false, "values of 4 bits as 3")
	b, _ = smallIntegers(t, schema.Int16, 100, false, func() uint64 { return ^uint64(0) })
	must.Equal(t, must.Get(x.Add(b, 0, 100, 0, 15))(t), false)
	must.Equal(t, IndexSpan(b, 4, 8), 0, "values from value 4 on")
}

// FuzzIndex makes indexes of two columns whose values the input contains.
func FuzzIndex(f *testing.F) {
	f.Add(uint8(3), uint8(4), uint16(300), []byte("\x01\x02\x03\x04\x05\x06\x07\x08\xff"))
	f.Add(uint8(0), uint8(15), uint16(2000), []byte{0, 0, 0, 1})
	f.Add(uint8(3), uint8(4), uint16(18), []byte("\x01\x02\x03\x04\x05\x06\a\b\xff")) // ends with literals of zeros
	fuzztest.Run(f, func(t *testing.T, first, second uint8, size uint16, input []byte) {
		bits := []int{int(first % 8), int(second % 9)}
		n, at := 1+int(size)%5000, 0
		var blocks []Block
		var values [][]uint64
		for k, typ := range []schema.Type{schema.Int8, schema.Int32} {
			b, v := smallIntegers(t, typ, n, first>>7 != 0, func() uint64 {
				if len(input) == 0 {
					return 0
				}
				at++
				return uint64(input[at%len(input)]) & (1<<bits[k] - 1)
			})
			blocks, values = append(blocks, b), append(values, v)
		}
		from := at % n &^ 7
		count := min(n-from, IndexRows)
		sel := batch.MakeBitmap(count)
		sel.SetRange(0, count/2)
		checkIndex(t, new(Index), blocks, values, bits, from, count, sel)
	})
}
