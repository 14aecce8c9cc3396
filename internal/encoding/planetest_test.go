package encoding

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/fuzztest"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// planeTypes are types of each order and width.
var planeTypes = []schema.Type{schema.Int8, schema.Uint8, schema.Int16, schema.Uint16, schema.Date, schema.Uint32,
	schema.Int64, schema.Uint64, schema.Decimal128, schema.Float, schema.Double}

// randomSelection returns a selection of n cells: all, none, or some of them.
func randomSelection(r *rand.Rand, n int) []uint64 {
	sel := batch.MakeBitmap(n)
	switch few := r.IntN(4); few {
	case 0:
		sel.SetRange(0, n)
	default:
		for i := range n {
			if r.IntN(1<<few) == 0 {
				sel.Set(i)
			}
		}
	}
	if r.IntN(8) == 0 {
		sel.ClearRange(n/3, n)
	}
	return sel
}

// specialFloats sets some cells to numbers that floats order in their own way.
func specialFloats(r *rand.Rand, cells []byte, n int, typ schema.Type) {
	special := []float64{0, math.Copysign(0, -1), math.NaN(), -math.NaN(), math.Inf(1), math.Inf(-1), 1, -1, 1.5}
	for range r.IntN(n) {
		i, f := r.IntN(n), special[r.IntN(len(special))]
		if typ.Width() == 4 {
			binary.LittleEndian.PutUint32(cells[4*i:], math.Float32bits(float32(f)))
		} else {
			binary.LittleEndian.PutUint64(cells[8*i:], math.Float64bits(f))
		}
	}
}

// wideCell returns cell i of the given stored width as a cell of the type.
func wideCell(cells []byte, i, width int, typ schema.Type) []byte {
	c := cellAt(cells, i, width)
	b := binary.LittleEndian.AppendUint64(nil, c.lo)
	return binary.LittleEndian.AppendUint64(b, c.hi)[:typ.Width()]
}

// randomTest returns a predicate with values that occur, that almost occur, or that are arbitrary.
func randomTest(r *rand.Rand, typ schema.Type, cells []byte, n, width int) *batch.Predicate {
	p := &batch.Predicate{Type: typ, Op: batch.Eq + batch.Operator(r.IntN(7))}
	count := 1
	if p.Op == batch.In {
		count = r.IntN(6)
	}
	for range count {
		value := wideCell(cells, r.IntN(n), width, typ)
		switch r.IntN(5) {
		case 0:
			value[r.IntN(len(value))] ^= 1 << r.IntN(8)
		case 1:
			value[0] += byte(1 + r.IntN(2))
		case 2:
			for i := range value {
				value[i] = byte(r.IntN(2)) * 0xff
			}
		}
		if p.Op == batch.In && r.IntN(8) == 0 {
			value = nil
		}
		p.Values = append(p.Values, value)
	}
	return p
}

// checkTest compares the planes with a loop over the cells: those that match all of ps, which have
// one type.
func checkTest(ps []*batch.Predicate, v *planeView, cells []byte, n int, sel []uint64) error {
	var test planeTest
	if !test.compileAll(ps, ps[0].Type) {
		if slices.ContainsFunc(ps, func(p *batch.Predicate) bool { return p.Op == batch.Ne }) && len(ps) > 1 {
			return nil
		}
		return fmt.Errorf("not a test on planes")
	}
	matches := func(i int) bool {
		cell := wideCell(cells, i, v.width, ps[0].Type)
		return !slices.ContainsFunc(ps, func(p *batch.Predicate) bool { return !p.EvalCell(cell) })
	}
	text := ""
	for _, p := range ps {
		text += fmt.Sprintf("%s %s %x, ", p.Type, p.Op, p.Values)
	}
	// Words after the selection show whether the kernels stop at its end.
	memory := slices.Grow(slices.Clone(sel), 2*stripWords)[:len(sel)+2*stripWords]
	after := memory[len(sel):]
	for i := range after {
		after[i] = 0x5555555555555555
	}
	got := memory[:len(sel)]
	test.filter(v, got, new(selections))
	if slices.ContainsFunc(after, func(w uint64) bool { return w != 0x5555555555555555 }) {
		return fmt.Errorf("%s%d cells of %d bytes: wrote after the selection", text, n, v.width)
	}
	for i := range sel {
		var want uint64
		for j := 64 * i; j < min(n, 64*i+64); j++ {
			if sel[i]>>(j&63)&1 != 0 && matches(j) {
				want |= 1 << (j & 63)
			}
		}
		if got[i] != want {
			return fmt.Errorf("%s%d cells of %d bytes, word %d: %x, want %x of %x", text, n, v.width, i,
				got[i], want, sel[i])
		}
	}
	return nil
}

