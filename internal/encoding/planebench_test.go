package encoding

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// BenchmarkPlanes computes on chunks of int64, with the given number of planes that are not
// constant, from views that are made before. It uses one core. ns/value is the time for each cell
// of a chunk, including the call.
func BenchmarkPlanes(b *testing.B) {
	const chunks, n = 16, chunkBytes / 8
	for _, significant := range []int{4, 11, 18, 24} {
		var views [chunks]planeView
		var cells []byte
		r := rand.New(rand.NewPCG(1, 1))
		for i := range views {
			cells = cells[:0]
			for range n {
				v := r.Uint64() >> (64 - significant)
				cells = append(cells, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), 0, 0, 0, 0)
			}
			views[i] = viewOf(cells, n, 8)
		}
		sel, every := batch.MakeBitmap(n), batch.MakeBitmap(n)
		every.SetRange(0, n)
		run := func(op string, f func(v *planeView)) {
			b.Run(fmt.Sprintf("op=%s/planes=%d", op, significant), func(b *testing.B) {
				i := 0
				for b.Loop() {
					f(&views[i%chunks])
					i++
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
			})
		}
		for _, op := range []batch.Operator{batch.Lt, batch.Eq} {
			p := &batch.Predicate{Type: schema.Int64, Op: op, Values: [][]byte{cells[:8]}}
			var test planeTest
			var s selections
			test.compile(p, p.Type)
			run(op.String(), func(v *planeView) {
				copy(sel, every)
				test.filter(v, sel, &s)
			})
		}
		var total Sum
		run("sum", func(v *planeView) { v.sum(&total, true, every, n, nil, 0, false) })
		run("product", func(v *planeView) { addProducts(&total, v, &views[0], true, true, every, n, new(cellGroup)) })
		run("max", func(v *planeView) { v.extreme(true, true, every) })
	}
}

// BenchmarkProductsOfFew multiplies a few selected cells of chunks of 1024, from views that are
// made before, in both ways.
func BenchmarkProductsOfFew(b *testing.B) {
	const n = chunkBytes / 8
	r := rand.New(rand.NewPCG(1, 1))
	for _, planes := range [][2]int{{4, 24}, {8, 8}, {24, 40}} {
		var views [2]planeView
		for k := range views {
			var cells []byte
			for range n {
				cells = binary.LittleEndian.AppendUint64(cells, r.Uint64()>>(64-planes[k]))
			}
			views[k] = viewOf(cells, n, 8)
		}
		for _, selected := range []int{1, 4, 20, 100} {
			sel := batch.MakeBitmap(n)
			for sel.Count() < selected {
				sel.Set(r.IntN(n))
			}
			var total Sum
			var group cellGroup
			name := fmt.Sprintf("planes=%dx%d/selected=%d/way=", planes[0], planes[1], selected)
			b.Run(name+"cells", func(b *testing.B) {
				for b.Loop() {
					x, y := views[0].gather(true), views[1].gather(true)
					x.addProducts(&total, &y, &group, sel)
				}
			})
			b.Run(name+"planes", func(b *testing.B) {
				for b.Loop() {
					addPlaneProducts(&total, &views[0], &views[1], true, true, sel, selected)
				}
			})
		}
	}
}

// BenchmarkNumberBlock computes on blocks of 32768 values in windows, like a scan. The blocks are
// parsed once and have found their planes, as in a cache.
func BenchmarkNumberBlock(b *testing.B) {
	for _, c := range []struct {
		typ  schema.Type
		bits int
	}{{schema.Int64, 4}, {schema.Int64, 11}, {schema.Int64, 18}, {schema.Int64, 24}, {schema.Int32, 14}} {
		const n = 32768
		cells := benchCells(c.typ, n, c.bits)
		w := mustBuilder(b, BuilderOptions{Type: c.typ, Encoding: schema.Bitshuffle, BlockBytes: 16 << 20})
		w.Append(vectorOf(c.typ, cells), 0, n)
		block := must.Get(Parse(Params{Type: c.typ, Encoding: schema.Bitshuffle, Payload: w.Finish(nil, 0),
			Chunks: &chunkMap{m: map[int][]byte{}}}))(b)
		numbers, sel := block.(NumberBlock), batch.MakeBitmap(batch.WindowRows)
		run := func(op string, f func(from int) (bool, error)) {
			b.Run(fmt.Sprintf("op=%s/type=%s/bits=%d", op, c.typ, c.bits), func(b *testing.B) {
				for b.Loop() {
					for from := 0; from < n; from += batch.WindowRows {
						sel.SetRange(0, batch.WindowRows)
						if ok, err := f(from); !ok || err != nil {
							b.Fatal(ok, err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/value")
			})
		}
		p := &batch.Predicate{Type: c.typ, Op: batch.Lt, Values: [][]byte{cells[0]}}
		run("<", func(from int) (bool, error) { return block.Select(p, from, batch.WindowRows, sel, 0) })
		var total Sum
		run("sum", func(from int) (bool, error) { return numbers.Sum(from, batch.WindowRows, sel, 0, &total) })
		run("product", func(from int) (bool, error) {
			return numbers.SumProducts(from, block, from, batch.WindowRows, sel, 0, &total)
		})
		greatest := Extreme{Greatest: true}
		run("max", func(from int) (bool, error) { return numbers.Extreme(from, batch.WindowRows, sel, 0, &greatest) })
	}
}
