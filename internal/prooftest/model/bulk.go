package model

import (
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// Matching returns the rows of a read, in key order, ignoring its limit.
func (t *Table) Matching(rd *script.Read) (out [][][]byte) {
	passes := t.filter(rd)
	for _, row := range t.Rows(rd.Newest()) {
		if passes(row) {
			out = append(out, row)
		}
	}
	return out
}

// filter returns a function that reports whether a row is in the range of a read and passes its
// tests.
func (t *Table) filter(rd *script.Read) func(row [][]byte) bool {
	s := t.Schema
	var tests []batch.Predicate
	for _, test := range rd.Tests {
		tests = append(tests, batch.Predicate{Type: s.Columns[test.Column].Type, Op: test.Op, Values: test.Values})
	}
	return func(row [][]byte) bool {
		if rd.From != nil && CompareKeys(s, row[:s.Keys], rd.From) < 0 ||
			rd.To != nil && CompareKeys(s, row[:s.Keys], rd.To) >= 0 {
			return false
		}
		for i := range tests {
			// Evaluate the predicate in the simplest way: one cell, unprepared.
			if !tests[i].EvalCell(row[rd.Tests[i].Column]) {
				return false
			}
		}
		return true
	}
}

// BulkOps returns the operations of a bulk call that is not a Restore: one for each row that it
// changes, in key order.
func (t *Table) BulkOps(st *script.Step) (ops []script.Op) {
	rows := t.Rows(mvcc.Max)
	if st.Kind != script.Truncate {
		rd := st.Read
		rd.AsOf = false
		rows = t.Matching(&rd)
	}
	for _, row := range rows {
		op := script.Op{Ask: oribi.OpDeleteIgnore, Table: t.Name,
			Cells: make([][]byte, len(row)), Set: make([]bool, len(row))}
		if st.Kind == script.UpdateWhere {
			op.Ask = oribi.OpUpdateIgnore
			copy(op.Cells, st.Ops[0].Cells)
			copy(op.Set, st.Ops[0].Set)
			op.Operands = st.Ops[0].Operands
		}
		for i := range t.Schema.Keys {
			op.Cells[i], op.Set[i] = row[i], true
		}
		ops = append(ops, op)
	}
	return ops
}

// RefusesSet reports whether an UpdateWhere is refused because of the columns that it sets: none, a
// column of the key, an immutable one, or NULL where it cannot be.
func (t *Table) RefusesSet(st *script.Step) bool {
	if len(st.Ops) == 0 || !slices.Contains(st.Ops[0].Set, true) {
		return true
	}
	op := &st.Ops[0]
	for i := range t.Schema.Columns {
		c := &t.Schema.Columns[i]
		if op.Set[i] && (i < t.Schema.Keys || c.Immutable || op.Cells[i] == nil && !c.Nullable) {
			return true
		}
	}
	return false
}

// Restored returns the outcome of a Restore to ts: each row that differs from its state at ts is
// set to that state.
func (t *Table) Restored(ts mvcc.Timestamp) *Outcome {
	o := &Outcome{Refused: -1}
	for _, r := range t.Order {
		then, now := r.At(ts), r.At(mvcc.Max)
		if now == nil && then != nil && t.alive(then, mvcc.Max) == nil {
			continue // it would be expired again
		}
		if (then == nil) != (now == nil) || string(AppendCells(nil, then)) != string(AppendCells(nil, now)) {
			o.Changes = append(o.Changes, rowChange{table: t, key: KeyText(r.Key), cells: r.Key, row: then})
		}
	}
	return o
}
