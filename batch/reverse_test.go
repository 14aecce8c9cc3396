package batch

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/oribi-db/oribi/internal/seedtest"
	"github.com/oribi-db/oribi/schema"
)

func TestReverseReversesRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 15, 63, 64, 65, 128, 200} {
		b := mixedBatch(n)
		for _, c := range []schema.Column{{Name: "1", Type: schema.Bool}, {Name: "2", Type: schema.Int16}, {Name: "4", Type: schema.Float}, {Name: "16", Type: schema.Int128}} {
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
			b.Reverse()
			slices.Reverse(want)
			slices.Reverse(selected)
			if b.Len != n || b.Selected() != b.Selection.CountRange(0, n) {
				t.Fatalf("%d rows: Len %d, %d selected, %d within", n, b.Len, b.Selected(), b.Selection.CountRange(0, n))
			}
			for c, v := range b.Columns {
				if err := v.Validate(); err != nil || v.Len != n {
					t.Fatalf("column %d: %d cells, %v", c, v.Len, err)
				}
			}
			for i := range n {
				if got := rowText(b, i); got != want[i] || b.Selection.Get(i) != selected[i] {
					t.Fatalf("%d rows, round %d, row %d: got %s, selected %t, want %s, %t", n, round, i, got, b.Selection.Get(i), want[i], selected[i])
				}
			}
		}
	}
}

func TestReverseDuplicateColumn(t *testing.T) {
	v := NewVector(schema.Int8, 4)
	copy(v.Data, []byte{1, 2, 3, 4})
	b := &RecordBatch{Columns: []*Vector{v, v}, Len: 4, Selection: Bitmap{0b1000}}
	b.Reverse()
	if !slices.Equal(v.Data, []byte{4, 3, 2, 1}) || b.Selection[0] != 0b0001 {
		t.Errorf("%v, selection %b", v.Data, b.Selection[0])
	}
}

func TestReverseReversesBits(t *testing.T) {
	seedtest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "bits")
		b, want := drawBitmap(t, n, "bit")
		b.reverse(n)
		slices.Reverse(want)
		if !slices.Equal(bools(b, n), want) || b.Count() != want.count(0, n) {
			t.Fatalf("%v, want %v", bools(b, n), want)
		}
	})
}
