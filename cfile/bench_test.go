package cfile

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cache"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

const benchRows = 1 << 20

// benchFile is a column of 2^20 random numbers of 20 bits.
func benchFile(b *testing.B, o WriterOptions, nulls float64) *block.Memory {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	v := batch.NewVector(o.Type, benchRows)
	for i := range benchRows {
		switch {
		case nulls > 0 && rng.Float64() < nulls:
			v.SetCell(i, nil)
		case o.Type.Variable():
			v.SetCell(i, fmt.Appendf(nil, "word%03d", rng.IntN(500)))
		default:
			v.SetCell(i, binary.LittleEndian.AppendUint64(nil, uint64(rng.IntN(1<<20)))[:o.Type.Width()])
		}
	}
	return writeAll(b, o, v)
}

func writeAll(t testing.TB, o WriterOptions, v *batch.Vector) *block.Memory {
	t.Helper()
	out := &block.Memory{Number: 17}
	writeTo(t, out, o, v)
	return out
}

func writeTo(t testing.TB, out *block.Memory, o WriterOptions, v *batch.Vector) {
	t.Helper()
	w, err := NewWriter(out, o)
	if err == nil {
		err = w.Append(v)
	}
	if err == nil {
		err = w.Finish()
	}
	must.Do(t, err)
}

func open(t testing.TB, src block.Source, c *cache.Cache) *Reader {
	t.Helper()
	return must.Get(Open(src, ReaderOptions{Cache: c, Arrays: true}))(t)
}

