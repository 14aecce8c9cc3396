package aggregate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// Carries are due after 2^30 values, which no test adds.
func TestCarriesDoNotChangeFloatSums(t *testing.T) {
	r := seedtest.Rand(t)
	for range 200 {
		var plain, carried FloatSum
		for range 1 + r.IntN(50) {
			v := math.Ldexp(r.Float64()-0.5, r.IntN(200)-100)
			plain.Add(v)
			carried.dirty += carryEvery / 5
			carried.dirty = min(carried.dirty, carryEvery-1)
			carried.Add(v)
		}
		must.Equal(t, carried.Float64(), plain.Float64())
		last := len(carried.digits) - 1
		if carried.dirty == 0 && slices.ContainsFunc(carried.digits[:last],
			func(d int64) bool { return d>>digitBits != 0 }) {
			t.Fatalf("digits after a carry: %x", carried.digits)
		}
	}
}

// A batch may have many more groups than fit: no more of them than the limit are kept in memory.
func TestGroupsAboveTheLimitAreRefused(t *testing.T) {
	for name, fill := range map[string]func(v *batch.Vector, i int){
		"numbers": func(v *batch.Vector, i int) { batch.Values[int64](v)[i%v.Len] = int64(i) },
		"texts":   func(v *batch.Vector, i int) { v.Bytes[i%v.Len] = []byte(strings.Repeat(fmt.Sprint(i), 1000)) },
	} {
		columns := []schema.Column{{Name: "k", Type: schema.Int64}}
		if name == "texts" {
			columns[0].Type = schema.String
		}
		const limit = 1 << 20
		a := New(columns, []int{0}, []Figure{{Kind: CountRows}}, limit)
		b := batch.New(columns, batch.WindowRows)
		var err error
		for i := 0; err == nil && i < 100*b.Len; {
			for range b.Len {
				fill(b.Columns[0], i)
				i++
			}
			err = a.Add(b)
		}
		must.Contain(t, fmt.Sprint(err), "more than 1 MiB", name)
		if n := a.bytes(); n > 2*limit {
			t.Errorf("%s: %d bytes of groups, limit %d", name, n, limit)
		}
	}
}
