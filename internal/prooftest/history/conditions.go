package history

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/internal/prooftest/values"
)

// addCondition adds a condition to a batch.
func addCondition(b *oribi.Batch, t *oribi.Table, op *script.Op) {
	s := t.Schema()
	key := values.RowValues(s, op.Cells[:s.Keys], nil)
	if op.Ask == script.OpIfAbsent {
		b.IfAbsent(t, key)
		return
	}
	var tests []oribi.Predicate
	for _, test := range op.Tests {
		tests = append(tests, test.Predicate(s))
	}
	b.If(t, key, tests...)
}

// condition returns a condition on a key. Its row usually meets the condition.
func (g *Generator) condition(t *model.Table, key, row [][]byte) script.Op {
	op := script.Op{Ask: script.OpIf, Table: t.Name, Cells: make([][]byte, len(t.Schema.Columns)),
		Set: make([]bool, len(t.Schema.Columns))}
	copy(op.Cells, key)
	for i := range key {
		op.Set[i] = true
	}
	if row == nil != (g.r.IntN(30) == 0) {
		op.Ask = script.OpIfAbsent
		return op
	}
	for range g.r.IntN(3) {
		op.Tests = append(op.Tests, g.test(t))
		if row != nil && !t.Holds(&op, row) && g.r.IntN(20) > 0 {
			op.Tests = op.Tests[:len(op.Tests)-1]
		}
	}
	return op
}

// look compares the batch's own reads of the keys of its first operations, before it is committed,
// with the model.
func (r *Runner) look(b *oribi.Batch, ops []script.Op) error {
	if b.Err() != nil {
		return nil
	}
	for i := range ops[:min(len(ops), 4)] {
		t := r.Model.Tables[ops[i].Table]
		key := ops[i].Cells[:t.Schema.Keys]
		if slices.ContainsFunc(key, func(c []byte) bool { return c == nil }) {
			continue // the commit assigns its key
		}
		row, refused := t.After(r.Model, key, ops)
		table, err := r.Store.Table(t.Name)
		if err != nil {
			return err
		}
		r.Counts.Reads++
		got, err := b.Get(r.ctx, table, values.RowValues(t.Schema, key, nil))
		switch {
		case refused:
			if err = want(err, oribi.ErrRow); err != nil {
				return fmt.Errorf("batch, operation %d: %w", i, err)
			}
			continue
		case row == nil:
			if err = want(err, oribi.ErrNotFound); err != nil {
				return fmt.Errorf("batch, operation %d: row %v: %w", i, got, err)
			}
			continue
		case err != nil:
			return fmt.Errorf("batch, operation %d: %w", i, err)
		}
		all := (&script.Read{}).ColumnsOf(t.Schema)
		if err := differentValues(t.Schema, row, all, got); err != nil {
			return fmt.Errorf("batch, operation %d: %w", i, err)
		}
	}
	return nil
}
