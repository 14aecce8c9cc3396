package model

import (
	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/mvcc"
)

// DeleteRange deletes the rows of a range of keys. byRow says that the store deletes each row that the
// transaction sees there, and so reads the range; if not, the rows that are there at the commit are deleted.
func (x *Tx) DeleteRange(t *Table, rd *script.Read, byRow bool) {
	if byRow && len(x.Scan(t, rd, 0, false)) == 0 {
		return
	}
	op := script.Op{Ask: oribi.OpDeleteIgnore, Table: t.Name, Range: rd}
	x.deleteRange(t, rd)
	x.Ops = append(x.Ops, op)
}

func (x *Tx) deleteRange(t *Table, rd *script.Read) {
	in, passes := x.table(t), t.filter(rd)
	in.wrote, in.deleted = true, append(in.deleted, rd)
	for key, r := range in.own {
		if passes(r.Key) {
			in.own[key] = &Row{Key: r.Key, Versions: []version{{x.at, nil}}, table: t}
		}
	}
}

// RollbackTo undoes all operations but the first n, a former length of Ops. It reports whether the others
// are accepted, as Advance does.
func (x *Tx) RollbackTo(n int) bool {
	x.Ops = x.Ops[:n:n]
	return x.redo()
}

// Advance makes the transaction read the state at a timestamp that is not below the former one. It reports
// whether the operations are accepted there: operands of rows that the transaction has not read may not be.
func (x *Tx) Advance(at mvcc.Timestamp) bool {
	if at == x.at {
		return true
	}
	x.at = at
	return x.redo()
}

// redo applies the operations again.
func (x *Tx) redo() (accepted bool) {
	for _, in := range x.tables {
		in.wrote, in.own, in.deleted = false, map[string]*Row{}, nil
	}
	accepted = true
	for i := range x.Ops {
		op := &x.Ops[i]
		t := x.m.Tables[op.Table]
		if op.Range != nil {
			x.deleteRange(t, op.Range)
			continue
		}
		if t.Schema.AutoIncrement() >= 0 && op.Ask.Inserts() {
			x.table(t).wrote = true
			continue
		}
		key := op.Cells[:t.Schema.Keys]
		after, _, refused := t.Decide(op, x.row(t, KeyText(key)))
		if accepted = accepted && !refused; !refused {
			x.table(t).write(t, key, x.at, after)
		}
	}
	return accepted
}

// GetBy reads the row with the given values in some columns, which include the key. It returns nil if
// there is none.
func (x *Tx) GetBy(t *Table, columns []int, values [][]byte) [][]byte {
	l := txLookup{key: make([][]byte, t.Schema.Keys), columns: columns, values: values}
	for i, c := range columns {
		if c < t.Schema.Keys {
			l.key[c] = values[i]
		}
	}
	in, row := x.table(t), x.row(t, KeyText(l.key))
	found := l.finds(row)
	if !found || in.own[KeyText(l.key)] == nil { // else it is the row that was written, wherever others are
		in.lookups = append(in.lookups, l)
	}
	if !found {
		return nil
	}
	return x.Get(t, l.key)
}

// UsesIndexes reports whether the transaction may have read a table by an index, or written in a way in which
// it could not if there was one.
func (x *Tx) UsesIndexes(t *Table) bool {
	in := x.tables[t]
	if in == nil {
		return false
	}
	for _, g := range in.ranges {
		if g.index {
			return true
		}
	}
	return len(in.lookups) > 0 || len(in.deleted) > 0
}