func TestPlanesAgreeWithEvalCell(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range planeTypes {
		widths := []int{typ.Width()}
		if typ == schema.Uint32 {
			widths = []int{1, 2, 4} // narrowed
		}
		for _, width := range widths {
			for _, n := range viewSizes(width) {
				for range 3 {
					cells := viewCells(r, n, width)
					if typ == schema.Float || typ == schema.Double {
						specialFloats(r, cells, n, typ)
					}
					v := viewOf(cells, n, width)
					for range 1 + 800/n {
						ps := []*batch.Predicate{randomTest(r, typ, cells, n, width)}
						for r.IntN(2) == 0 {
							ps = append(ps, randomTest(r, typ, cells, n, width))
						}
						must.Do(t, checkTest(ps, &v, cells, n, randomSelection(r, n)))
					}
				}
			}
		}
	}
}

func TestPlanesRefuseOtherTests(t *testing.T) {
	many := make([][]byte, maxSpans+1)
	for _, p := range []batch.Predicate{
		{Type: schema.String, Op: batch.Eq, Values: [][]byte{{1}}},
		{Type: schema.Bool, Op: batch.Eq, Values: [][]byte{{1}}},
		{Type: schema.Int32, Op: batch.Eq, Values: [][]byte{{1}}},
		{Type: schema.Int32, Op: batch.Lt},
		{Type: schema.Int32, Op: batch.In, Values: many},
		{Type: schema.Int32, Op: batch.InFilter},
		{Type: schema.Int32, Op: batch.IsNull},
	} {
		must.Equal(t, new(planeTest).compile(&p, p.Type), false, p.Type, p.Op, p.Values)
	}
}

// FuzzPlaneTest tests cells that the input contains with values at its start.
func FuzzPlaneTest(f *testing.F) {
	for k := range planeTypes {
		f.Add(uint8(k), uint8(1+k%7), uint16(k),
			[]byte("\x03\x00\x00\x00\x00\x00\x00\xff\x01\x02\x03\x04\x05\x06\x07\x08"))
	}
	fuzztest.Run(f, func(t *testing.T, kind, op uint8, n uint16, input []byte) {
		typ := planeTypes[int(kind)%len(planeTypes)]
		width := typ.Width()
		if typ == schema.Uint32 {
			width >>= op >> 6 % 3
		}
		value := func() []byte {
			value := make([]byte, typ.Width())
			input = input[copy(value, input):]
			return value
		}
		p := &batch.Predicate{Type: typ, Op: batch.Eq + batch.Operator(op%7)}
		for k := 0; k == 0 || p.Op == batch.In && k < int(op>>3&3); k++ {
			p.Values = append(p.Values, value())
		}
		ps := []*batch.Predicate{p}
		if op&32 != 0 {
			ps = append(ps, &batch.Predicate{Type: typ, Op: batch.Lt + batch.Operator(op>>3&3),
				Values: [][]byte{value()}})
		}
		cells, size := make([]byte, chunkBytes), (1+int(n)%(chunkBytes/width/8))*8
		if len(input) > 0 {
			fill(cells[:chunkBytes/len(input)*len(input)], input)
		}
		sel := batch.MakeBitmap(size)
		sel.SetRange(int(n>>8)%size, size)
		v := viewOf(cells[:size*width], size, width)
		must.Do(t, checkTest(ps, &v, cells, size, sel))
	})
}
