package history

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// ingest returns rows in key order, usually with new keys; sometimes one exists, or two rows are
// out of order.
func (g *Generator) ingest(t *model.Table, st *script.Step) {
	n := 1 + g.r.IntN(8)
	if g.r.IntN(3) == 0 {
		n = g.r.IntN(300)
	}
	refused := g.r.IntN(8) == 0
	like := script.Op{Ask: oribi.OpInsert}
	for range n {
		key := g.key(t)
		if live := t.Row(key, mvcc.Max) != nil; live && !refused {
			continue
		}
		op := script.Op{Ask: oribi.OpInsert, Table: t.Name, Cells: make([][]byte, len(t.Schema.Columns)),
			Set: make([]bool, len(t.Schema.Columns))}
		g.fill(t, &op, key, false, &like)
		for i := range key { // an ingest does not assign values of an auto-incrementing column
			op.Cells[i], op.Set[i] = key[i], true
		}
		st.Ops = append(st.Ops, op)
	}
	byKey := func(a, b script.Op) int {
		return model.CompareKeys(t.Schema, a.Cells[:t.Schema.Keys], b.Cells[:t.Schema.Keys])
	}
	slices.SortStableFunc(st.Ops, byKey)
	st.Ops = slices.CompactFunc(st.Ops, func(a, b script.Op) bool { return byKey(a, b) == 0 })
	if n := len(st.Ops); n > 1 && g.r.IntN(30) == 0 {
		i := g.r.IntN(n - 1)
		st.Ops[i], st.Ops[i+1] = st.Ops[i+1], st.Ops[i]
	}
	st.Size = 1 + g.r.IntN(40)
	if g.r.IntN(3) == 0 {
		st.Mask = g.r.Uint64() & g.r.Uint64() & g.r.Uint64()
	}
}

// ingest ingests rows into the store and compares the result.
func (r *Runner) ingest(st *script.Step) error {
	t, err := r.Store.Table(st.Table)
	if err != nil {
		return err
	}
	r.Counts.Operations += int64(len(st.Ops))
	out := r.Model.ResolveIngest(st)
	return r.take(out, st.Ops, true, func() (mvcc.Timestamp, error) {
		ts, rows, err := t.Ingest(r.ctx, func(yield func([]*batch.Vector, error) bool) {
			for i, part := range slices.Collect(slices.Chunk(st.Ops, max(st.Size, 1))) {
				var err error
				if st.Mask>>(i%64)&1 != 0 {
					err = t.Flush(r.ctx)
				}
				if !yield(vectorsOf(t.Schema(), part), err) {
					return
				}
			}
		})
		if err == nil && rows != int64(len(st.Ops)) {
			return ts, fmt.Errorf("%d rows were ingested, want %d", rows, len(st.Ops))
		}
		return ts, err
	})
}
