package prooftest

import (
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
)

// Conditions among the operations of a batch.
const (
	opIf       oribi.Op = 100 + iota // there is a row, and it passes the tests
	opIfAbsent                       // there is none
)

// askName is an operation's name in scripts.
func askName(a oribi.Op) string {
	switch a {
	case opIf:
		return "if"
	case opIfAbsent:
		return "ifabsent"
	}
	return a.String()
}

func (op *Op) condition() bool { return op.Ask == opIf || op.Ask == opIfAbsent }

// holds tells whether a condition holds for a row.
func (t *Table) holds(op *Op, row [][]byte) bool {
	if op.Ask == opIfAbsent || row == nil {
		return op.Ask == opIfAbsent && row == nil
	}
	for _, test := range op.Tests {
		p := batch.Predicate{Type: t.Schema.Columns[test.Column].Type, Op: test.Op, Values: test.Values}
		if !p.EvalCell(row[test.Column]) {
			return false
		}
	}
	return true
}

// addCondition adds a condition to a batch.
func addCondition(b *oribi.Batch, t *oribi.Table, op *Op) {
	s := t.Schema()
	key := rowValues(s, op.Cells[:s.Keys], nil)
	if op.Ask == opIfAbsent {
		b.IfAbsent(t, key)
		return
	}
	var tests []batch.Predicate
	for _, test := range op.Tests {
		tests = append(tests, batch.Predicate{Column: s.Columns[test.Column].Name, Op: test.Op, Values: test.Values})
	}
	b.If(t, key, tests...)
}

// condition makes a condition on a key, mostly one that holds for its row.
func (g *Generator) condition(t *Table, key, row [][]byte) Op {
	op := Op{Ask: opIf, Table: t.Name, Cells: make([][]byte, len(t.Schema.Columns)), Set: make([]bool, len(t.Schema.Columns))}
	copy(op.Cells, key)
	for i := range key {
		op.Set[i] = true
	}
	if row == nil != (g.r.IntN(30) == 0) {
		op.Ask = opIfAbsent
		return op
	}
	for range g.r.IntN(3) {
		op.Tests = append(op.Tests, g.test(t))
		if row != nil && !t.holds(&op, row) && g.r.IntN(20) > 0 {
			op.Tests = op.Tests[:len(op.Tests)-1]
		}
	}
	return op
}

// look compares what a batch shows of the keys of its first operations, before it is committed,
// with what the model makes of them.
func (r *Runner) look(b *oribi.Batch, ops []Op) error {
	if b.Err() != nil {
		return nil
	}
	for i := range ops[:min(len(ops), 4)] {
		t := r.Model.Tables[ops[i].Table]
		key := ops[i].Cells[:t.Schema.Keys]
		if slices.ContainsFunc(key, func(c []byte) bool { return c == nil }) {
			continue // it gets its key by the commit
		}
		row, refused := t.after(r.Model, key, ops)
		table, err := r.store.Table(t.Name)
		if err != nil {
			return err
		}
		r.Counts.Reads++
		got, err := b.Get(r.ctx, table, rowValues(t.Schema, key, nil))
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
		all := (&Read{}).columns(t.Schema)
		if err := differentValues(t.Schema, row, all, got); err != nil {
			return fmt.Errorf("batch, operation %d: %w", i, err)
		}
	}
	return nil
}

// after is the row of a key with the operations on it carried out; refused when one of them would
// be.
func (t *Table) after(m *Model, key [][]byte, ops []Op) (row [][]byte, refused bool) {
	if r := t.rows[keyText(key)]; r != nil && len(r.versions) > 0 {
		row = r.versions[len(r.versions)-1].cells
	}
	for i := range ops {
		op := &ops[i]
		if op.Table != t.Name || op.condition() || m.malformed(op) || keyText(op.Cells[:t.Schema.Keys]) != keyText(key) {
			continue
		}
		if row, _, refused = t.decide(op, row); refused {
			return nil, true
		}
	}
	return row, false
}
