package model

import (
	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// Holds reports whether a row meets the condition op. A nil row does not exist.
func (t *Table) Holds(op *script.Op, row [][]byte) bool {
	if op.Ask == script.OpIfAbsent || row == nil {
		return op.Ask == script.OpIfAbsent && row == nil
	}
	for _, test := range op.Tests {
		p := batch.Predicate{Type: t.Schema.Columns[test.Column].Type, Op: test.Op, Values: test.Values}
		if !p.EvalCell(row[test.Column]) {
			return false
		}
	}
	return true
}

// After returns the row that a key has once the operations on it are applied; nil when there is no
// row. refused reports whether one of the operations would be refused. It skips conditions,
// malformed operations, and operations on other keys or tables.
func (t *Table) After(m *Model, key [][]byte, ops []script.Op) (row [][]byte, refused bool) {
	if r := t.ByKey[KeyText(key)]; r != nil {
		row = r.At(mvcc.Max)
	}
	for i := range ops {
		op := &ops[i]
		if op.Table != t.Name || op.Condition() || m.Malformed(op) ||
			KeyText(op.Cells[:t.Schema.Keys]) != KeyText(key) {
			continue
		}
		if row, _, refused = t.Decide(op, row); refused {
			return nil, true
		}
		row = t.alive(row, mvcc.Max)
	}
	return row, false
}
