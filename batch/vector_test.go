package batch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// cellsOf copies all cells of a vector, nil for NULL.
func cellsOf(v *Vector) [][]byte {
	out := make([][]byte, v.Len)
	for i := range out {
		if c := v.Cell(i); c != nil {
			out[i] = append([]byte{}, c...)
		}
	}
	return out
}

// checkVector compares a vector with its cells and checks the documented invariants of its form.
func checkVector(v *Vector, want [][]byte) error {
	if v.Len != len(want) {
		return fmt.Errorf("%d cells, want %d", v.Len, len(want))
	}
	for i, cell := range want {
		got := v.Cell(i)
		if (got == nil) != (cell == nil) || !bytes.Equal(got, cell) {
			return fmt.Errorf("cell %d is %x, want %x", i, got, cell)
		}
		if v.IsNull(i) != (cell == nil) {
			return fmt.Errorf("cell %d: NULL %t", i, v.IsNull(i))
		}
		if cell == nil && v.Type.Variable() && v.Dict == nil && v.Bytes[i] != nil {
			return fmt.Errorf("cell %d is NULL and has bytes %x", i, v.Bytes[i])
		}
	}
	if n := v.Len; v.Present != nil && (len(v.Present) < (n+63)/64 || v.Present.CountRange(0, n) != v.Present.Count()) {
		return fmt.Errorf("presence of %d cells: %x", n, v.Present)
	}
	switch w := v.Type.Width(); {
	case w > 0 && len(v.Data) != v.Len*w:
		return fmt.Errorf("%d bytes of data for %d cells", len(v.Data), v.Len)
	case w > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(v.Data)))%8 != 0:
		return fmt.Errorf("data is not aligned to 8 bytes")
	case w == 0 && v.Dict != nil && len(v.Codes) != v.Len:
		return fmt.Errorf("%d codes for %d cells", len(v.Codes), v.Len)
	case w == 0 && v.Dict == nil && len(v.Bytes) != v.Len:
		return fmt.Errorf("%d byte strings for %d cells", len(v.Bytes), v.Len)
	}
	return nil
}

// growing is a vector and the cells that it should have.
type growing struct {
	r    *rand.Rand
	v    *Vector
	want [][]byte
}

func (g *growing) source() (*Vector, [][]byte) {
	src := randomVector(g.r, g.v.Type, g.r.IntN(150), g.r.IntN(2) == 0, g.v.Type.Variable() && g.r.IntN(2) == 0)
	return src, cellsOf(src)
}

func (g *growing) randomCellOrNull() []byte {
	if g.r.IntN(4) == 0 {
		return nil
	}
	return randomCell(g.r, g.v.Type)
}