func BenchmarkReadVector(b *testing.B) {
	for _, c := range []struct {
		name  string
		o     WriterOptions
		nulls float64
		cache bool
	}{
		{"type=int64/enc=bitshuffle/nulls=0/cache=no", WriterOptions{Type: schema.Int64}, 0, false},
		{"type=int64/enc=bitshuffle/nulls=0/cache=yes", WriterOptions{Type: schema.Int64}, 0, true},
		{"type=int64/enc=bitshuffle/nulls=0.1/cache=no", WriterOptions{Type: schema.Int64, Nullable: true}, 0.1, false},
		{"type=int32/enc=bitshuffle/nulls=0/cache=no", WriterOptions{Type: schema.Int32}, 0, false},
		{"type=int64/enc=plain/nulls=0/cache=no", WriterOptions{Type: schema.Int64, Encoding: schema.Plain}, 0, false},
		{"type=string/enc=dict/nulls=0/cache=no", WriterOptions{Type: schema.String}, 0, false},
		{"type=string/enc=plain/nulls=0/cache=no", WriterOptions{Type: schema.String, Encoding: schema.Plain},
			0, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.PositionalIndex = true
			src := benchFile(b, c.o, c.nulls)
			var keep *cache.Cache
			if c.cache {
				keep = cache.New(64 << 20)
			}
			r := open(b, src, keep)
			v := &batch.Vector{Type: c.o.Type}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				cr := r.NewColumnReader()
				for at := 0; at < benchRows; at += batch.WindowRows {
					if n, err := cr.ReadVector(batch.Ordinal(at), batch.WindowRows, v); err != nil ||
						n != batch.WindowRows {
						b.Fatal(n, err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, exact := range []bool{true, false} {
		for _, t := range []schema.Type{schema.Int64, schema.String} {
			b.Run(fmt.Sprintf("type=%v/exact=%v", t, exact), func(b *testing.B) {
				src := benchFile(b, WriterOptions{Type: t, PositionalIndex: true}, 0)
				v := &batch.Vector{Type: t}
				must.Get(open(b, src, nil).NewColumnReader().ReadVector(0, benchRows, v))(b)
				v.Materialize()
				b.ResetTimer()
				for range b.N {
					writeAll(b, WriterOptions{Type: t, PositionalIndex: true, Exact: exact}, v)
				}
				b.ReportMetric(float64(b.N)*benchRows/b.Elapsed().Seconds()/1e6, "Mrows/s")
			})
		}
	}
}

func BenchmarkCell(b *testing.B) {
	for _, c := range []struct {
		name  string
		o     WriterOptions
		nulls float64
	}{
		{"type=int64/nulls=0", WriterOptions{Type: schema.Int64}, 0},
		{"type=int64/nulls=0.1", WriterOptions{Type: schema.Int64, Nullable: true}, 0.1},
		{"type=string", WriterOptions{Type: schema.String}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.PositionalIndex = true
			r := open(b, benchFile(b, c.o, c.nulls), cache.New(64<<20))
			rng := rand.New(rand.NewPCG(1, 2))
			ords := make([]batch.Ordinal, 4096)
			for i := range ords {
				ords[i] = batch.Ordinal(rng.IntN(benchRows))
			}
			for _, o := range ords {
				must.Get(r.Cell(o))(b)
			}
			b.ReportAllocs()
			b.ResetTimer()
			n := 0
			for i := range b.N {
				cell := must.Get(r.Cell(ords[i&4095]))(b)
				n += len(cell)
			}
			b.ReportMetric(float64(n)/float64(b.N), "bytes/cell")
		})
	}
}

func BenchmarkSeek(b *testing.B) {
	v := batch.NewVector(schema.Binary, benchRows)
	for i := range v.Bytes {
		v.Bytes[i] = fmt.Appendf(nil, "customer%08d/order%04d", i/10, i%10)
	}
	src := writeAll(b, WriterOptions{Type: schema.Binary, Encoding: schema.Prefix, Compression: schema.LZ4,
		BlockBytes: 4096, ValueIndex: true, Exact: true}, v)
	r := open(b, src, cache.New(256<<20))
	rng := rand.New(rand.NewPCG(1, 2))
	b.ReportAllocs()
	for i := range benchRows {
		if i%64 == 0 {
			must.Get2(r.Seek(v.Bytes[i]))(b)
		}
	}
	order := make([]int, 4096)
	for i := range order {
		order[i] = rng.IntN(benchRows)
	}
	b.ResetTimer()
	for i := range b.N {
		want := order[i&4095]
		ord, exact, err := r.Seek(v.Bytes[want])
		if err != nil || !exact || int(ord) != want {
			b.Fatal(ord, exact, err)
		}
	}
}

// BenchmarkRuns sums a sorted column in runs of 1000 equal values: row by row, and run by run.
func BenchmarkRuns(b *testing.B) {
	v := batch.NewVector(schema.Int64, benchRows)
	want := int64(0)
	for i, cells := 0, batch.Values[int64](v); i < benchRows; i++ {
		cells[i] = int64(i / 1000)
		want += cells[i]
	}
	r := open(b, writeAll(b, WriterOptions{Type: schema.Int64, Encoding: schema.RLE, PositionalIndex: true}, v), nil)
	total := func(v *batch.Vector) (sum int64) {
		for _, x := range batch.Values[int64](v) {
			sum += x
		}
		return sum
	}
	bench := func(name string, pass func(c *ColumnReader) (int64, error)) {
		b.Run("by="+name, func(b *testing.B) {
			for b.Loop() {
				if sum, err := pass(r.NewColumnReader()); err != nil || sum != want {
					b.Fatal(sum, err)
				}
			}
			reportValues(b, benchRows)
		})
	}
	bench("rows", func(c *ColumnReader) (sum int64, err error) {
		v := &batch.Vector{Type: schema.Int64}
		for at := 0; at < benchRows && err == nil; at += batch.WindowRows {
			_, err = c.ReadVector(batch.Ordinal(at), batch.WindowRows, v)
			sum += total(v)
		}
		return sum, err
	})
	bench("runs", func(c *ColumnReader) (sum int64, err error) {
		err = c.ReadRuns(0, benchRows, func(r Run) error {
			if r.Cells != nil {
				sum += total(r.Cells)
			} else {
				sum += int64(r.Rows) * int64(binary.LittleEndian.Uint64(r.Cell))
			}
			return nil
		})
		return sum, err
	})
}

// BenchmarkSelect tests all rows of a cached column of random numbers in windows. Numbers of one
// bit have one plane to compare, so that nearly all of the time is the work that each window,
// cblock and chunk takes whatever it contains.
func BenchmarkSelect(b *testing.B) {
	for _, bits := range []int{1, 18} {
		v, rng := batch.NewVector(schema.Int64, benchRows), rand.New(rand.NewPCG(1, 2))
		for i := range batch.Values[int64](v) {
			batch.Values[int64](v)[i] = rng.Int64N(1 << bits)
		}
		r := open(b, writeAll(b, WriterOptions{Type: schema.Int64, PositionalIndex: true}, v), cache.New(64<<20))
		p := &batch.Predicate{Type: schema.Int64, Op: batch.Lt,
			Values: [][]byte{binary.LittleEndian.AppendUint64(nil, 1<<bits*3/4)}}
		must.Do(b, p.Prepare())
		for _, window := range []int{batch.WindowRows, 16 * batch.WindowRows} {
			b.Run(fmt.Sprintf("bits=%d/window=%d", bits, window), func(b *testing.B) {
				sel, c := batch.MakeBitmap(window), r.NewColumnReader()
				for b.Loop() {
					for at := 0; at < benchRows; at += window {
						sel.SetRange(0, window)
						if handled, err := c.Select(batch.Ordinal(at), window, p, sel); !handled || err != nil {
							b.Fatal(handled, err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchRows/batch.WindowRows),
					"ns/4096-rows")
			})
		}
	}
}
