package batch

import (
	"encoding/binary"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// A filter rests while it passes more than nine of ten rows: then all cells but NULLs pass, except
// in every 16th batch. It never excludes a cell that was added.
func TestInFilterRestsWhileItExcludesLittle(t *testing.T) {
	const n = 1024
	cell := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	p := Predicate{Type: schema.Int32, Op: InFilter, Filter: bloom.NewWithEstimates(10, 1e-9), MayRest: true}
	p.Filter.Add(cell(1))
	must.Do(t, p.Prepare())
	f := Test(p)
	var e FilterEval
	// run evaluates the filter on a batch in which added cells were added and others not, and row 0
	// is NULL. It returns how many of the others pass.
	run := func(added int) (falsePositives int) {
		v := NewVector(schema.Int32, n)
		for i := range n {
			value := uint32(2)
			if i < added {
				value = 1
			}
			copy(v.Data[4*i:], cell(value))
		}
		v.NeedPresent().Clear(0)
		sel := MakeBitmap(n)
		sel.SetRange(0, n)
		must.Do(t, e.Eval(&f, sel, func(p *Predicate, sel Bitmap) error {
			p.Eval(v, sel)
			return nil
		}))
		if sel.Get(0) || sel.CountRange(1, added) != added-1 {
			t.Fatalf("NULL passes: %t; %d of %d added cells pass", sel.Get(0), sel.CountRange(1, added), added-1)
		}
		return sel.CountRange(added, n)
	}
	const batches = restSample / n
	for range batches {
		must.Equal(t, run(n*95/100), 0, "false positives within the first sample")
	}
	for turn := range batches * restTurns {
		want := n - 100
		if turn%restTurns == restTurns-1 {
			want = 0 // a sample
		}
		must.Equal(t, run(100), want, "turn", turn, "false positives")
	}
	must.Equal(t, run(100), 0, "false positives after a sample of which few passed")
}

func TestPrepareRefusesExactTestsThatRest(t *testing.T) {
	p := Predicate{Type: schema.Int32, Op: NotNull, MayRest: true}
	must.Refuse(t, p.Prepare())
}