// step changes the vector in a random way and returns a description of the change.
func (g *growing) step() string {
	switch g.r.IntN(10) {
	case 9:
		src, cells := g.source()
		for range 1 + g.r.IntN(3) { // the second time v may have the dictionary of src
			from := g.r.IntN(src.Len + 1)
			to := from + g.r.IntN(src.Len-from+1)
			g.v.AppendCoded(src, from, to)
			g.want = append(g.want, cells[from:to]...)
		}
		return fmt.Sprintf("AppendCoded, codes %t", src.Dict != nil)
	case 0, 1:
		src, cells := g.source()
		from := g.r.IntN(src.Len + 1)
		to := from + g.r.IntN(src.Len-from+1)
		g.v.AppendRun(src, from, to)
		g.want = append(g.want, cells[from:to]...)
		return fmt.Sprintf("AppendRun of [%d, %d), codes %t", from, to, src.Dict != nil)
	case 2, 3:
		src, cells := g.source()
		sel := MakeBitmap(src.Len)
		for i := range src.Len {
			if g.r.IntN(3) > 0 {
				sel.Set(i)
			}
		}
		from := g.r.IntN(src.Len + 1)
		to := from + g.r.IntN(src.Len-from+1)
		g.v.AppendSelected(src, sel, from, to)
		for i := from; i < to; i++ {
			if sel.Get(i) {
				g.want = append(g.want, cells[i])
			}
		}
		return fmt.Sprintf("AppendSelected of [%d, %d), codes %t", from, to, src.Dict != nil)
	case 4, 5:
		cell := g.randomCellOrNull()
		g.v.AppendCell(cell)
		g.want = append(g.want, cell)
		return fmt.Sprintf("AppendCell %x", cell)
	case 6:
		if g.v.Len == 0 {
			return "nothing"
		}
		i, cell := g.r.IntN(g.v.Len), g.randomCellOrNull()
		g.v.SetCell(i, cell)
		g.want[i] = cell
		return fmt.Sprintf("SetCell %d %x", i, cell)
	case 7:
		if g.r.IntN(3) > 0 {
			g.v.Materialize()
			return "Materialize"
		}
		n, cell := g.r.IntN(100), g.randomCellOrNull()
		g.v.Fill(n, cell)
		g.want = nil
		for range n {
			g.want = append(g.want, cell)
		}
		return fmt.Sprintf("Fill %d of %x", n, cell)
	}
	if g.v.Type.Variable() && g.r.IntN(2) == 0 {
		g.v, g.want = g.source() // continue with a vector in dictionary form
		return "another vector"
	}
	n := g.r.IntN(3) * g.r.IntN(70)
	g.v.Reset(n)
	g.want = nil
	for i := range n {
		g.want = append(g.want, randomCell(g.r, g.v.Type))
		g.v.SetCell(i, g.want[i])
	}
	return fmt.Sprintf("Reset to %d", n)
}

func TestVectorMatchesModel(t *testing.T) {
	r := seedtest.Rand(t)
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for _, typ := range allTypes {
		t.Run(typ.String(), func(t *testing.T) {
			for range rounds {
				g := &growing{r: r, v: NewVector(typ, 0)}
				for range 30 {
					what := g.step()
					must.Do(t, checkVector(g.v, g.want), "after", what)
				}
			}
		})
	}
}

// A vector takes the dictionary of the first cells that are appended to it, and has no dictionary
// after cells with another one.
// A truncated vector has its first cells, and cells appended to it are as to a new one.
func TestTruncate(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range []schema.Type{schema.Int8, schema.Int64, schema.String} {
		for range 200 {
			v, want := &Vector{Type: typ}, [][]byte(nil)
			v.Reset(0)
			for range 4 {
				for range r.IntN(150) {
					var cell []byte
					if r.IntN(8) > 0 {
						cell = make([]byte, max(typ.Width(), 1))
						cell[0] = byte(r.IntN(256))
					}
					v.AppendCell(cell)
					want = append(want, cell)
				}
				n := r.IntN(len(want) + 2)
				v.Truncate(n)
				want = want[:min(n, len(want))]
				must.Do(t, v.Validate())
				must.Equal(t, v.Len, len(want))
				for i := range want {
					must.Equal(t, v.Cell(i), want[i], typ, "cell", i)
				}
				for i := v.Len; i < 64*len(v.Present); i++ {
					must.Equal(t, v.Present.Get(i), false, "bit", i, "after", v.Len)
				}
			}
		}
	}
	coded := &Vector{Type: schema.String}
	coded.UseCodes(&Dictionary{Words: [][]byte{[]byte("a"), []byte("b")}}, 3)
	coded.Codes[2] = 1
	coded.Truncate(2)
	must.Do(t, coded.Validate())
	must.Equal(t, string(coded.Cell(1)), "a")
}

func TestAppendCodedKeepsTheDictionary(t *testing.T) {
	a := &Vector{Type: schema.String, Len: 2, Dict: &Dictionary{Words: [][]byte{{'a'}, {'b'}}}, Codes: []uint32{1, 0}}
	b := &Vector{Type: schema.String, Len: 1, Dict: &Dictionary{Words: [][]byte{{'c'}}}, Codes: []uint32{0}}
	v := NewVector(schema.String, 0)
	for _, src := range []*Vector{a, a} {
		v.AppendCoded(src, 0, src.Len)
		must.Equal(t, v.Dict == a.Dict, true, "the vector is not in dictionary form")
	}
	v.AppendCoded(b, 0, 1)
	must.Equal(t, v.Dict, nil, "dictionary")
	must.Equal(t, fmt.Sprintf("%s", v.Bytes), "[b a b a c]", "cells")
}

