package prooftest

import (
	"slices"

	"github.com/oribi-db/oribi"
)

// outcome is what becomes of a write batch: a refusal, or the rows that it changes.
type outcome struct {
	refused int   // index of the operation that ends the batch; −1 = none
	cause   error // what errors.Is must find besides ErrRow; nil when only ErrRow is promised
	changes []rowChange

	left     []int            // operations that a partial commit leaves out
	assigned []oribi.Assigned // values of auto-incrementing columns
}

// rowChange is a key's state after the batch; no row: it is not there.
type rowChange struct {
	table *Table
	key   string
	cells [][]byte // of the key, at least
	row   [][]byte
}

// Resolve works out a write batch. Nothing is changed.
//
// Operations that no state could accept are refused as they are added, so the first of them counts
// before any that meets the wrong state. A partial batch leaves out what is refused, save what
// refuses the whole of it: a condition, and what is said wrongly of an auto-incrementing column.
// Source: tablet spec §2.6, §12.4, §12.6.
func (m *Model) resolve(ops []Op, partial bool) *outcome {
	malformed := map[int]bool{}
	for i := range ops {
		s := m.Tables[ops[i].Table].Schema
		if malformed[i] = m.malformed(&ops[i]); malformed[i] && (!partial || wrongAuto(s, &ops[i])) {
			return &outcome{refused: i}
		}
	}
	o := &outcome{refused: -1}
	at := map[string]int{} // table and key to index in changes
	next := map[*Table]int64{}
	for i := range ops {
		op, t := &ops[i], m.Tables[ops[i].Table]
		if malformed[i] {
			o.left = append(o.left, i)
			continue
		}
		op, value := t.given(op, next)
		if value > 0 {
			o.assigned = append(o.assigned, oribi.Assigned{Row: i, Value: value})
		}
		key := keyText(op.Cells[:t.Schema.Keys])
		j, seen := at[t.Name+"\x00"+key]
		var row [][]byte
		if seen {
			row = o.changes[j].row
		} else if r := t.rows[key]; r != nil && len(r.versions) > 0 {
			row = r.versions[len(r.versions)-1].cells
		}
		if op.condition() {
			if !t.holds(op, row) {
				return &outcome{refused: i, cause: oribi.ErrConflict}
			}
			continue
		}
		after, cause, refused := t.decide(op, row)
		switch {
		case refused && partial:
			o.left = append(o.left, i)
		case refused:
			return &outcome{refused: i, cause: cause}
		case sameRow(after, row):
		case seen:
			o.changes[j].row = after
		default:
			at[t.Name+"\x00"+key] = len(o.changes)
			o.changes = append(o.changes, rowChange{t, key, op.Cells, after})
		}
	}
	return o
}

func sameRow(a, b [][]byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// malformed tells whether an operation is refused whatever the table holds.
func (m *Model) malformed(op *Op) bool {
	s := m.Tables[op.Table].Schema
	if op.condition() {
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

// decide is the result table: what an operation makes of a row, nil when there is none.
func (t *Table) decide(op *Op, row [][]byte) (next [][]byte, cause error, refused bool) {
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
			next = t.set(op, row)
			return next, nil, next == nil
		}
		if next = t.newRow(op); next == nil {
			return nil, nil, true // a column that a new row has to have is not set
		}
		return next, nil, false
	case oribi.OpUpdate, oribi.OpUpdateIgnore:
		next = t.set(op, row)
		if next == nil && row != nil || op.Ask == oribi.OpUpdate && t.setsImmutable(op) {
			return nil, nil, true
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

// newRow is the row that an insert makes: defaults, else NULL, where no value was given; nil when a
// column can be neither.
func (t *Table) newRow(op *Op) [][]byte {
	row := slices.Clone(op.Cells)
	for i := range row {
		if op.Set[i] {
			continue
		}
		c := &t.Schema.Columns[i]
		if row[i] = c.Default; c.Default == nil && !c.Nullable {
			return nil
		}
	}
	return row
}

// setsImmutable tells whether an operation gives an immutable column a value.
func (t *Table) setsImmutable(op *Op) bool {
	for i := range t.Schema.Columns {
		if t.Schema.Columns[i].Immutable && op.Set[i] {
			return true
		}
	}
	return false
}

// set is the row with the given columns replaced; the very row when none but the key is given, nil
// when one is immutable, which the Ignore kinds pass over.
func (t *Table) set(op *Op, row [][]byte) [][]byte {
	if (op.Ask == oribi.OpUpsert || op.Ask == oribi.OpUpdate) && t.setsImmutable(op) {
		return nil
	}
	next := row
	for i := t.Schema.Keys; i < len(row); i++ {
		if !op.Set[i] || t.Schema.Columns[i].Immutable {
			continue
		}
		if &next[0] == &row[0] {
			next = slices.Clone(row)
		}
		next[i] = op.Cells[i]
	}
	return next
}
