package model

import (
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
	"github.com/oribi-db/oribi/schema"
)

// Rebase returns a copy of an outcome for m, a clone of the model that o was made for. It leaves
// out changes of tables that m does not have.
func (o *Outcome) Rebase(m *Model) *Outcome {
	if o == nil {
		return nil
	}
	out := &Outcome{Refused: o.Refused}
	for _, ch := range o.Changes {
		if ch.table = m.Tables[ch.table.Name]; ch.table != nil {
			out.Changes = append(out.Changes, ch)
		}
	}
	return out
}

// Outcome is the result of a write batch: a refusal, or the rows that it changes.
type Outcome struct {
	Refused int   // index of the operation that ends the batch; −1 = none
	Cause   error // the error must wrap it besides ErrRow; nil = only ErrRow is required
	Changes []rowChange

	Left     []int            // operations that a partial commit leaves out
	Assigned []oribi.Assigned // values of auto-incrementing columns
	Results  []Result         // of operands
}

// Result is the cell that an operand has given a column.
type Result struct {
	Op     int // without counting ranges
	Column *schema.Column
	Cell   []byte
}

// Rows returns the number of rows that the batch changes.
func (o *Outcome) Rows() int64 { return int64(len(o.Changes)) }

// rowChange is the state of one key after the batch; a nil row means that it does not exist.
type rowChange struct {
	table *Table
	key   string
	cells [][]byte // at least the key's
	row   [][]byte
	auto  bool // the commit has assigned the key, and no other operation names it
}

// Resolve returns the outcome of a write batch and changes nothing.
//
// The store refuses a malformed operation when it is added to the batch. The first malformed
// operation is therefore reported before any that fails against the table's state. A partial batch
// leaves out refused operations, with two exceptions that fail all of it: a condition that is not
// met and a misused auto-incrementing column (wrongAuto).
// Source: tablet spec §2.6, §12.4, §12.6.
func (m *Model) Resolve(ops []script.Op, partial bool) *Outcome {
	malformed := map[int]bool{}
	for i := range ops {
		if ops[i].Range != nil {
			continue
		}
		s := m.Tables[ops[i].Table].Schema
		if malformed[i] = m.Malformed(&ops[i]); malformed[i] && (!partial || wrongAuto(s, &ops[i])) {
			return &Outcome{Refused: i}
		}
	}
	o := &Outcome{Refused: -1}
	at := map[string]int{} // from table and key to an index in o.Changes
	next := map[*Table]int64{}
	ranges := 0
	for i := range ops {
		op, t := &ops[i], m.Tables[ops[i].Table]
		if op.Range != nil {
			ranges++
			o.deleteRange(t, op.Range, at)
			continue
		}
		if malformed[i] {
			o.Left = append(o.Left, i)
			continue
		}
		op, value := t.given(op, next)
		if value > 0 {
			o.Assigned = append(o.Assigned, oribi.Assigned{Row: i - ranges, Value: value})
		}
		key := KeyText(op.Cells[:t.Schema.Keys])
		j, seen := at[t.Name+"\x00"+key]
		var row [][]byte
		if seen {
			o.Changes[j].auto = false
			row = t.alive(o.Changes[j].row, mvcc.Max)
		} else if r := t.ByKey[key]; r != nil {
			row = r.At(mvcc.Max)
		}
		if op.Condition() {
			if !t.Holds(op, row) {
				return &Outcome{Refused: i, Cause: oribi.ErrConflict}
			}
			continue
		}
		after, cause, refused := t.Decide(op, row)
		if !refused && after != nil {
			o.Results = append(o.Results, t.results(i-ranges, op, row != nil, after)...)
		}
		switch {
		case refused && partial:
			o.Left = append(o.Left, i)
		case refused:
			return &Outcome{Refused: i, Cause: cause}
		case sameRow(after, row):
		case seen:
			o.Changes[j].row = after
		default:
			at[t.Name+"\x00"+key] = len(o.Changes)
			o.Changes = append(o.Changes, rowChange{t, key, op.Cells, after, value > 0})
		}
	}
	return o
}

// deleteRange deletes the rows in the range of a read, without those that the transaction has inserted and cannot
// see, since their keys are assigned now. at has the rows that o changes, by table and key.
func (o *Outcome) deleteRange(t *Table, rd *script.Read, at map[string]int) {
	in := t.filter(rd)
	for i := range o.Changes {
		if ch := &o.Changes[i]; ch.table == t && !ch.auto && in(ch.cells) {
			ch.row = nil
		}
	}
	for _, r := range t.Order {
		key := KeyText(r.Key)
		if _, seen := at[t.Name+"\x00"+key]; !seen && in(r.Key) && r.At(mvcc.Max) != nil {
			at[t.Name+"\x00"+key] = len(o.Changes)
			o.Changes = append(o.Changes, rowChange{table: t, key: key, cells: r.Key})
		}
	}
}

