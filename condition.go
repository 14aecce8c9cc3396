package oribi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// If makes the batch depend on a row: it is there and passes all predicates, as the newest state of
// the row and the batch's earlier operations leave it. Otherwise Commit changes nothing and returns
// a *RowError around ErrConflict. No other batch comes between the look and what this batch does,
// so If and Update are a compare-and-set. key names the key columns; predicates are as in Where.
func (b *Batch) If(t *Table, key Row, predicates ...Predicate) {
	b.condition(t, &tablet.Condition{}, predicates, func() { b.Row(OpDeleteIgnore, t, key) })
}

// IfAbsent makes the batch depend on a row that is not there, as If does on one that is.
func (b *Batch) IfAbsent(t *Table, key Row) {
	b.condition(t, &tablet.Condition{Absent: true}, nil, func() { b.Row(OpDeleteIgnore, t, key) })
}

// UpdateIf sets the named columns of a row that exists and for which all predicates are true, as the
// newest state and the batch's earlier operations leave it. Otherwise the row is refused with
// ErrConflict: the batch fails, or with AllowPartial goes without it. Predicates are as in Where.
func (b *Batch) UpdateIf(t *Table, row Row, predicates ...Predicate) {
	b.rowIf(OpUpdate, t, row, predicates)
}

// DeleteIf removes a row as UpdateIf updates one. key names the key columns.
func (b *Batch) DeleteIf(t *Table, key Row, predicates ...Predicate) {
	b.rowIf(OpDelete, t, key, predicates)
}

// rowIf adds an operation with a condition on its row.
func (b *Batch) rowIf(op Op, t *Table, row Row, predicates []Predicate) {
	p := b.part(t)
	if p == nil {
		return
	}
	f, err := t.bind(p.shape.Schema, predicates)
	if err != nil {
		b.spoil(err)
		return
	}
	before := len(p.ops)
	if b.Row(op, t, row); len(p.ops) > before {
		p.ops[before].Check = &tablet.Condition{Filter: f}
	}
}

// condition adds a condition on the row whose delete add adds: it takes the key columns, as a delete
// does.
func (b *Batch) condition(t *Table, c *tablet.Condition, predicates []Predicate, add func()) {
	p := b.part(t)
	if p == nil {
		return
	}
	var err error
	if c.Filter, err = t.bind(p.shape.Schema, predicates); err != nil {
		b.spoil(err)
		return
	}
	before, refused := len(p.ops), len(b.refused)
	add()
	switch {
	case len(p.ops) > before:
		p.ops[before].Kind, p.ops[before].Check = tablet.Check, c
	case len(b.refused) > refused:
		b.spoil(b.refused[refused])
	}
}

// spoil makes the batch fail as a whole, with AllowPartial too.
func (b *Batch) spoil(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Get reads a row as the batch would leave it: its newest published state with the batch's
// operations on it so far. Other batches may still come between; If rules that out. Rows to which
// Commit will give the value of an auto-incrementing column are not seen.
//
// Errors: those of Table.Get; the *RowError for which Commit would refuse an
// operation on the row as it stands.
func (b *Batch) Get(ctx context.Context, t *Table, key any, opts ...ColumnsOption) (Row, error) {
	o := collect(opts)
	if t == nil || t.store != b.store {
		return nil, fmt.Errorf("oribi: the table belongs to another store: %w", fault.ErrNoTable)
	}
	v, err := t.read(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer t.done(v)
	k, err := t.keyCells(v.Schema, key, false)
	if err != nil {
		return nil, err
	}
	cols, err := t.project(v.Shape, &o)
	if err != nil {
		return nil, err
	}
	encoded := v.Encoder.AppendKey(nil, k)
	cells, found, err := v.Get(encoded, v.All, nil)
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	if !found {
		cells = nil
	}
	if cells, err = b.after(t, v.Shape, encoded, cells); err != nil {
		return nil, err
	}
	if cells == nil {
		return nil, &lookup{tab: t.tab, key: encoded}
	}
	out := make([][]byte, len(cols))
	for i, c := range cols {
		out[i] = cells[c]
	}
	return newRow(v.Schema.Columns, cols, out), nil
}

// after carries out the batch's operations on a row, whose cells are given by shape; nil = no row.
func (b *Batch) after(t *Table, shape *tablet.Shape, key []byte, cells [][]byte) ([][]byte, error) {
	i := slices.IndexFunc(b.parts, func(p *part) bool { return p.table == t })
	if i < 0 {
		return cells, nil
	}
	p := b.parts[i]
	for _, k := range p.on(key) {
		op := &p.ops[k]
		if p.shape != shape {
			op = tablet.Converted(op, p.shape, shape)
		}
		var err error
		if cells, err = shape.After(op, cells); err != nil {
			return nil, &RowError{Row: op.Index, Table: t.tab.Name(), Key: t.tab.KeyText(key), Cause: err}
		}
	}
	return cells, nil
}

// on is the operations on a key, in their order. The index that finds them is made when it is first
// asked for.
func (p *part) on(key []byte) []int32 {
	if p.byKey == nil {
		p.byKey = map[string][]int32{}
	}
	for ; p.indexed < len(p.ops); p.indexed++ {
		if p.ops[p.indexed].Kind.Inserts() && p.shape.Schema.AutoIncrement() >= 0 {
			continue // Commit gives it its key
		}
		k := string(p.ops[p.indexed].Key)
		p.byKey[k] = append(p.byKey[k], int32(p.indexed))
	}
	return p.byKey[string(key)]
}

// Refused lists the rows that the last Commit with AllowPartial left out, in their order in the
// batch, each with its cause.
func (b *Batch) Refused() []*RowError { return b.outcomes }

// Assigned is the value of an auto-incrementing column that a Commit gave to a row.
type Assigned struct {
	Row   int // its place in the batch, from 0
	Value int64
}

// Assigned lists the values that the last Commit gave to inserted rows of tables with an
// auto-incrementing column, in the order of the batch. It holds until the next Commit.
func (b *Batch) Assigned() []Assigned { return b.assigned }

// sortRefused orders refused rows by their places in the batch.
func sortRefused(rows []*RowError) {
	slices.SortFunc(rows, func(x, y *RowError) int { return cmp.Compare(x.Row, y.Row) })
}
