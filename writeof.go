package oribi

import (
	"context"
	"reflect"

	"github.com/oribi-db/oribi/internal/tablet"
	"github.com/oribi-db/oribi/mvcc"
)

// Put upserts rows: it inserts each, or sets the struct's columns in the row that has its key. All
// rows are committed at one timestamp, durably, or none. Errors: as for Batch.Commit.
func (t *TableOf[T]) Put(ctx context.Context, rows ...T) (mvcc.Timestamp, error) {
	return t.commit(ctx, OpUpsert, rows)
}

// Insert is like Put for rows that must not exist. An auto-incrementing column gets its value from the
// table: to learn it, insert in a write batch and call Batch.Assigned. Errors: ErrKeyExists if there is a row with the key of one; the errors of
// Batch.Commit.
func (t *TableOf[T]) Insert(ctx context.Context, rows ...T) (mvcc.Timestamp, error) {
	return t.commit(ctx, OpInsert, rows)
}

// Update is like Put for rows that must exist. Errors: ErrNotFound if one does not; the errors of
// Batch.Commit.
func (t *TableOf[T]) Update(ctx context.Context, rows ...T) (mvcc.Timestamp, error) {
	return t.commit(ctx, OpUpdate, rows)
}

// Delete deletes the rows with the keys of the structs, which must exist, at one timestamp, durably, or
// none. It ignores other fields. Errors: ErrNotFound if one does not exist; the errors of Batch.Commit.
func (t *TableOf[T]) Delete(ctx context.Context, rows ...T) (mvcc.Timestamp, error) {
	return t.commit(ctx, OpDelete, rows)
}

func (t *TableOf[T]) commit(ctx context.Context, op Op, rows []T) (mvcc.Timestamp, error) {
	b := t.Table.store.NewBatch()
	t.InBatch(b).Add(op, rows...)
	return b.Commit(ctx)
}

// Patch updates some columns of rows that must exist: the columns for which P has a field. P needs
// a field for each key column, which selects the row. Other columns keep their values; a nil
// pointer sets NULL. All rows are updated at one timestamp, durably, or none.
//
//	type rename struct {
//		ID   int64 `oribi:"id,key"`
//		Name string
//	}
//	ts, err := oribi.Patch(ctx, users, rename{ID: 7, Name: "Ada"})
//
// Errors: ErrSchema for a struct that does not fit the table; the errors of Batch.Commit, with
// ErrNotFound for a row that does not exist.
func Patch[P any](ctx context.Context, t *Table, rows ...P) (mvcc.Timestamp, error) {
	if t == nil {
		return 0, errNilTable
	}
	b := t.store.NewBatch()
	if err := PatchIn(b, t, rows...); err != nil {
		return 0, err
	}
	return b.Commit(ctx)
}

// PatchIn adds the updates of Patch to a write batch. Errors: ErrSchema for a struct that does not
// fit the table, and then nothing is added.
func PatchIn[P any](b *Batch, t *Table, rows ...P) error {
	view, err := viewOf[P](t)
	if err != nil {
		return err
	}
	view.InBatch(b).Update(rows...)
	return nil
}

// BatchOf adds operations with rows of type T to a write batch. See TableOf.InBatch.
type BatchOf[T any] struct {
	batch *Batch
	table *TableOf[T]
}

// InBatch returns the table for operations in a write batch:
//
//	b := store.NewBatch()
//	users.InBatch(b).Insert(ada, bob)
//	names.InBatch(b).Delete(old)
//	ts, err := b.Commit(ctx)
func (t *TableOf[T]) InBatch(b *Batch) BatchOf[T] { return BatchOf[T]{b, t} }

// Insert adds rows that must not exist.
func (b BatchOf[T]) Insert(rows ...T) { b.Add(OpInsert, rows...) }

// Upsert adds rows, or sets the struct's columns of those that exist.
func (b BatchOf[T]) Upsert(rows ...T) { b.Add(OpUpsert, rows...) }

// Update sets the struct's columns of rows that must exist.
func (b BatchOf[T]) Update(rows ...T) { b.Add(OpUpdate, rows...) }

// Delete deletes rows that must exist, those with the keys of the structs. It ignores other fields.
func (b BatchOf[T]) Delete(rows ...T) { b.Add(OpDelete, rows...) }

// InsertIgnore adds rows, except those that exist.
func (b BatchOf[T]) InsertIgnore(rows ...T) { b.Add(OpInsertIgnore, rows...) }

// UpsertIgnore is like Upsert but does not change immutable columns of rows that exist.
func (b BatchOf[T]) UpsertIgnore(rows ...T) { b.Add(OpUpsertIgnore, rows...) }

// UpdateIgnore sets the struct's columns of those rows that exist, except immutable ones.
func (b BatchOf[T]) UpdateIgnore(rows ...T) { b.Add(OpUpdateIgnore, rows...) }

// DeleteIgnore deletes those rows that exist.
func (b BatchOf[T]) DeleteIgnore(rows ...T) { b.Add(OpDeleteIgnore, rows...) }

// If makes the write batch depend on the row with the key of row, as Batch.If does: it exists and all
// predicates are true for it. Other fields are ignored.
func (b BatchOf[T]) If(row T, predicates ...Predicate) {
	b.batch.condition(b.table.Table, &tablet.Condition{}, predicates, func() { b.Add(OpDeleteIgnore, row) })
}

// IfAbsent makes the write batch depend on no row with the key of any of rows existing, as
// Batch.IfAbsent does.
func (b BatchOf[T]) IfAbsent(rows ...T) {
	for _, row := range rows {
		b.batch.condition(b.table.Table, &tablet.Condition{Absent: true}, nil, func() { b.Add(OpDeleteIgnore, row) })
	}
}

// Add adds one operation of any kind for each row.
func (b BatchOf[T]) Add(op Op, rows ...T) {
	t, wb := b.table, b.batch
	if len(rows) == 0 {
		return
	}
	p := wb.opsOf(t.Table)
	if p == nil {
		return
	}
	bound, err := t.bindFor(op, p.schema)
	if err != nil {
		wb.spoil(&RowError{Row: wb.n, Table: t.Table.tab.Name(), Cause: err})
		return
	}
	s := p.schema.Schema
rows:
	for i := range rows {
		if wb.err != nil {
			return
		}
		clear(p.cells)
		clear(p.set)
		p.operands = p.operands[:0]
		v := reflect.ValueOf(&rows[i]).Elem()
		p.reserveValues(len(bound.Fields))
		for k := range bound.Fields {
			f := &bound.Fields[k]
			if !takes(op, s, f.Column) {
				continue
			}
			if f.Computed {
				o, ok := f.Operand(v)
				if !ok {
					continue
				}
				if err := wb.operand(op, p, f.Column, o); err != nil {
					wb.fail(t.Table, f.Name, err)
					continue rows
				}
				continue
			}
			start := len(p.value)
			cell, err := f.Put(p.value[start:start], v)
			if err != nil {
				wb.fail(t.Table, f.Name, err)
				continue rows
			}
			if cell != nil && !s.Columns[f.Column].Type.Variable() {
				p.value = p.value[:start+len(cell)]
			}
			p.cells[f.Column], p.set[f.Column] = cell, true
		}
		wb.add(op, p)
	}
}
