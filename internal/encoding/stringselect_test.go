package encoding

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/memtest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// similarStrings returns n byte strings that are hard to tell apart: they share long prefixes, are
// prefixes of each other, or differ in 00 and ff bytes at their ends.
func similarStrings(r *rand.Rand, n int) [][]byte {
	prefixes := [][]byte{{}, []byte("custome"), []byte("customer"), bytes.Repeat([]byte("long "), 40)}
	cells := make([][]byte, n)
	for i := range cells {
		c := bytes.Clone(prefixes[r.IntN(1+i*len(prefixes)/n)])
		for range r.IntN(12) {
			c = append(c, "\x00\x00ab\xff"[r.IntN(5)])
		}
		cells[i] = c
	}
	return cells
}

// Select finds the same values as a test of each complete value, in each form of a payload of byte
// strings, sorted or not.
func TestSelectOfStringsAgreesWithValues(t *testing.T) {
	r := seedtest.Rand(t)
	for _, c := range []struct {
		enc             schema.Encoding
		interval, limit int
	}{{schema.Plain, 0, 0}, {schema.Plain, 0, 1}, {schema.Prefix, 1, 0}, {schema.Prefix, 3, 0},
		{schema.Prefix, 16, 0}, {schema.Prefix, farRestarts, 0}} {
		for _, n := range []int{1, 5, 64, 1500} {
			for _, sorted := range []bool{false, true} {
				cells := similarStrings(r, n)
				if sorted {
					slices.SortFunc(cells, bytes.Compare)
				}
				b := mustBuilder(t, BuilderOptions{Type: schema.Binary, Encoding: c.enc,
					RestartInterval: c.interval, BlockBytes: 1 << 20})
				b.AppendAll(vectorOf(schema.Binary, cells), 0, n)
				block := must.Get(Parse(Params{Type: schema.Binary, Encoding: c.enc, Payload: b.Finish(nil, 0),
					Limit: c.limit}))(t)
				t.Run(fmt.Sprintf("enc=%v/interval=%d/limit=%d/n=%d/sorted=%v", c.enc, c.interval, c.limit, n,
					sorted), func(t *testing.T) {
					for range 40 {
						checkSelect(t, block, schema.Binary, cells, r)
						checkDecodeSelected(t, block, cells, r)
					}
				})
			}
		}
	}
}

// All comparisons are made on the encoded values.
func TestSelectHandlesComparisonsOfStrings(t *testing.T) {
	cells := stringCells("", "a", "ab", "b")
	for _, enc := range []schema.Encoding{schema.Plain, schema.Prefix} {
		b := mustBuilder(t, BuilderOptions{Type: schema.String, Encoding: enc})
		b.AppendAll(vectorOf(schema.String, cells), 0, len(cells))
		block := must.Get(Parse(Params{Type: schema.String, Encoding: enc, Payload: b.Finish(nil, 0)}))(t)
		for op := batch.Eq; op <= batch.In; op++ {
			sel := batch.MakeBitmap(len(cells))
			if handled, err := block.Select(&batch.Predicate{Type: schema.String, Op: op, Values: cells[1:2]},
				0, len(cells), sel, 0); !handled || err != nil {
				t.Errorf("%v %v: handled %v, %v", enc, op, handled, err)
			}
		}
	}
}

// checkDecodeSelected compares the values that DecodeSelected decodes, and checks that it decodes
// no others.
func checkDecodeSelected(t *testing.T, b Block, cells [][]byte, r *rand.Rand) {
	t.Helper()
	sparse, ok := b.(SparseBlock)
	if !ok {
		return
	}
	from, selAt, at := r.IntN(len(cells)), r.IntN(100), r.IntN(20)
	n := r.IntN(len(cells) - from + 1)
	sel := batch.MakeBitmap(selAt + n + 70)
	for i, rare := 0, 1+r.IntN(60); i < selAt+n+70; i += 1 + r.IntN(rare) {
		sel.Set(i)
	}
	v := batch.NewVector(schema.Binary, at+n+1)
	other := []byte("other")
	for i := range v.Bytes {
		v.Bytes[i] = other
	}
	sparse.DecodeSelected(from, n, sel, selAt, v, at)
	for i, got := range v.Bytes {
		want := other
		if k := i - at; k >= 0 && k < n && sel.Get(selAt+k) {
			want = cells[from+k]
		}
		must.Equal(t, string(got), string(want), from, from+n, i)
	}
}

// Values of a short payload may be long, if each is the one before: selected ones share its memory.
func TestSelectedLongValuesTakeLittleMemory(t *testing.T) {
	const long, n = 1 << 16, 4096
	b := mustBuilder(t, BuilderOptions{Type: schema.Binary, Encoding: schema.Prefix, RestartInterval: n,
		BlockBytes: 1 << 30})
	v, zeros := batch.NewVector(schema.Binary, n), make([]byte, long)
	for i := range v.Bytes {
		v.Bytes[i] = zeros[:long-i/16] // each value begins the one before
	}
	b.AppendAll(v, 0, n)
	block := must.Get(Parse(Params{Type: schema.Binary, Encoding: schema.Prefix, Payload: b.Finish(nil, 0)}))(t)
	sel := batch.MakeBitmap(n)
	for i := 0; i < n; i += 8 {
		sel.Set(i)
	}
	got := batch.NewVector(schema.Binary, n)
	allocated := memtest.Allocated(func() { block.(SparseBlock).DecodeSelected(0, n, sel, 0, got, 0) })
	if allocated > 4*long {
		t.Errorf("%d bytes allocated", allocated)
	}
	for i := sel.Next(0); i >= 0; i = sel.Next(i + 1) {
		must.Equal(t, got.Bytes[i], v.Bytes[i], i)
		must.Equal(t, cap(got.Bytes[i]), len(got.Bytes[i]), i)
	}
}