// Appended cells are copies, except byte strings, so the source may be refilled at once.
func TestAppendRunCopiesFixedAliasesStrings(t *testing.T) {
	r := seedtest.Rand(t)
	for _, typ := range allTypes {
		src := randomVector(r, typ, 100, true, false)
		want := cellsOf(src)
		v := NewVector(typ, 0)
		v.AppendRun(src, 0, 50)
		all := MakeBitmap(100)
		all.SetRange(0, 100)
		v.AppendSelected(src, all, 50, 100)
		src.Reset(100)
		clear(src.Data)
		clear(src.Bytes)
		src.ZeroPresent()
		must.Do(t, checkVector(v, want), typ)
	}
}

// A vector that was dropped is used for columns of any type, like a new one.
func TestDroppedVectorIsLikeNew(t *testing.T) {
	types := []schema.Type{schema.Int8, schema.String, schema.Int64, schema.Binary, schema.Int128}
	r := seedtest.Rand(t)
	var v Vector
	for range 200 {
		v.Type = types[r.IntN(len(types))]
		n := r.IntN(40)
		v.Reset(0)
		var want [][]byte
		for range n {
			cell := make([]byte, v.Type.Width())
			for k := range cell {
				cell[k] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 {
				cell = nil
			}
			v.AppendCell(cell)
			want = append(want, cell)
		}
		if v.Len != n || v.Validate() != nil {
			t.Fatalf("%d cells, want %d: %v", v.Len, n, v.Validate())
		}
		for i := range want {
			must.Equal(t, v.Cell(i), want[i], v.Type, "cell", i)
			must.Equal(t, v.IsNull(i), want[i] == nil, v.Type, "cell", i)
		}
		limit := r.IntN(2) * 300
		v.Drop(limit)
		if v.Len != 0 || v.Present != nil || cap(v.Data) > limit || limit == 0 && v.Bytes != nil {
			t.Fatalf("a dropped vector of %d cells, %d bytes", v.Len, cap(v.Data))
		}
	}
}

func TestValuesAliasesData(t *testing.T) {
	v := NewVector(schema.Int32, 3)
	values := Values[int32](v)
	values[0], values[1], values[2] = 1, -2, 3
	must.Equal(t, v.Data, []byte{1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 3, 0, 0, 0}, "data")
	must.Equal(t, cap(v.Cell(1)), 4, "an append to a cell of 4 bytes may take")
	if Values[int32](NewVector(schema.Date, 0)) != nil {
		t.Error("a view of no cells")
	}
	defer func() {
		if recover() == nil {
			t.Error("a view of another width was returned")
		}
	}()
	Values[int64](v)
}

func TestNewBatchSelectsAllRows(t *testing.T) {
	b := New([]schema.Column{{Name: "a", Type: schema.Int64}, {Name: "b", Type: schema.String, Nullable: true}}, 100)
	check := func(n int) {
		t.Helper()
		if b.Len != n || b.Selected() != n || b.Selection.Count() != n || b.Columns[0].Len != n ||
			b.Columns[1].Len != n {
			t.Errorf("%d rows, %d selected, columns of %d and %d, want %d", b.Len, b.Selected(),
				b.Columns[0].Len, b.Columns[1].Len, n)
		}
	}
	check(100)
	b.Columns[1].SetCell(3, nil)
	b.Selection.ClearRange(0, 90)
	for _, n := range []int{70, 0, 4096} {
		b.Reset(n)
		check(n)
		if n > 3 && b.Columns[1].IsNull(3) {
			t.Error("a NULL remains after Reset")
		}
	}
}
