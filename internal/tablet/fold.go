package tablet

import (
	"slices"

	"github.com/oribi-db/oribi/change"
)

// Folded returns the one operation that leaves a row as prev and then op leave it, whatever the row
// was before, if there is one. Both are encoded by sc and were accepted: prev has done what its kind
// says, and op has met its row as prev left it. The body may be in memory that is appended to buf.
//
//	prev                     op               folded
//	any                      delete           delete if the row exists
//	any                      full upsert      op
//	any                      insert           full upsert
//	full row                 update           full row with the update
//	update                   update           one update with the columns of both
//	upsert of some columns   the same ones    op
//
// Immutable columns, conditions, and rows that expire in between allow only the first two.
func (sc *TableSchema) Folded(buf []byte, prev, op *Op) (folded Op, grown []byte, ok bool) {
	folded = *op
	switch {
	case op.Check != nil || prev.Check != nil:
		return folded, buf, false
	case op.Kind.Deletes():
		folded.Kind = DeleteIgnore
		return folded, buf, true
	case sc.Overwrites(op):
		return folded, buf, true
	case sc.immutable || len(sc.Expiry) > 0:
		return folded, buf, false
	}
	switch {
	case op.Kind == Insert || op.Kind == InsertIgnore && prev.Kind.Deletes():
		folded.Kind, folded.Set, folded.Lacks = Upsert, nil, ""
		return folded, buf, true
	case op.upserts() && prev.upserts() && slices.Equal(op.Set, prev.Set):
		return folded, buf, true
	case op.Kind != Update && op.Kind != UpdateIgnore:
		return folded, buf, false
	case prev.Kind == Insert || prev.upserts() && prev.Set == nil:
		folded, start := *prev, len(buf)
		buf = sc.RowFormat.Apply(buf, prev.Body, op.Body)
		folded.Body = buf[start:len(buf):len(buf)]
		return folded, buf, true
	case prev.Kind == Update:
		start := len(buf)
		buf = append(buf, op.Body...)
		columns := change.List(prev.Body).Columns()
		for id, cell, more := columns.Next(); more; id, cell, more = columns.Next() {
			if _, again := change.List(op.Body).Find(id); !again {
				buf = change.AppendColumn(buf, id, cell)
			}
		}
		folded.Kind, folded.Body = Update, buf[start:len(buf):len(buf)]
		return folded, buf, true
	}
	return folded, buf, false
}

// Overwrites reports whether op leaves a row of which it sets all columns, whatever the row was before.
func (sc *TableSchema) Overwrites(op *Op) bool {
	return op.upserts() && op.Set == nil && op.Check == nil && !sc.immutable
}

func (op *Op) upserts() bool { return op.Kind == Upsert || op.Kind == UpsertIgnore }
