package encoding

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// benchCells returns cells with the given number of significant bits, or few words of 8 to 20
// bytes.
func benchCells(typ schema.Type, n, significant int) [][]byte {
	r := rand.New(rand.NewPCG(7, 7))
	cells := make([][]byte, n)
	for i := range cells {
		v := r.Uint64() >> (64 - significant)
		switch {
		case typ.Physical() == schema.Bool:
			cells[i] = []byte{byte(v & 1)}
		case typ.Variable():
			cells[i] = fmt.Appendf(nil, "name-%0*d", 3+int(v%12), v)
		default:
			cells[i] = append(binary.LittleEndian.AppendUint64(nil, v), make([]byte, 8)...)[:typ.Width()]
		}
	}
	return cells
}

// BenchmarkCodec builds payloads of 32768 random values, decodes them in windows, and tests them in
// windows like a scan: with Select, or decoded if Select does not handle the predicate. For
// dictionaries it also reads codes. It uses one core and one payload at a time. bits is the number
// of random bits of a value.
func BenchmarkCodec(b *testing.B) {
	for _, c := range []struct {
		typ  schema.Type
		enc  schema.Encoding
		bits int
	}{
		{schema.Int64, schema.Bitshuffle, 8},
		{schema.Int64, schema.Bitshuffle, 24},
		{schema.Int64, schema.Bitshuffle, 64},
		{schema.Int32, schema.Bitshuffle, 16},
		{schema.Int32, schema.Bitshuffle, 24},
		{schema.Int8, schema.Bitshuffle, 8},
		{schema.Int16, schema.Bitshuffle, 16},
		{schema.Int128, schema.Bitshuffle, 32},
		{schema.Bool, schema.RLE, 1},
		{schema.Bool, schema.Plain, 1},
		{schema.Int32, schema.RLE, 1},
		{schema.Int32, schema.RLE, 0}, // one run
		{schema.Int64, schema.Plain, 64},
		{schema.String, schema.Plain, 40},
		{schema.String, schema.Prefix, 40},
		{schema.String, schema.Dictionary, 8},
	} {
		name := fmt.Sprintf("type=%s/enc=%s/bits=%d", c.typ, c.enc, c.bits)
		n := 32768
		cells := benchCells(c.typ, n, c.bits)
		v := vectorOf(c.typ, cells)
		w := mustBuilder(b, BuilderOptions{Type: c.typ, Encoding: c.enc, BlockBytes: 16 << 20})
		w.Append(v, 0, n)
		payload := w.Finish(nil, 0)
		b.Run("encode/"+name, func(b *testing.B) {
			for b.Loop() {
				w.Reset()
				if w.Append(v, 0, n) != n {
					b.Fatal("not all taken")
				}
				payload = w.Finish(payload[:0], 0)
			}
			reportValues(b, n)
			b.ReportMetric(float64(len(payload))/float64(n), "bytes/value")
		})
		p := Params{Type: c.typ, Encoding: c.enc, Payload: payload}
		if d, ok := w.(DictionaryBuilder); ok {
			p.Dict, _ = ParseDictionary(d.FinishDictionary(nil))
		}
		out := batch.NewVector(c.typ, batch.WindowRows)
		var sum uint32
		b.Run("decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				block := must.Get(Parse(p))(b)
				for from := 0; from < n; from += batch.WindowRows {
					must.Do(b, block.Decode(from, batch.WindowRows, out, 0))
				}
				sum = crc32.ChecksumIEEE(out.Cell(batch.WindowRows - 1))
			}
			reportValues(b, n)
		})
		b.Run("select/"+name, func(b *testing.B) { benchSelect(b, p, n, cells[n/2]) })
		if p.Dict != nil {
			b.Run("codes/"+name, func(b *testing.B) { benchCodes(b, p, n) })
		}
		if want := crc32.ChecksumIEEE(cells[n-1]); sum != 0 && sum != want {
			b.Errorf("last cell has checksum %x, want %x", sum, want)
		}
	}
}

// reportValues reports how many values were processed, n each time.
func reportValues(b *testing.B, n int) {
	b.ReportMetric(float64(b.N)*float64(n)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
}

// benchSelect searches for a cell that occurs.
func benchSelect(b *testing.B, p Params, n int, cell []byte) {
	test := &batch.Predicate{Type: p.Type, Op: batch.Eq, Values: [][]byte{cell}}
	must.Do(b, test.Prepare())
	v, sel := batch.NewVector(p.Type, batch.WindowRows), batch.MakeBitmap(batch.WindowRows)
	found, handled := 0, false
	for b.Loop() {
		block, err := Parse(p)
		must.Do(b, err)
		found = 0
		for from := 0; from < n; from += batch.WindowRows {
			sel.SetRange(0, batch.WindowRows)
			if handled, err = block.Select(test, from, batch.WindowRows, sel, 0); err == nil && !handled {
				err = block.Decode(from, batch.WindowRows, v, 0)
				test.Eval(v, sel)
			}
			must.Do(b, err)
			found += sel.Count()
		}
	}
	if found == 0 {
		b.Error("nothing found")
	}
	reportValues(b, n)
}

// benchCodes reads codes without reading words.
func benchCodes(b *testing.B, p Params, n int) {
	codes, seen := make([]uint32, batch.WindowRows), uint32(0)
	for b.Loop() {
		block := must.Get(Parse(p))(b)
		for from := 0; from < n; from += batch.WindowRows {
			must.Do(b, block.(CodeBlock).Codes(from, batch.WindowRows, codes))
			seen |= codes[7]
		}
	}
	if int(seen) >= 2*len(p.Dict.Words) {
		b.Errorf("codes up to %d for %d words", seen, len(p.Dict.Words))
	}
	reportValues(b, n)
}

// BenchmarkSeek searches for keys in a payload of 4 KiB of a key index, parsed once, and parsed for
// each search.
func BenchmarkSeek(b *testing.B) {
	cells := make([][]byte, 400)
	for i := range cells {
		cells[i] = fmt.Appendf(nil, "customer-%08d", i*37)
	}
	w := mustBuilder(b, BuilderOptions{Type: schema.Binary, Encoding: schema.Prefix, BlockBytes: 4096})
	payloads, counts, _ := buildAll(w, schema.Binary, cells, 100)
	p := Params{Type: schema.Binary, Encoding: schema.Prefix, Payload: payloads[0]}
	block := must.Get(Parse(p))(b)
	i := 0
	for _, parsed := range []bool{true, false} {
		b.Run(fmt.Sprintf("parsed=%v", parsed), func(b *testing.B) {
			for b.Loop() {
				if !parsed {
					block, _ = Parse(p)
				}
				i = (i + 101) % counts[0]
				if at, exact, _ := block.Seek(cells[i]); at != i || !exact {
					b.Fatalf("seek gave %d, want %d", at, i)
				}
			}
		})
	}
}