// results returns the results of the operands of the i-th operation that is no range, whose row is after.
func (t *Table) results(i int, op *script.Op, existed bool, after [][]byte) (list []Result) {
	if !existed && (op.Ask == oribi.OpUpdate || op.Ask == oribi.OpUpdateIgnore) {
		return nil
	}
	for k := range after {
		c := &t.Schema.Columns[k]
		if op.Set[k] && op.Operand(k) != "" && !(existed && c.Immutable) {
			list = append(list, Result{i, c, after[k]})
		}
	}
	return list
}

func sameRow(a, b [][]byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Malformed reports whether an operation is refused regardless of the table's rows.
func (m *Model) Malformed(op *script.Op) bool {
	s := m.Tables[op.Table].Schema
	if op.Condition() {
		return false
	}
	if wrongAuto(s, op) {
		return true
	}
	others, lacks := 0, false
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.AutoIncrement && op.Ask.Inserts():
		case i < s.Keys && !op.Set[i]:
			return true
		case op.Set[i] && op.Cells[i] == nil && !c.Nullable:
			return true
		case i >= s.Keys && op.Set[i]:
			others++
		case !op.Set[i] && c.Default == nil && !c.Nullable:
			lacks = true
		}
	}
	switch op.Ask {
	case oribi.OpInsert, oribi.OpInsertIgnore:
		return lacks
	case oribi.OpUpdate, oribi.OpUpdateIgnore:
		return others == 0
	case oribi.OpDelete, oribi.OpDeleteIgnore:
		return others > 0
	}
	return false
}

// Decide implements the result table: it returns the row after an operation on row. A nil row does
// not exist, before or after. cause is the error of a refused operation besides ErrRow, if any.
func (t *Table) Decide(op *script.Op, row [][]byte) (next [][]byte, cause error, refused bool) {
	live := row != nil
	switch op.Ask {
	case oribi.OpInsert, oribi.OpInsertIgnore:
		switch {
		case live && op.Ask == oribi.OpInsert:
			return nil, oribi.ErrKeyExists, true
		case live:
			return row, nil, false
		}
		return t.newRow(op), nil, false
	case oribi.OpUpsert, oribi.OpUpsertIgnore:
		if live {
			next, cause = t.set(op, row)
			return next, cause, next == nil
		}
		if next = t.newRow(op); next == nil {
			return nil, nil, true // a required column is not set, or the result of an operand does not fit
		}
		return next, nil, false
	case oribi.OpUpdate, oribi.OpUpdateIgnore:
		next, cause = t.set(op, row)
		if next == nil && row != nil || op.Ask == oribi.OpUpdate && t.setsImmutable(op) {
			return nil, cause, true
		}
		if live {
			return next, nil, false
		}
	case oribi.OpDelete, oribi.OpDeleteIgnore:
		if live {
			return nil, nil, false
		}
	}
	return row, oribi.ErrNotFound, op.Ask == oribi.OpUpdate || op.Ask == oribi.OpDelete
}

// newRow returns the row that an insert creates: columns that are not set get their default, else
// NULL. It returns nil when such a column has no default and is not nullable.
func (t *Table) newRow(op *script.Op) [][]byte {
	row := slices.Clone(op.Cells)
	for i := range row {
		c := &t.Schema.Columns[i]
		if op.Set[i] {
			var ok bool
			if row[i], ok = t.valueAfter(op, i, c.Default); !ok {
				return nil
			}
			continue
		}
		if row[i] = c.Default; c.Default == nil && !c.Nullable {
			return nil
		}
	}
	return row
}

// setsImmutable reports whether an operation sets an immutable column.
func (t *Table) setsImmutable(op *script.Op) bool {
	for i := range t.Schema.Columns {
		if t.Schema.Columns[i].Immutable && op.Set[i] {
			return true
		}
	}
	return false
}

// set returns a copy of row with the columns that op sets; row itself when op sets only the key.
// When op sets an immutable column, set returns nil; the Ignore kinds skip that column instead. It
// also returns nil, with a cause, when the result of an operand does not fit its column.
func (t *Table) set(op *script.Op, row [][]byte) (_ [][]byte, cause error) {
	if (op.Ask == oribi.OpUpsert || op.Ask == oribi.OpUpdate) && t.setsImmutable(op) {
		return nil, nil
	}
	next := row
	for i := t.Schema.Keys; i < len(row); i++ {
		if !op.Set[i] || t.Schema.Columns[i].Immutable {
			continue
		}
		cell, ok := t.valueAfter(op, i, row[i])
		if !ok {
			return nil, oribi.ErrOverflow
		}
		if op.Operand(i) != "" && row[i] != nil && string(cell) == string(row[i]) {
			continue // not part of the change
		}
		if &next[0] == &row[0] {
			next = slices.Clone(row)
		}
		next[i] = cell
	}
	return next, nil
}
