package batch

import (
	"slices"
	"testing"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

func TestArrayFormCellsAndElements(t *testing.T) {
	v := NewArrays(schema.Int8)
	for round := range 3 { // later rounds reuse memory
		v.ResetArrays(0)
		v.AppendArray([][]byte{{1}, nil, {3}})
		v.AppendArray(nil)
		v.AppendNullArray()
		for range 100 {
			v.AppendArray([][]byte{{7}})
		}
		if v.Len != 103 || v.Elements.Len != 103 || len(v.Offsets) != 104 {
			t.Fatalf("round %d: %d cells, %d elements, %d offsets", round, v.Len, v.Elements.Len, len(v.Offsets))
		}
		for i, want := range map[int][2]int{0: {0, 3}, 1: {3, 3}, 2: {3, 3}, 3: {3, 4}, 102: {102, 103}} {
			from, to := v.Array(i)
			if from != want[0] || to != want[1] || v.IsNull(i) != (i == 2) {
				t.Errorf("round %d: cell %d is [%d,%d), NULL %v", round, i, from, to, v.IsNull(i))
			}
		}
		if v.Elements.IsNull(0) || !v.Elements.IsNull(1) || v.Elements.Cell(2)[0] != 3 || v.Present.Count() != 102 {
			t.Errorf("round %d: wrong elements", round)
		}
	}
	v.ResetArrays(5)
	if v.Len != 5 || v.Present != nil || !slices.Equal(v.Offsets, make([]uint32, 6)) || v.Elements.Len != 0 {
		t.Errorf("reset to %d cells, offsets %v", v.Len, v.Offsets)
	}
	if v.Reset(2); v.Elements != nil || len(v.Data) != 2 {
		t.Errorf("reset to single cells: %+v", v)
	}
}

func TestEvalOnArrayForm(t *testing.T) {
	v := NewArrays(schema.Int8)
	v.AppendArray([][]byte{{1}})
	v.AppendNullArray()
	v.AppendArray(nil)
	for op, want := range map[Operator]uint64{IsNull: 0b010, NotNull: 0b101, Eq: 0, Ne: 0, Ge: 0} {
		p := Predicate{Type: schema.Int8, Op: op}
		if op <= Ge {
			p.Values = [][]byte{{1}}
		}
		sel := MakeBitmap(3)
		sel.SetRange(0, 3)
		p.Eval(v, sel)
		must.Equal(t, sel[0], want, op)
	}
}
