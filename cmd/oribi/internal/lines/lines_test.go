package lines

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

// randomCell returns a random cell of type t that has only one text: no NaNs, and strings in UTF-8.
func randomCell(r *rand.Rand, t schema.Type) []byte {
	switch {
	case t == schema.Bool:
		return []byte{byte(r.IntN(2))}
	case t == schema.Float:
		return []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()) & 0x7f, byte(r.Uint32()) & 0xbf}
	case t == schema.Double:
		return []byte{1, 2, 3, 4, 5, byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()) & 0xbf}
	case !t.Variable():
		cell := make([]byte, t.Width())
		for i := range cell {
			cell[i] = byte(r.Uint32() >> (8 * r.IntN(4)))
		}
		return cell
	}
	cell := make([]byte, r.IntN(20))
	for i := range cell {
		if cell[i] = byte(r.IntN(128)); t == schema.Binary {
			cell[i] = byte(r.IntN(256))
		}
	}
	return cell
}

// The printed cells of any column are read back unchanged.
func TestPrintedCellsAreReadBack(t *testing.T) {
	seed := seedtest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	for typ := schema.Type(0); typ <= schema.Date; typ++ {
		if !typ.Valid() {
			continue
		}
		for _, array := range []bool{false, true} {
			v := &batch.Vector{Type: typ}
			if array {
				v.ResetArrays(0)
			}
			for range 300 {
				fill(r, v, array)
			}
			var text bytes.Buffer
			p := NewPrinter(&text, typ, false)
			must.Do(t, p.Vector(v))
			must.Do(t, p.Close())
			checkRead(t, text.String(), v, array)
		}
	}
}

// fill appends a cell, or a NULL.
func fill(r *rand.Rand, v *batch.Vector, array bool) {
	switch null := r.IntN(5) == 0; {
	case array && null:
		v.AppendNullArray()
	case array:
		elements := make([][]byte, r.IntN(4))
		for i := range elements {
			if r.IntN(4) > 0 {
				elements[i] = randomCell(r, v.Type)
			}
		}
		v.AppendArray(elements)
	case null:
		v.AppendCell(nil)
	default:
		v.AppendCell(randomCell(r, v.Type))
	}
}

// checkRead reads text and compares its cells with the cells of want.
func checkRead(t *testing.T, text string, want *batch.Vector, array bool) {
	t.Helper()
	in := NewReader(strings.NewReader(text), want.Type, array, true)
	got := &batch.Vector{Type: want.Type}
	in.Reset(got)
	for {
		err := in.Next(got)
		if err == io.EOF {
			break
		}
		must.Do(t, err, want.Type, in.Line)
	}
	must.Equal(t, got.Len, want.Len, want.Type)
	same := func(a, b *batch.Vector, i, k int) bool {
		return a.IsNull(i) == b.IsNull(k) && bytes.Equal(a.Cell(i), b.Cell(k))
	}
	for i := range want.Len {
		if !array {
			if !same(got, want, i, i) {
				t.Fatalf("%s: cell %d is %x, want %x", want.Type, i, got.Cell(i), want.Cell(i))
			}
			continue
		}
		from, to := got.Array(i)
		f, o := want.Array(i)
		if from != f || to != o || got.IsNull(i) != want.IsNull(i) {
			t.Fatalf("%s: cell %d has elements [%d,%d), want [%d,%d)", want.Type, i, from, to, f, o)
		}
		for k := from; k < to; k++ {
			if !same(got.Elements, want.Elements, k, k) {
				t.Fatalf("%s: element %d of cell %d differs", want.Type, k-from, i)
			}
		}
	}
}

func TestBytesCountsMemory(t *testing.T) {
	in := NewReader(strings.NewReader("\"abc\"\n\""+strings.Repeat("x", 1000)+"\"\n"), schema.String, false, false)
	v := &batch.Vector{Type: schema.String}
	in.Reset(v)
	for range 2 {
		must.Do(t, in.Next(v))
	}
	if in.Bytes < 1003 || in.Bytes > 1200 || in.Line != 2 {
		t.Errorf("%d bytes, line %d", in.Bytes, in.Line)
	}
	if in.Reset(v); in.Bytes != 0 || v.Len != 0 {
		t.Errorf("%d bytes, %d cells after Reset", in.Bytes, v.Len)
	}
}
