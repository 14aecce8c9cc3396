package tablet

import (
	"slices"

	"github.com/oribi-db/oribi/change"
	"github.com/oribi-db/oribi/internal/operand"
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
//	sums of some columns     the same ones    op with the sum of both
//
// Immutable columns, conditions, and rows that expire in between allow only the first two. Operands
// allow only the last one, since they may be refused.
func (sc *TableSchema) Folded(buf []byte, prev, op *Op) (folded Op, grown []byte, ok bool) {
	folded = *op
	switch {
	case op.Check != nil || prev.Check != nil:
		return folded, buf, false
	case op.Operands != nil || prev.Operands != nil:
		folded.Operands, ok = sc.joined(prev, op)
		return folded, buf, ok
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

// joined returns the operands of the one operation that does what prev and then op do, if there is one
// and it differs from op in them alone.
func (sc *TableSchema) joined(prev, op *Op) (*Operands, bool) {
	a, b := prev.Operands, op.Operands
	if a == nil || b == nil || prev.Kind != op.Kind || len(a.List) != len(b.List) || sc.immutable || len(sc.Expiry) > 0 ||
		!slices.Equal(op.Set, prev.Set) || op.Kind.updates() && !sameColumns(prev.Body, op.Body) {
		return nil, false
	}
	out := *b
	out.List = make([]operand.Operand, len(b.List))
	for k := range out.List {
		var ok bool
		o := &a.List[k]
		if out.List[k], ok = o.Join(&b.List[k], &sc.Schema.Columns[sc.Schema.IndexID(o.Column)]); !ok {
			return nil, false
		}
	}
	return &out, true
}

// sameColumns reports whether two updates set the same columns in the same order.
func sameColumns(a, b change.List) bool {
	x, y := a.Columns(), b.Columns()
	for {
		i, _, more := x.Next()
		if j, _, ok := y.Next(); ok != more || i != j {
			return false
		}
		if !more {
			return true
		}
	}
}

func (k OpKind) updates() bool { return k == Update || k == UpdateIgnore }

// MovesUnique reports whether op may give a unique index of the table other values than the operation before on
// its key.
func (t *Tablet) MovesUnique(sc *TableSchema, prev, op *Op) bool {
	for _, x := range t.Indexes() {
		if !x.Index().Unique {
			continue
		}
		for _, id := range x.Index().Columns {
			c := sc.Schema.IndexID(id)
			if c < 0 || sc.sets(op, c) && !(sc.Overwrites(prev) && sc.Overwrites(op) &&
				equalCells(sc.RowFormat.Cell(prev.Body, c), sc.RowFormat.Cell(op.Body, c))) {
				return true
			}
		}
	}
	return false
}

// sets reports whether an operation may change a column.
func (sc *TableSchema) sets(op *Op, column int) bool {
	id := sc.Schema.Columns[column].ID
	switch {
	case op.Operands.Has(id):
		return true
	case op.Kind == Update || op.Kind == UpdateIgnore:
		_, found := change.List(op.Body).Find(id)
		return found
	case op.upserts():
		return op.Set == nil || op.Set.Get(column)
	}
	return true
}
