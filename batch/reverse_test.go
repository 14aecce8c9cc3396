package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func TestReverseReversesRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 15, 63, 64, 65, 128, 200} {
		b := mixedBatch(n)
		for _, c := range []schema.Column{{Name: "1", Type: schema.Bool}, {Name: "2", Type: schema.Int16},
			{Name: "4", Type: schema.Float}, {Name: "16", Type: schema.Int128}} {
			v := NewVector(c.Type, n)
			for i := range v.Data {
				v.Data[i] = byte(i / c.Type.Width() % 2)
			}
			b.Schema, b.Columns = append(b.Schema, c), append(b.Columns, v)
		}
		var want []string
		var selected []bool
		for i := range n {
			if r.IntN(3) == 0 {
				b.Selection.Clear(i)
			}
			want, selected = append(want, rowText(b, i)), append(selected, b.Selection.Get(i))
		}
		for round := range 2 {
			reverse(b)
			slices.Reverse(want)
			slices.Reverse(selected)
			must.Equal(t, b.Len, n, n, "rows: Len")
			must.Equal(t, b.Selected(), b.Selection.CountRange(0, n), n, "rows: selected")
			for c, v := range b.Columns {
				must.Do(t, v.Validate())
				must.Equal(t, v.Len, n, "column", c, "cells")
			}
			for i := range n {
				must.Equal(t, rowText(b, i), want[i], n, "rows, round", round, "row", i)
				must.Equal(t, b.Selection.Get(i), selected[i], n, "rows, round", round, "row", i, "selected")
			}
		}
	}
}

// reverse reverses the rows of b.
func reverse(b *RecordBatch) {
	for _, v := range b.Columns {
		v.Reverse()
	}
	b.Selection.Reverse(b.Len)
}

// Every length is divided into another number of blocks.
func TestReverseReversesCellsOfAnyNumber(t *testing.T) {
	r := seedtest.Rand(t)
	for _, width := range []int{1, 2, 4, 8, 16} {
		for n := range 300 {
			data := growAligned(nil, n*width)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			var want []byte
			for cell := range slices.Chunk(slices.Clone(data), width) {
				want = append(slices.Clone(cell), want...)
			}
			reverseCells(data, width)
			must.Equal(t, data, want, n, "cells of", width, "bytes")
		}
	}
}

func TestReverseReversesBits(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "bits")
		b, want := drawBitmap(t, n, "bit")
		b.Reverse(n)
		slices.Reverse(want)
		if !slices.Equal(bools(b, n), want) || b.Count() != want.count(0, n) {
			t.Fatalf("%v, want %v", bools(b, n), want)
		}
	})
}
