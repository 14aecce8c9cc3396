package oribi

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/tablet"
)

// If makes the batch depend on a row: when the batch is committed, the row must exist and all
// predicates must be true for it, in its newest state with the batch's earlier operations applied.
// Otherwise Commit changes nothing and returns a *RowError that wraps ErrConflict. No other batch
// can change the row between the test and the commit, so If and Update together are a
// compare-and-set. key names the key columns; predicates are as in Where.
func (b *Batch) If(t *Table, key Row, predicates ...Predicate) {
	b.condition(t, &tablet.Condition{}, predicates, func() { b.Row(OpDeleteIgnore, t, key) })
}

// IfAbsent makes the batch depend on a row that does not exist, as If does on an existing row.
func (b *Batch) IfAbsent(t *Table, key Row) {
	b.condition(t, &tablet.Condition{Absent: true}, nil, func() { b.Row(OpDeleteIgnore, t, key) })
}

// UpdateIf sets the named columns of a row if it exists and all predicates are true for it, in its
// newest state with the batch's earlier operations applied. Otherwise the row is refused with
// ErrConflict: Commit fails, and CommitPartial leaves the row out. Predicates are as in
// Where.
func (b *Batch) UpdateIf(t *Table, row Row, predicates ...Predicate) {
	b.rowIf(OpUpdate, t, row, predicates)
}

// DeleteIf deletes a row under the same conditions as UpdateIf updates one. key names the key
// columns only.
func (b *Batch) DeleteIf(t *Table, key Row, predicates ...Predicate) {
	b.rowIf(OpDelete, t, key, predicates)
}

// rowIf adds an operation with a condition on its row.
func (b *Batch) rowIf(op Op, t *Table, row Row, predicates []Predicate) {
	p := b.opsOf(t)
	if p == nil {
		return
	}
	f, err := t.filter(p.schema.Schema, predicates, false)
	if err != nil {
		b.spoil(err)
		return
	}
	before := len(p.ops)
	if b.Row(op, t, row); len(p.ops) > before {
		p.ops[before].Check = &tablet.Condition{Filter: f}
	}
}

// condition adds a condition on a row. add adds a delete of that row, which condition turns into
// the test: both take the key columns only.
func (b *Batch) condition(t *Table, c *tablet.Condition, predicates []Predicate, add func()) {
	p := b.opsOf(t)
	if p == nil {
		return
	}
	var err error
	if c.Filter, err = t.filter(p.schema.Schema, predicates, false); err != nil {
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

// Get reads a row as the batch would leave it: its newest published state with the batch's
// operations so far applied. Other batches may change the row before Commit; use If to exclude
// that. Get does not see rows whose key contains an auto-incrementing column that Commit has yet to
// assign.
//
// Errors: as for Table.Get; the *RowError with which Commit would refuse an operation on the row
// in its present state.
func (b *Batch) Get(ctx context.Context, t *Table, key any, opts ...ColumnsOption) (Row, error) {
	o := collect(opts)
	if t == nil || t.store != b.store {
		return nil, fmt.Errorf("oribi: the table belongs to another store: %w", fault.ErrNoTable)
	}
	var v view
	err := t.read(ctx, &o, &v)
	if err != nil {
		return nil, err
	}
	defer t.done(&v)
	encoded, err := t.appendKey(nil, v.TableSchema, key, false)
	if err != nil {
		return nil, err
	}
	cols, err := t.project(v.TableSchema, &o)
	if err != nil {
		return nil, err
	}
	cells, found, err := v.Get(encoded, v.All, nil)
	if err != nil {
		return nil, fmt.Errorf("oribi: %w", err)
	}
	if !found {
		cells = nil
	}
	if cells, err = b.after(t, &v, encoded, cells); err != nil {
		return nil, err
	}
	if cells == nil {
		return nil, t.missing(encoded)
	}
	out := make([][]byte, len(cols))
	for i, c := range cols {
		out[i] = cells[c]
	}
	return bind.Row(v.Schema.Columns, cols, out), nil
}

// Refused returns the rows that the last CommitPartial left out, in their order in the
// batch, each with its cause.
func (b *Batch) Refused() []*RowError { return b.outcomes }

// Assigned returns the values that the last Commit assigned to inserted rows of tables with an
// auto-incrementing column, in the order of the batch. The slice is valid until the next Commit.
func (b *Batch) Assigned() []Assigned { return b.assigned }

// sortRefused sorts refused rows by their positions in the batch.
func sortRefused(rows []*RowError) {
	slices.SortFunc(rows, func(x, y *RowError) int { return cmp.Compare(x.Row, y.Row) })
}
