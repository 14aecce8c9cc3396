package encoding

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/oribi-db/oribi/batch"
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
		run("sum", func(v *planeView) { v.sum(&total, true, every, nil, 0, false) })
		run("product", func(v *planeView) { addProducts(&total, v, &views[0], true, true, every) })
		run("max", func(v *planeView) { v.extreme(true, true, every) })
	}
}
